"""One layer of the Transformer's encoder and one of its decoder."""

import keras

from keras_attention.layers import (
    attention,
    masks,
    transformer_layer,
    weights,
)


@keras.saving.register_keras_serializable(package="keras_attention")
class TransformerEncoderLayer(transformer_layer.TransformerLayer):
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
        mask, inputs_mask: bool [B, S]. Keras fills them in.

    Returns:
        `(outputs, attention_weights)`: [B, S, D], float32 [B, H, S, S]. For
        `keras.Sequential` and `keras.layers.TimeDistributed`, which take one
        tensor from a layer, `OutputsOnly(layer)` leaves the weights out.

    Masking: where `padding_mask` is not given, the mask that Keras passes
    along with `inputs` takes its place. The outputs have this mask as well.

    Reference: https://arxiv.org/abs/1706.03762
    """

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        dropout=0.0,
        norm_first=False,
        positions=None,
        feed_forward=None,
        **kwargs,
    ):
        super().__init__(
            num_heads,
            intermediate_dim,
            dropout,
            norm_first,
            positions,
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
        attention_mask=None,
        use_causal_mask=False,
        training=None,
        mask=None,
        inputs_mask=None,
    ):
        attention.check_sequences(inputs=inputs)
        if padding_mask is None:
            # Keras calls the mask of a single tensor `mask`.
            padding_mask = mask if inputs_mask is None else inputs_mask
        x, attention_weights = self._attend(
            inputs,
            training,
            padding_mask=padding_mask,
            attention_mask=attention_mask,
            use_causal_mask=use_causal_mask,
        )
        outputs = self._feed_forward(x, training, padding_mask)
        return outputs, attention_weights

    def _attend(self, inputs, training, **masks_of_keys):
        context, attention_weights = self.self_attention(
            query=self.self_attention_residual.enter(inputs),
            training=training,
            **masks_of_keys,
        )
        x = self.self_attention_residual.leave(inputs, context, training)
        return x, attention_weights

    def call_with_maps(self, inputs, padding_mask=None, training=None):
        """Like a call, and all that the layer weighs.

        The layer is called or built before.

        Args: as for a call.

        Returns:
            `(outputs, maps)`: [B, S, D], and a list: the attention weights,
            and the gates of a `MixtureOfExperts`, float32 [B, 1, S, n].
        """
        attention.check_sequences(inputs=inputs)
        x, attention_weights = self._attend(
            inputs, training, padding_mask=padding_mask
        )
        outputs = self._feed_forward(x, training, padding_mask)
        return outputs, [attention_weights, *self._gates(x)]

    def compute_output_shape(self, inputs_shape):
        batch, length = inputs_shape[:2]
        weights_shape = (batch, self.num_heads, length, length)
        return tuple(inputs_shape), weights_shape

    def compute_output_spec(self, inputs, *args, **kwargs):
        attention.check_sequences(inputs=inputs)
        masks.refuse_floats(*args, *kwargs.values())
        shapes = self.compute_output_shape(inputs.shape)
        return attention.output_spec(shapes, self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_attention")
class TransformerDecoderLayer(transformer_layer.TransformerLayer):
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
        inputs_mask: bool [B, T]. Keras fills it in.

    Returns:
        `(outputs, attention_weights)`: [B, T, D] and the weights of the
        attention to the memory, float32 [B, H, T, S].

    Masking: where `memory_mask` or `padding_mask` is not given, the mask that
    Keras passes along with `memory` or `inputs` takes its place. The outputs
    have the mask of the inputs.

    Reference: https://arxiv.org/abs/1706.03762
    """

    expected_call = "layer(inputs=inputs, memory=memory)"

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        dropout=0.0,
        norm_first=False,
        positions=None,
        feed_forward=None,
        **kwargs,
    ):
        super().__init__(
            num_heads,
            intermediate_dim,
            dropout,
            norm_first,
            positions,
            **kwargs,
        )
        self.self_attention_residual = self._residual("self_attention_residual")
        self.cross_attention_residual = self._residual(
            "cross_attention_residual"
        )
        self.feed_forward_residual = self._residual("feed_forward_residual")
        self.feed_forward = self._network(feed_forward)

    def build(self, inputs_shape, memory_shape=None):
        self.self_attention_residual.build(inputs_shape)
        self.self_attention = self._attention(
            "self_attention", inputs_shape, self.positions
        )
        self.self_attention.build(inputs_shape)
        self.cross_attention_residual.build(inputs_shape)
        self.cross_attention = self._attention("cross_attention", inputs_shape)
        self.cross_attention.build(inputs_shape, memory_shape)
        self.feed_forward_residual.build(inputs_shape)
        if not self.feed_forward.built:
            self.feed_forward.build(inputs_shape)

    def _check_width(self, inputs):
        width = self.cross_attention.query_kernel.shape[0]
        if inputs.shape[-1] != width:
            raise ValueError(
                f"Expected inputs of width {width}, for which the layer was "
                f"built. Received: inputs of width {inputs.shape[-1]}"
            )

    def project_memory(self, memory):
        """Keys and values of the memory: computed once for a sentence.

        Raises:
            ValueError: If the layer is not built.
        """
        weights.check_ready(self, memory)
        return self.cross_attention.project(memory)

    def initial_cache(self, batch_size, max_length):
        """Room for the self-attention's keys and values.

        Raises:
            ValueError: If the layer is not built: it has no width yet.
        """
        weights.check_ready(self)
        return self.self_attention.initial_cache(batch_size, max_length)

    def call(
        self,
        inputs,
        memory,
        memory_mask=None,
        padding_mask=None,
        training=None,
        inputs_mask=None,
    ):
        outputs, _, attention_weights = self.call_with_both_weights(
            inputs, memory, memory_mask, padding_mask, training, inputs_mask
        )
        return outputs, attention_weights

    def call_with_both_weights(
        self,
        inputs,
        memory,
        memory_mask=None,
        padding_mask=None,
        training=None,
        inputs_mask=None,
    ):
        """Like a call, and the weights of the self-attention as well.

        The layer is called or built before.

        Args: as for a call.

        Returns:
            `(outputs, self_attention_weights, attention_weights)`: [B, T, D],
            float32 [B, H, T, T], float32 [B, H, T, S].
        """
        if padding_mask is None:
            padding_mask = inputs_mask
        x, *attention_weights = self._attend(
            inputs, memory, memory_mask, padding_mask, training
        )
        outputs = self._feed_forward(x, training, padding_mask)
        return outputs, *attention_weights

    def call_with_maps(
        self, inputs, memory, memory_mask=None, padding_mask=None, training=None
    ):
        """Like a call, and all that the layer weighs.

        The layer is called or built before.

        Args: as for a call.

        Returns:
            `(outputs, maps)`: [B, T, D], and a list: the weights of the
            self-attention and of the other, and the gates of a
            `MixtureOfExperts`, float32 [B, 1, T, n].
        """
        x, *attention_weights = self._attend(
            inputs, memory, memory_mask, padding_mask, training
        )
        outputs = self._feed_forward(x, training, padding_mask)
        return outputs, [*attention_weights, *self._gates(x)]

    def _attend(self, inputs, memory, memory_mask, padding_mask, training):
        attention.check_sequences(inputs=inputs, memory=memory)
        self._check_width(inputs)
        context, own_weights = self.self_attention(
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
        return x, own_weights, attention_weights

    def compute_output_shape(self, inputs_shape, memory_shape):
        batch, length = inputs_shape[:2]
        weights_shape = (batch, self.num_heads, length, memory_shape[1])
        return tuple(inputs_shape), weights_shape

    def compute_output_spec(self, inputs, memory, *args, **kwargs):
        attention.check_sequences(inputs=inputs, memory=memory)
        masks.refuse_floats(*args, *kwargs.values())
        self._check_width(inputs)
        shapes = self.compute_output_shape(inputs.shape, memory.shape)
        return attention.output_spec(shapes, self.compute_dtype)

    def step(
        self,
        inputs,
        projected_memory,
        memory_mask,
        cache,
        position,
        settled=None,
        num_hypotheses=1,
    ):
        """One more token.

        Args:
            inputs: [B, D].
            projected_memory: what `project_memory` returned.
            memory_mask: bool [B, S], or None.
            cache: as `initial_cache` or the last `step` returned it.
            position: int scalar, 0 for the first token.
            settled: see `MultiHeadAttention.step`.
            num_hypotheses: N. The memory and its mask have a row for each N
                consecutive inputs.

        Returns:
            `(outputs, attention_weights, cache)`: [B, D], [B, H, S], and
            the cache with this token in it.
        """
        weights.check_ready(self)
        self._check_width(inputs)
        context, _, cache = self.self_attention.step(
            query=self.self_attention_residual.enter(inputs),
            cache=cache,
            position=position,
            settled=settled,
            num_hypotheses=num_hypotheses,
        )
        x = self.self_attention_residual.leave(inputs, context, False)
        key, value = projected_memory
        context, attention_weights = self.cross_attention.attend_one(
            query=self.cross_attention_residual.enter(x),
            key=key,
            value=value,
            mask=memory_mask,
            num_hypotheses=num_hypotheses,
        )
        x = self.cross_attention_residual.leave(x, context, False)
        return self._feed_forward(x, False), attention_weights, cache
