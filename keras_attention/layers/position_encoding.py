"""Where a token stands: sinusoids."""

import math

import keras
from keras import ops

LAYOUTS = ("pairs", "halves")


def sinusoidal_positions(positions, dim, layout="pairs"):
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
        layout: "pairs" as above, or "halves" for all sines before all cosines,
            as in the authors' code and in Marian.

    Returns:
        float32 tensor [T, dim]. With "pairs", sines are at even places and
        cosines at odd ones.

    Raises:
        ValueError: If `dim` is odd, or if there is no such layout.
    """
    if layout not in LAYOUTS:
        raise ValueError(
            f"`layout` must be one of {', '.join(LAYOUTS)}. "
            f"Received: layout={layout!r}"
        )
    if dim % 2:
        raise ValueError(
            "Sinusoidal positions need an even width: a sine and a cosine "
            f"for each frequency. Received: dim={dim}"
        )
    frequencies = ops.exp(
        ops.arange(dim // 2, dtype="float32") * (-2 * math.log(10000.0) / dim)
    )
    angles = ops.cast(positions, "float32")[:, None] * frequencies[None, :]
    if layout == "halves":
        return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)
    pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)
    return ops.reshape(pairs, (-1, dim))


@keras.saving.register_keras_serializable(package="keras_attention")
class PositionEncoding(keras.layers.Layer):
    """Adds sinusoidal positions to a sequence (Vaswani et al. 2017, 3.5).

    No weights and no maximum length.

    Args:
        layout: where sines and cosines stand; see `sinusoidal_positions`.

    Call arguments:
        inputs: [B, T, D], D even.
        start: int scalar, the position of the first token (when decoding
            token by token).

    Returns:
        [B, T, D].

    Raises:
        ValueError: If D is odd, if the inputs are not of rank 3, or if there
            is no such layout.

    Reference: https://arxiv.org/abs/1706.03762
    """

    def __init__(self, layout="pairs", **kwargs):
        super().__init__(**kwargs)
        self.layout = layout
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)

    def call(self, inputs, start=0):
        length = ops.shape(inputs)[1]
        positions = sinusoidal_positions(
            start + ops.arange(length), inputs.shape[-1], self.layout
        )
        return inputs + ops.cast(positions, inputs.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "layout": self.layout}
