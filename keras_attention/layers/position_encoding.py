"""Where a token stands: sinusoids."""

import math

import keras
from keras import ops


def sinusoidal_positions(positions, dim):
    """Encodes positions as sines and cosines of falling frequency.

    ```
    PE(p, 2i)   = sin(p / 10000^(2i / d_model))
    PE(p, 2i+1) = cos(p / 10000^(2i / d_model))
    ```

    (Vaswani et al. 2017, section 3.5.) A shift by k is a rotation of each
    (sine, cosine) pair by an angle that depends on k alone.

    Args:
        positions: int or float tensor [T].
        dim: even int, d_model.

    Returns:
        float32 tensor [T, dim], sines at even places, cosines at odd ones.

    Raises:
        ValueError: If `dim` is odd.
    """
    if dim % 2:
        raise ValueError(
            "Sinusoidal positions need an even width: a sine and a cosine "
            f"for each frequency. Received: dim={dim}"
        )
    frequencies = ops.exp(
        ops.arange(dim // 2, dtype="float32") * (-2 * math.log(10000.0) / dim)
    )
    angles = ops.cast(positions, "float32")[:, None] * frequencies[None, :]
    pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)
    return ops.reshape(pairs, (-1, dim))


@keras.saving.register_keras_serializable(package="keras_attention")
class PositionEncoding(keras.layers.Layer):
    """Adds sinusoidal positions to a sequence (Vaswani et al. 2017, 3.5).

    No weights and no maximum length.

    Call arguments:
        inputs: [B, T, D], D even.
        start: int scalar, the position of the first token (when decoding
            token by token).

    Returns:
        [B, T, D].

    Raises:
        ValueError: If D is odd, or if the inputs are not of rank 3.

    Reference: https://arxiv.org/abs/1706.03762
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)

    def call(self, inputs, start=0):
        length = ops.shape(inputs)[1]
        positions = sinusoidal_positions(
            start + ops.arange(length), inputs.shape[-1]
        )
        return inputs + ops.cast(positions, inputs.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape
