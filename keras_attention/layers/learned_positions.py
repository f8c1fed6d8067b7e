"""Learned positions: a vector for each place, added to the word."""

import numbers

import keras
from keras import ops


def check_length(length, max_length):
    """Raises `ValueError` for a sequence that is longer than a table.

    Args:
        length: int. What a graph does not know yet, a tensor or None, passes:
            see `vectors_at`.
        max_length: places of the table; None for no limit.
    """
    if max_length is None or not isinstance(length, numbers.Integral):
        return
    if length > max_length:
        raise ValueError(
            f"There are {max_length} learned positions, and the sequence has "
            f"{length} tokens. Cut it, or make a model of more positions."
        )


def vectors_at(embedding, positions, max_length):
    """The vectors of a table at some positions.

    Args:
        embedding: a function of positions, such as `keras.layers.Embedding`.
        positions: int [...], from 0.
        max_length: places of the table.

    Returns:
        [..., D]; NaN behind the table's end.
    """
    # A gather out of range is an error on a CPU and zeros on a GPU. A NaN
    # reaches the loss and the scores on every device, so that it is seen.
    vectors = embedding(ops.minimum(positions, max_length - 1))
    is_inside = ops.expand_dims(positions < max_length, -1)
    return ops.where(is_inside, vectors, float("nan"))


@keras.saving.register_keras_serializable(package="keras_attention")
class LearnedPositions(keras.layers.Layer):
    """Adds a learned vector to each word: `x_t + p_t`.

    Gehring et al. 2017 describe it in section 3.1. Vaswani et al. 2017 try it
    in row (E) of table 3. The vectors of `PositionEncoding` are fixed instead.

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
        ValueError: If `max_length` is not positive, if the inputs are not of
            rank 3, or if they are longer than the table. A graph that does
            not know their length gives NaN behind the table's end.

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
        length = ops.shape(inputs)[1]
        check_length(start + length, self.max_length)
        vectors = vectors_at(
            lambda positions: ops.take(self.embeddings, positions, axis=0),
            start + ops.arange(length),
            self.max_length,
        )  # [T, D]
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
