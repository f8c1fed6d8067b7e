"""The one layer of a stack without a source: GPT's and ViT's."""

import keras

from keras_attention.layers import (
    attention,
    masks,
    transformer_layer,
    weights,
)


@keras.saving.register_keras_serializable(package="keras_attention")
class SelfAttentionLayer(transformer_layer.TransformerLayer):
    """Self-attention, then a feed-forward network with GELU.

    The layer of Radford et al. 2018 and 2019, which is causal, and of
    Dosovitskiy et al. 2021, which is not. With pre-norm:

    ```
    y = x + MultiHead(LayerNorm(x))
    z = y + W_2 GELU(W_1 LayerNorm(y) + b_1) + b_2
    ```

    It is the Transformer's encoder layer with GELU in place of ReLU, and with
    the methods of a decoder: `initial_cache`, then `step` token by token.

    Args: see `TransformerLayer`.

    Call arguments:
        inputs: [B, T, D].
        padding_mask: bool [B, T], True at real tokens.
        use_causal_mask: a token attends to those before it and itself only.
        training: whether dropout acts.
        mask, inputs_mask: bool [B, T]. Keras fills them in.

    Returns:
        `(outputs, attention_weights)`: [B, T, D], float32 [B, H, T, T].

    Raises:
        ValueError: If the inputs are not of rank 3, and as `TransformerLayer`
            does.

    References: Radford et al. 2018, Improving Language Understanding by
    Generative Pre-Training; https://arxiv.org/abs/2010.11929 (ViT)
    """

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        dropout=0.0,
        norm_first=False,
        feed_forward=None,
        activation="tanh_gelu",
        **kwargs,
    ):
        super().__init__(
            num_heads,
            intermediate_dim,
            dropout,
            norm_first,
            activation=activation,
            **kwargs,
        )
        self.self_attention_residual = self._residual("self_attention_residual")
        self.feed_forward_residual = self._residual("feed_forward_residual")
        self.feed_forward = self._network(feed_forward)

    def build(self, inputs_shape):
        self.self_attention_residual.build(inputs_shape)
        self.self_attention = self._attention(
            "self_attention", inputs_shape, self.positions
        )
        self.self_attention.build(inputs_shape)
        self.feed_forward_residual.build(inputs_shape)
        if not self.feed_forward.built:
            self.feed_forward.build(inputs_shape)

    def call(
        self,
        inputs,
        padding_mask=None,
        use_causal_mask=False,
        training=None,
        mask=None,
        inputs_mask=None,
    ):
        attention.check_sequences(inputs=inputs)
        if padding_mask is None:
            # Keras calls the mask of a single tensor `mask`.
            padding_mask = mask if inputs_mask is None else inputs_mask
        context, attention_weights = self.self_attention(
            query=self.self_attention_residual.enter(inputs),
            padding_mask=padding_mask,
            use_causal_mask=use_causal_mask,
            training=training,
        )
        x = self.self_attention_residual.leave(inputs, context, training)
        outputs = self._feed_forward(x, training, padding_mask)
        return outputs, attention_weights

    def initial_cache(self, batch_size, max_length):
        """Room for the keys and values of `max_length` tokens to come.

        Raises:
            ValueError: If the layer is not built: it has no width yet.
        """
        weights.check_ready(self)
        return self.self_attention.initial_cache(batch_size, max_length)

    def step(self, inputs, cache, position):
        """One more token, which sees itself and those before it.

        Args:
            inputs: [B, D].
            cache: as `initial_cache` or the last `step` returned it.
            position: int scalar, 0 for the first token.

        Returns:
            `(outputs, attention_weights, cache)`: [B, D], [B, H, cached] and
            the cache with this token in it.
        """
        weights.check_ready(self)
        context, attention_weights, cache = self.self_attention.step(
            query=self.self_attention_residual.enter(inputs),
            cache=cache,
            position=position,
        )
        x = self.self_attention_residual.leave(inputs, context, False)
        return self._feed_forward(x, False), attention_weights, cache

    def compute_output_shape(self, inputs_shape):
        batch, length = inputs_shape[:2]
        weights_shape = (batch, self.num_heads, length, length)
        return tuple(inputs_shape), weights_shape

    def compute_output_spec(self, inputs, *args, **kwargs):
        attention.check_sequences(inputs=inputs)
        masks.refuse_floats(*args, *kwargs.values())
        shapes = self.compute_output_shape(inputs.shape)
        return attention.output_spec(shapes, self.compute_dtype)
