"""Relative positions: a learned vector for each distance."""

import keras
from keras import ops

from keras_attention.layers import positions, weights


@keras.saving.register_keras_serializable(package="keras_attention")
class RelativePositions(positions.Positions):
    """Adds a vector of the distance to each key and to each value.

    Shaw et al. 2018, equations 3 and 4:

    ```
    e_ij  = q_i . (k_j + aK_ij) / sqrt(d_z)
    z_i   = sum_j alpha_ij (v_j + aV_ij)
    aK_ij = wK[clip(j - i, -k, k)],  aV_ij = wV[clip(j - i, -k, k)]
    ```

    | paper | here |
    |---|---|
    | k | `max_distance` |
    | wK, wV | `key_table`, `value_table`, row 0 for distance -k |
    | d_z | the width of a head |

    All heads share the tables, which section 3.3 offers. Each layer of a model
    has tables of its own. So it is in the paper's big model; in its base
    model, each head has tables of its own, too (4.1).

    Args:
        max_distance: distances beyond it have its vector; 16 in the paper's
            base model, 8 in its big one.

    Raises:
        ValueError: If `max_distance` is not positive.

    Reference: https://arxiv.org/abs/1803.02155
    """

    def __init__(self, max_distance=16, **kwargs):
        super().__init__(**kwargs)
        if max_distance < 1:
            raise ValueError(
                "`max_distance` must be a positive integer. "
                f"Received: max_distance={max_distance}"
            )
        self.max_distance = max_distance

    def build(self, heads_shape):
        shape = (2 * self.max_distance + 1, heads_shape[-1])
        self.key_table = self.add_weight(name="key_table", shape=shape)
        self.value_table = self.add_weight(name="value_table", shape=shape)

    def _rows(self, table, query_positions, key_positions):
        """[T, S, key_dim]"""
        clipped = ops.clip(
            positions.distances(query_positions, key_positions),
            -self.max_distance,
            self.max_distance,
        )
        return ops.take(table, clipped + self.max_distance, axis=0)

    def bias(self, query, query_positions, key_positions):
        weights.check_ready(self)
        rows = self._rows(self.key_table, query_positions, key_positions)
        rows = ops.cast(rows, query.dtype)
        return ops.einsum("bhtd,tsd->bhts", query, rows)

    def added_context(self, attention_weights, query_positions, key_positions):
        weights.check_ready(self)
        rows = self._rows(self.value_table, query_positions, key_positions)
        rows = ops.cast(rows, attention_weights.dtype)
        return ops.einsum("bhts,tsd->bhtd", attention_weights, rows)

    def get_config(self):
        return {**super().get_config(), "max_distance": self.max_distance}
