"""Luong's three scores for global attention."""

import keras
from keras import ops

from keras_attention.layers import attention, weights

SCORINGS = ("dot", "general", "concat")


@keras.saving.register_keras_serializable(package="keras_attention")
class MultiplicativeAttention(attention.Attention):
    """Luong attention: compare query and key by a product.

    Luong et al. 2015, section 3.1:

    ```
    dot      score(h_t, h_s) = h_t . h_s
    general  score(h_t, h_s) = h_t . W h_s
    concat   score(h_t, h_s) = v . tanh(W [h_t; h_s])
    ```

    | paper | here |
    |---|---|
    | h_t, decoder state | `query` |
    | h_s (with a bar), encoder state | `key` and `value` |
    | W_a | `key_kernel` transposed; concat: `query_kernel` over `key_kernel` |
    | v_a | `score_vector` |
    | a_t(s), c_t | `attention_weights`, `context` |

    In "concat" the product W [h_t; h_s] is computed as the sum of two, so
    that the keys are projected once; the function is the same.

    Scores are not scaled, as in the paper. With Adam, the scores of wide layers
    can grow so large that attention stays on one key, whatever the query is.
    Then divide the keys, as `models.Luong` does for "general".

    Args:
        scoring: "dot" (query and key of one width), "general" or "concat".
        units: width of W for "concat"; by default that of the query.
        kernel_initializer: initializer of W and v.

    Call arguments, masking and returns: see `Attention`.

    Raises:
        ValueError: If `scoring` is none of these, if there are `units`
            without "concat", if the widths of keys and queries differ in
            "dot", and as `Attention` does.

    Reference: https://arxiv.org/abs/1508.04025
    """

    def __init__(
        self,
        scoring="general",
        units=None,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if scoring not in SCORINGS:
            raise ValueError(
                f"`scoring` must be one of {SCORINGS}. "
                f"Received: scoring={scoring!r}"
            )
        if units is not None and units < 1:
            raise ValueError(
                f"`units` must be a positive integer. Received: units={units}"
            )
        if units is not None and scoring != "concat":
            raise ValueError(
                '`units` is the width of W for scoring="concat" only. '
                f"Received: units={units}, scoring={scoring!r}"
            )
        self.scoring = scoring
        self.units = units
        self.kernel_initializer = keras.initializers.get(kernel_initializer)

    def _add_kernel(self, name, shape):
        return self.add_weight(
            name=name,
            shape=shape,
            initializer=weights.another(self.kernel_initializer),
        )

    def build(self, query_shape, value_shape, key_shape=None):
        query_dim = query_shape[-1]
        key_dim = (key_shape or value_shape)[-1]
        if self.scoring == "dot" and query_dim != key_dim:
            raise ValueError(
                'scoring="dot" needs query and key of one width; use '
                '"general" to compare widths that differ. Received: '
                f"query width {query_dim}, key width {key_dim}"
            )
        if self.scoring == "general":
            self.key_kernel = self._add_kernel(
                "key_kernel", (key_dim, query_dim)
            )
        if self.scoring == "concat":
            units = query_dim if self.units is None else self.units
            self.query_kernel = self._add_kernel(
                "query_kernel", (query_dim, units)
            )
            self.key_kernel = self._add_kernel("key_kernel", (key_dim, units))
            self.score_vector = self._add_kernel("score_vector", (units, 1))

    def project(self, key):
        """W h_s for every key; the keys themselves for "dot"."""
        weights.check_ready(self, key)
        if self.scoring == "dot":
            return key
        return ops.matmul(key, self._cast(self.key_kernel))

    def score(self, query, projected_key):
        """Section 3.1: [B, T, S]."""
        weights.check_ready(self, query)
        if self.scoring != "concat":
            return ops.matmul(query, ops.swapaxes(projected_key, 1, 2))
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
            "scoring": self.scoring,
            "units": self.units,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }
