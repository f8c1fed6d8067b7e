"""One layer of the Transformer's encoder and one of its decoder."""

import keras

from keras_attention.layers import feed_forward, multi_head_attention


@keras.saving.register_keras_serializable(package="keras_attention")
class Residual(keras.layers.Layer):
    """The path around a sublayer, with its dropout and normalisation.

    ```
    post-norm  LayerNorm(x + Dropout(f(x)))      the paper's
    pre-norm   x + Dropout(f(LayerNorm(x)))      trains without warm-up
    ```

    `enter(x)` gives the sublayer its input, `leave(x, f)` takes its output;
    a call is `leave`.

    Args:
        dropout: rate.
        norm_first: pre-norm if True.

    Call arguments:
        inputs: x [..., D].
        outputs: f(...) [..., D].
        training: whether dropout acts.

    Returns:
        [..., D].

    References: https://arxiv.org/abs/1706.03762 (5.4),
    https://arxiv.org/abs/2002.04745 (pre-norm)
    """

    def __init__(self, dropout=0.0, norm_first=False, **kwargs):
        super().__init__(**kwargs)
        self.dropout = dropout
        self.norm_first = norm_first
        self.norm = keras.layers.LayerNormalization(
            epsilon=1e-6, dtype=self.dtype_policy, name="norm"
        )
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )

    def build(self, inputs_shape):
        if not self.norm.built:
            self.norm.build(inputs_shape)

    def enter(self, inputs):
        """The sublayer's input."""
        return self.norm(inputs) if self.norm_first else inputs

    def leave(self, inputs, outputs, training=None):
        """Joins the sublayer's `outputs` to the residual path."""
        joined = inputs + self.dropout_layer(outputs, training=training)
        return joined if self.norm_first else self.norm(joined)

    def call(self, inputs, outputs, training=None):
        return self.leave(inputs, outputs, training=training)

    def get_config(self):
        return {
            **super().get_config(),
            "dropout": self.dropout,
            "norm_first": self.norm_first,
        }


class TransformerLayer(keras.layers.Layer):
    """What encoder and decoder layer share: abstract.

    Args:
        num_heads: heads of each attention; must divide the width.
        intermediate_dim: width of the feed-forward network.
        dropout: rate on each sublayer's output (Vaswani 2017, 5.4).
        norm_first: pre-norm if True, the paper's post-norm if False.

    Errors: `ValueError` where `num_heads` or `intermediate_dim` is not
    positive, and where `num_heads` does not divide the width.
    """

    sublayer_names = ()

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        dropout=0.0,
        norm_first=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_heads < 1 or intermediate_dim < 1:
            raise ValueError(
                "`num_heads` and `intermediate_dim` must be positive "
                f"integers. Received: num_heads={num_heads}, "
                f"intermediate_dim={intermediate_dim}"
            )
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.dropout = dropout
        self.norm_first = norm_first
        for name in self.sublayer_names:
            residual = Residual(
                dropout,
                norm_first,
                dtype=self.dtype_policy,
                name=f"{name}_residual",
            )
            setattr(self, f"{name}_residual", residual)
        self.feed_forward = feed_forward.FeedForward(
            intermediate_dim, dtype=self.dtype_policy, name="feed_forward"
        )

    def _attention(self, name, hidden_dim):
        if hidden_dim % self.num_heads:
            raise ValueError(
                "`num_heads` must divide the width of the layer. Received: "
                f"num_heads={self.num_heads}, width {hidden_dim}"
            )
        return multi_head_attention.MultiHeadAttention(
            self.num_heads,
            hidden_dim // self.num_heads,
            dtype=self.dtype_policy,
            name=name,
        )

    def _build_sublayers(self, inputs_shape, memory_shape):
        for name in self.sublayer_names:
            getattr(self, f"{name}_residual").build(inputs_shape)
            if name == "feed_forward":
                self.feed_forward.build(inputs_shape)
                continue
            layer = self._attention(name, inputs_shape[-1])
            layer.build(
                inputs_shape,
                memory_shape if name == "cross_attention" else inputs_shape,
            )
            setattr(self, name, layer)

    def _feed_forward(self, inputs, training):
        outputs = self.feed_forward(self.feed_forward_residual.enter(inputs))
        return self.feed_forward_residual.leave(inputs, outputs, training)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout,
            "norm_first": self.norm_first,
        }


