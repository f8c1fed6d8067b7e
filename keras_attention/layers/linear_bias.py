"""ALiBi: the further away a key is, the lower its score."""

import math

import keras
from keras import ops

from keras_attention.layers import positions


def alibi_slopes(num_heads):
    """`2^(-8 i / H)` for head i = 1 ... H (Press et al. 2022, section 3).

    Where H is no power of two, the authors' code takes the slopes of the
    power n below it, and the first, third, ... of those of 2 n.

    Args:
        num_heads: H.

    Returns:
        list of H floats.
    """
    power = 2 ** int(math.log2(num_heads))
    slopes = [2.0 ** (-8 * i / power) for i in range(1, power + 1)]
    finer = [2.0 ** (-8 * i / (2 * power)) for i in range(1, 2 * power, 2)]
    return slopes + finer[: num_heads - power]


@keras.saving.register_keras_serializable(package="keras_attention")
class LinearBias(positions.Positions):
    """Takes a share of the distance from each score.

    Press et al. 2022, section 3: `e_ts - m_h |t - s|`. Each head has a fixed
    slope m_h (`alibi_slopes`). The layer has no weights and no maximum length.

    The bias is not divided by sqrt(d_k). Deviation: keys after a query are as
    far as those before it. The paper's attention is causal, and has none after
    it.

    Reference: https://arxiv.org/abs/2108.12409
    """

    def bias(self, query, query_positions, key_positions):
        distances = positions.distances(query_positions, key_positions)
        distances = ops.cast(ops.abs(distances), "float32")  # [T, S]
        slopes = alibi_slopes(query.shape[1])
        slopes = ops.convert_to_tensor(slopes, dtype="float32")
        return -slopes[None, :, None, None] * distances
