"""Hard-coded attention: each query looks at one place on the diagonal."""

import keras
from keras import ops

from keras_attention.layers import attention, masks


@keras.saving.register_keras_serializable(package="keras_attention")
class DiagonalAttention(attention.Attention):
    """Attention along a line that nobody learned.

    ```
    a_ts = 1 if s = min(floor(ratio t + 1/2), S - 1), else 0
    c_t  = value at that s
    ```

    It is what a decoder can do with a cursor that moves at one speed. It serves
    as the baseline of every attention that is learned: it solves tasks whose
    words stay in order, and no others. It has no weights, and reads neither
    query nor key.

    Args:
        ratio: how many keys the cursor passes for each query, 1 by default.

    Call arguments, masking and returns: see `Attention`. Places count the keys
    that `padding_mask` leaves from 0, and S is their number. A query whose key
    `attention_mask` forbids has weights and context 0. `attend` takes `start`,
    the place of the first query, for a decoder that goes token by token.

    Raises:
        ValueError: If `ratio` is not positive, and as `Attention` does.
    """

    def __init__(self, ratio=1.0, **kwargs):
        super().__init__(**kwargs)
        if not ratio > 0:
            raise ValueError(
                f"`ratio` must be positive. Received: ratio={ratio}"
            )
        self.ratio = ratio

    def build(self, query_shape, value_shape, key_shape=None):
        """There are no weights."""

    def attend(
        self,
        query,
        projected_key,
        value,
        padding_mask=None,
        attention_mask=None,
        start=0,
    ):
        mask = masks.combine_masks(padding_mask, attention_mask)
        shape = ops.shape(value)[:2]
        real = ops.ones(shape, "bool") if padding_mask is None else padding_mask
        # The place of each key among the real ones, and -1 at all others.
        real = ops.cast(ops.cast(real, "bool"), "int32")
        places = ops.where(real > 0, ops.cumsum(real, axis=1) - 1, -1)  # [B, S]
        lengths = ops.sum(real, axis=1)[:, None]  # [B, 1]
        queries = ops.cast(start + ops.arange(ops.shape(query)[1]), "float32")
        cursor = ops.cast(ops.floor(self.ratio * queries + 0.5), "int32")  # [T]
        cursor = ops.minimum(cursor[None, :], lengths - 1)  # [B, T]
        looked_at = ops.equal(places[:, None, :], cursor[:, :, None])
        if mask is not None:
            looked_at = ops.logical_and(looked_at, mask)
        attention_weights = ops.cast(looked_at, "float32")  # [B, T, S]
        context = attention.weighted_sum(attention_weights, value)
        return context, attention_weights

    def get_config(self):
        return {**super().get_config(), "ratio": self.ratio}
