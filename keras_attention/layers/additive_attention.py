"""Bahdanau's additive attention."""

import keras
from keras import ops

from keras_attention.layers import attention, weights


@keras.saving.register_keras_serializable(package="keras_attention")
class AdditiveAttention(attention.Attention):
    """Additive attention: a one-layer network compares query and key.

    `e_ij = v . tanh(W s_{i-1} + U h_j)` (Bahdanau et al. 2014, section 3.1
    and appendix A.1.2).

    | paper | here |
    |---|---|
    | s_{i-1}, decoder state | `query` |
    | h_j, annotation | `key` and `value` |
    | W_a, U_a, v_a | `query_kernel`, `key_kernel`, `score_vector` |
    | n' | `units` |
    | alpha_ij, c_i | `attention_weights`, `context` |

    `keras.layers.AdditiveAttention` has neither W nor U: it only scales.

    Args:
        units: width of the comparison.
        kernel_initializer: initializer of W, U and v.

    Call arguments, masking and returns: see `Attention`.

    Raises:
        ValueError: If `units` is not positive, and as `Attention` does.

    Reference: https://arxiv.org/abs/1409.0473
    """

    def __init__(self, units, kernel_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(
                f"`units` must be a positive integer. Received: units={units}"
            )
        self.units = units
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def build(self, query_shape, value_shape, key_shape=None):
        key_dim = (key_shape or value_shape)[-1]
        self.query_kernel = self.add_weight(
            name="query_kernel",
            shape=(query_shape[-1], self.units),
            initializer=self.kernel_initializer,
        )
        self.key_kernel = self.add_weight(
            name="key_kernel",
            shape=(key_dim, self.units),
            initializer=weights.another(self.kernel_initializer),
        )
        self.score_vector = self.add_weight(
            name="score_vector",
            shape=(self.units, 1),
            initializer=weights.another(self.kernel_initializer),
        )

    def project(self, key):
        """U h_j for every key: [B, S, Dk] -> [B, S, units]."""
        weights.check_ready(self, key)
        return ops.matmul(key, self._cast(self.key_kernel))

    def score(self, query, projected_key):
        """v . tanh(W s + U h): [B, T, S]."""
        weights.check_ready(self, query)
        query = ops.matmul(query, self._cast(self.query_kernel))
        compared = ops.tanh(
            ops.expand_dims(query, 2) + ops.expand_dims(projected_key, 1)
        )  # [B, T, S, units]
        return ops.squeeze(
            ops.matmul(compared, self._cast(self.score_vector)), -1
        )

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }
