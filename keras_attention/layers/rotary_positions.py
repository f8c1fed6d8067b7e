"""Rotary positions: a query and a key turn with their place."""

import math

import keras
from keras import ops

from keras_attention.layers import positions


@keras.saving.register_keras_serializable(package="keras_attention")
class RotaryPositions(positions.Positions):
    """Rotates each pair of features by an angle that grows with the place.

    Su et al. 2021, equations 14-16 and 34:

    ```
    [x_2i  ]    [cos m theta_i  -sin m theta_i] [x_2i  ]
    [x_2i+1] -> [sin m theta_i   cos m theta_i] [x_2i+1]
    theta_i  =  base^(-2i / d)
    ```

    So `(R_m q) . (R_n k) = q . (R_{n-m} k)`: of the two places, the score
    knows the distance alone. The layer has no weights and no maximum length.

    | paper | here |
    |---|---|
    | m, n | `positions` |
    | d | the width of a head, `key_dim` |
    | 10000 | `base` |

    Features count from 0 here and from 1 in the paper.

    Args:
        base: the slowest pair turns once in about 2 pi `base` places.

    Raises:
        ValueError: If the heads' width is odd, or `base` is not above 1.

    Reference: https://arxiv.org/abs/2104.09864
    """

    only_rotates = True

    def __init__(self, base=10000.0, **kwargs):
        super().__init__(**kwargs)
        if base <= 1:
            raise ValueError(
                f"`base` must be greater than 1. Received: base={base}"
            )
        self.base = base

    def build(self, heads_shape):
        if heads_shape[-1] % 2:
            raise ValueError(
                "Heads must have an even width, as features are rotated in "
                f"pairs. Received: key_dim={heads_shape[-1]}"
            )

    def rotate(self, heads, positions):
        dim = heads.shape[-1]
        frequencies = ops.exp(
            ops.arange(dim // 2, dtype="float32")
            * (-2 * math.log(self.base) / dim)
        )
        angles = ops.cast(positions, "float32")[:, None] * frequencies
        cosine = ops.cast(ops.cos(angles), heads.dtype)  # [T, key_dim / 2]
        sine = ops.cast(ops.sin(angles), heads.dtype)
        even, odd = heads[..., 0::2], heads[..., 1::2]
        pairs = ops.stack(
            [even * cosine - odd * sine, even * sine + odd * cosine], axis=-1
        )  # [B, H, T, key_dim / 2, 2]
        return ops.reshape(pairs, ops.shape(heads))

    def get_config(self):
        return {**super().get_config(), "base": self.base}