@keras.saving.register_keras_serializable(package="keras_attention")
class TransformerEncoderLayer(TransformerLayer):
    """Self-attention, then a feed-forward network (Vaswani 2017, 3.1).

    Args: see `TransformerLayer`.

    Call arguments:
        inputs: [B, S, D].
        padding_mask: bool [B, S], True at real tokens.
        attention_mask: bool [B, S, S] or [S, S], True where a token (the
            middle axis) may attend.
        use_causal_mask: a token attends to those before it and itself only:
            the layer of a language model.
        training: whether dropout acts.

    Returns:
        `(outputs, attention_weights)`: [B, S, D], float32 [B, H, S, S].

    Masking: explicit masks only, none that Keras passes along.

    Reference: https://arxiv.org/abs/1706.03762
    """

    sublayer_names = ("self_attention", "feed_forward")

    def build(self, inputs_shape):
        self._build_sublayers(inputs_shape, memory_shape=None)

    def call(
        self,
        inputs,
        padding_mask=None,
        attention_mask=None,
        use_causal_mask=False,
        training=None,
    ):
        context, attention_weights = self.self_attention(
            query=self.self_attention_residual.enter(inputs),
            padding_mask=padding_mask,
            attention_mask=attention_mask,
            use_causal_mask=use_causal_mask,
            training=training,
        )
        x = self.self_attention_residual.leave(inputs, context, training)
        return self._feed_forward(x, training), attention_weights


@keras.saving.register_keras_serializable(package="keras_attention")
class TransformerDecoderLayer(TransformerLayer):
    """Causal self-attention, attention to a memory, feed-forward network.

    Vaswani et al. 2017, section 3.1. `call` sees a whole target; `step` one
    token, with `project_memory` and `initial_cache` before the first.

    Args: see `TransformerLayer`.

    Call arguments:
        inputs: [B, T, D].
        memory: [B, S, Dm], the encoder's output.
        memory_mask: bool [B, S], True at real source tokens.
        padding_mask: bool [B, T], True at real inputs; those padded at the
            end need none, as no input sees a later one.
        training: whether dropout acts.

    Returns:
        `(outputs, attention_weights)`: [B, T, D] and the weights of the
        attention to the memory, float32 [B, H, T, S].

    Masking: explicit masks; only `memory_mask`, where it is not given, is the
    mask that Keras passes along with `memory`, if there is one.

    Reference: https://arxiv.org/abs/1706.03762
    """

    sublayer_names = ("self_attention", "cross_attention", "feed_forward")

    def build(self, inputs_shape, memory_shape=None):
        self._build_sublayers(inputs_shape, memory_shape)

    def project_memory(self, memory):
        """Keys and values of the memory: computed once for a sentence."""
        return self.cross_attention.project(memory)

    def initial_cache(self, batch_size, max_length):
        """Room for the self-attention's keys and values."""
        return self.self_attention.initial_cache(batch_size, max_length)

    def call(
        self,
        inputs,
        memory,
        memory_mask=None,
        padding_mask=None,
        training=None,
    ):
        context, _ = self.self_attention(
            query=self.self_attention_residual.enter(inputs),
            padding_mask=padding_mask,
            use_causal_mask=True,
            training=training,
        )
        x = self.self_attention_residual.leave(inputs, context, training)
        context, attention_weights = self.cross_attention(
            query=self.cross_attention_residual.enter(x),
            value=memory,
            padding_mask=memory_mask,
            training=training,
        )
        x = self.cross_attention_residual.leave(x, context, training)
        return self._feed_forward(x, training), attention_weights

    def step(self, inputs, projected_memory, memory_mask, cache, position):
        """One more token.

        Args:
            inputs: [B, D].
            projected_memory: what `project_memory` returned.
            memory_mask: bool [B, S], or None.
            cache: as `initial_cache` or the last `step` returned it.
            position: int scalar, 0 for the first token.

        Returns:
            `(outputs, attention_weights, cache)`: [B, D], [B, H, S], and
            the cache with this token in it.
        """
        context, _, cache = self.self_attention.step(
            query=self.self_attention_residual.enter(inputs),
            cache=cache,
            position=position,
        )
        x = self.self_attention_residual.leave(inputs, context, False)
        key, value = projected_memory
        context, attention_weights = self.cross_attention.attend_one(
            query=self.cross_attention_residual.enter(x),
            key=key,
            value=value,
            mask=memory_mask,
        )
        x = self.cross_attention_residual.leave(x, context, False)
        return self._feed_forward(x, False), attention_weights, cache
