"""What every layer of a Transformer shares."""

import inspect
import typing

import keras

from keras_attention.layers import (
    attention,
    head_projections,
    mixture_of_experts,
    multi_head_attention,
    quantized_parts,
    residual,
)
from keras_attention.layers import feed_forward as feed_forward_layer
from keras_attention.layers import positions as position_layers


class TransformerLayer(quantized_parts.QuantizedParts, keras.layers.Layer):
    """Attentions and a feed-forward network, with residuals: abstract.

    Args:
        num_heads: heads of each attention; must divide the width.
        intermediate_dim: width of the feed-forward network.
        dropout: rate on each sublayer's output (Vaswani 2017, 5.4).
        norm_first: pre-norm if True, the paper's post-norm if False.
        positions: a layer that puts positions into the self-attention, such
            as `RotaryPositions`; each layer needs its own.
        feed_forward: a layer [..., D] -> [..., D] in place of the feed-forward
            network, such as `MixtureOfExperts`; each layer needs its own.
            `intermediate_dim` is then not used. If its call takes
            `padding_mask` or `training`, it gets them.
        num_key_value_heads: heads of keys and values of each attention, which
            query heads share; see `MultiHeadAttention`.
        activation: of the feed-forward network, by name; see `FeedForward`.
        use_bias: whether attentions and feed-forward network have biases.
        key_dim: width of each head; None for the layer's width over
            `num_heads`.
        normalization, epsilon: see `Residual`.

    Raises:
        ValueError: If `num_heads` or `intermediate_dim` is not positive, if
            `num_heads` does not divide the width and there is no `key_dim`, if
            `num_key_value_heads` does not divide `num_heads`, or if tensors
            come in a list.
    """

    expected_call = "layer(inputs=inputs)"

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        dropout=0.0,
        norm_first=False,
        positions=None,
        num_key_value_heads=None,
        activation="relu",
        use_bias=True,
        key_dim=None,
        normalization="layer",
        epsilon=1e-6,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_heads < 1 or intermediate_dim < 1:
            raise ValueError(
                "`num_heads` and `intermediate_dim` must be positive "
                f"integers. Received: num_heads={num_heads}, "
                f"intermediate_dim={intermediate_dim}"
            )
        head_projections.check_key_value_heads(num_heads, num_key_value_heads)
        self.num_heads = num_heads
        self.num_key_value_heads = num_key_value_heads
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.norm_first = norm_first
        self.positions = positions
        self.activation = activation
        self.use_bias = use_bias
        self.key_dim = key_dim
        self.normalization = normalization
        self.epsilon = epsilon
        self.supports_masking = True

    def __call__(self, *args, **kwargs) -> typing.Any:
        attention.check_separate(self.expected_call, [*args, *kwargs.values()])
        return super().__call__(*args, **kwargs)

    def _residual(self, name):
        return residual.Residual(
            self.dropout,
            self.norm_first,
            self.normalization,
            self.epsilon,
            dtype=self.dtype_policy,
            name=name,
        )

    def _network(self, given):
        """The layer's feed-forward network, or what was given instead."""
        self._has_own_network = given is None
        if given is not None:
            return given
        return feed_forward_layer.FeedForward(
            self.intermediate_dim,
            self.activation,
            self.use_bias,
            dtype=self.dtype_policy,
            name="feed_forward",
        )

    def _attention(self, name, inputs_shape, positions=None):
        hidden_dim = inputs_shape[-1]
        if self.key_dim is None and hidden_dim % self.num_heads:
            raise ValueError(
                "`num_heads` must divide the width of the layer. Received: "
                f"num_heads={self.num_heads}, width {hidden_dim}"
            )
        return multi_head_attention.MultiHeadAttention(
            self.num_heads,
            self.key_dim or hidden_dim // self.num_heads,
            use_bias=self.use_bias,
            positions=positions,
            num_key_value_heads=self.num_key_value_heads,
            dtype=self.dtype_policy,
            name=name,
        )

    def _feed_forward(self, inputs, training, padding_mask=None):
        options = {"padding_mask": padding_mask, "training": training}
        taken = inspect.signature(self.feed_forward.call).parameters
        outputs = self.feed_forward(
            self.feed_forward_residual.enter(inputs),
            **{name: options[name] for name in options if name in taken},
        )
        return self.feed_forward_residual.leave(inputs, outputs, training)

    def _gates(self, inputs):
        """Those of experts, as a map of one head [B, 1, T, n]; or nothing."""
        if not isinstance(
            self.feed_forward, mixture_of_experts.MixtureOfExperts
        ):
            return []
        entered = self.feed_forward_residual.enter(inputs)
        return [self.feed_forward.gates(entered)[:, None]]

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout,
            "norm_first": self.norm_first,
            "positions": position_layers.serialize(self.positions),
            "activation": self.activation,
            "use_bias": self.use_bias,
            "key_dim": self.key_dim,
            "normalization": self.normalization,
            "epsilon": self.epsilon,
            "feed_forward": None
            if self._has_own_network
            else keras.saving.serialize_keras_object(self.feed_forward),
        }

    @classmethod
    def from_config(cls, config):
        config = position_layers.deserialize(config)
        network = config.get("feed_forward")
        if network is not None:
            network = keras.saving.deserialize_keras_object(network)
        return cls(**{**config, "feed_forward": network})
