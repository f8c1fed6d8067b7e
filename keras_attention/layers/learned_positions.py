"""Learned positions: a vector for each place, added to the word."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_attention")
class LearnedPositions(keras.layers.Layer):
    """Adds a learned vector to each word: `x_t + p_t`.

    Gehring et al. 2017 describe it in section 3.1. Vaswani et al. 2017 try it
    in row (E) of table 3. The vectors of `PositionEncoding` are fixed instead.

    Deviation: a position after the last one has the vector of the last one.

    Args:
        max_length: number of positions.
        embeddings_initializer: initializer of the vectors.

    Call arguments:
        inputs: [B, T, D].
        start: int scalar, the position of the first token (when decoding
            token by token).

    Returns:
        [B, T, D].

    Raises:
        ValueError: If `max_length` is not positive, or if the inputs are not
            of rank 3.

    References: https://arxiv.org/abs/1705.03122,
    https://arxiv.org/abs/1706.03762
    """

    def __init__(self, max_length, embeddings_initializer="uniform", **kwargs):
        super().__init__(**kwargs)
        if max_length < 1:
            raise ValueError(
                "`max_length` must be a positive integer. "
                f"Received: max_length={max_length}"
            )
        self.max_length = max_length
        self.embeddings_initializer = keras.initializers.get(
            embeddings_initializer
        )
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.max_length, input_shape[-1]),
            initializer=self.embeddings_initializer,
        )

    def call(self, inputs, start=0):
        positions = start + ops.arange(ops.shape(inputs)[1])
        positions = ops.minimum(positions, self.max_length - 1)
        vectors = ops.take(self.embeddings, positions, axis=0)  # [T, D]
        return inputs + ops.cast(vectors, inputs.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "max_length": self.max_length,
            "embeddings_initializer": keras.initializers.serialize(
                self.embeddings_initializer
            ),
        }
