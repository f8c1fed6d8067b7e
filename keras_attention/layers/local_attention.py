"""Luong's local attention: look near one place only."""

import keras
from keras import ops

from keras_attention.layers import (
    attention,
    masks,
    multiplicative_attention,
    weights,
)

PLACES = ("monotonic", "predictive")


@keras.saving.register_keras_serializable(package="keras_attention")
class LocalAttention(multiplicative_attention.MultiplicativeAttention):
    """Attention to a window of 2 D + 1 keys around a place p_t.

    Luong et al. 2015, section 3.2:

    ```
    local-m  p_t = t
    local-p  p_t = S sigmoid(v_p . tanh(W_p h_t))             equation 9
    align_t(s) = softmax_s(score(h_t, h_s)), p_t - D <= s <= p_t + D
    a_t(s) = align_t(s)                                       local-m
    a_t(s) = align_t(s) exp(-(s - p_t)^2 / (2 (D / 2)^2))     local-p, (10)
    ```

    | paper | here |
    |---|---|
    | local-m, local-p | `place`: "monotonic", "predictive" |
    | D | `half_width` |
    | S | the number of keys that `padding_mask` leaves |
    | W_p | `place_kernel` |
    | v_p | `place_vector` / width of the queries |
    | score | `scoring`, as in `MultiplicativeAttention` |

    Places count from 0. As in the paper, the Gaussian multiplies the weights
    that the softmax has made. So p_t has a gradient, and the weights of
    local-p do not sum to one. With a wide enough window, local-p is global
    attention.

    Deviation: v_p is divided for Adam, which the paper does not use. Undivided,
    wide queries may soon push the sigmoid to an end, where it is nearly flat.
    In one training, p_t stayed at the end of the source.

    Args:
        scoring: "dot", "general" or "concat".
        half_width: D; the paper has 10.
        place: "monotonic" or "predictive".
        units: width of W for "concat".
        kernel_initializer: initializer of all weights.

    Call arguments, masking and returns: see `Attention`. Where no key is in
    the window, weights and context are 0. `attend` takes `start`, the place of
    the first query. A decoder that goes token by token needs it for local-m.

    Raises:
        ValueError: If `place` is none of these, if `half_width` is not
            positive, and as `MultiplicativeAttention` does.

    Reference: https://arxiv.org/abs/1508.04025
    """

    def __init__(
        self,
        scoring="general",
        half_width=10,
        place="predictive",
        units=None,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(scoring, units, kernel_initializer, **kwargs)
        if place not in PLACES:
            raise ValueError(
                f"`place` must be one of {PLACES}. Received: place={place!r}"
            )
        if half_width <= 0:
            raise ValueError(
                "`half_width` must be positive. "
                f"Received: half_width={half_width}"
            )
        self.half_width = half_width
        self.place = place

    def build(self, query_shape, value_shape, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        if self.place == "predictive":
            query_dim = query_shape[-1]
            self.place_kernel = self._add_kernel(
                "place_kernel", (query_dim, query_dim)
            )
            self.place_vector = self._add_kernel("place_vector", (query_dim, 1))

    def places(self, query, lengths, start=0):
        """p_t for each query: float32 [B, T, 1].

        Args:
            query: [B, T, Dq].
            lengths: float32 [B, 1, 1], S.
            start: int scalar, the place of the first query.
        """
        if self.place == "monotonic":
            places = start + ops.arange(ops.shape(query)[1])
            return ops.cast(places, "float32")[None, :, None]
        weights.check_ready(self, query)
        hidden = ops.tanh(ops.matmul(query, self._cast(self.place_kernel)))
        share = ops.matmul(hidden, self._cast(self.place_vector))
        # v_p is place_vector / width of the queries.
        share = ops.cast(share, "float32") / self.place_vector.shape[0]
        return lengths * ops.sigmoid(share)

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
        scores = self.score(query, projected_key)  # [B, T, S]
        keys = ops.cast(ops.arange(ops.shape(value)[1]), "float32")  # [S]
        lengths = ops.ones_like(scores[:, :1, :1], dtype="float32")
        if padding_mask is None:
            lengths *= ops.cast(ops.shape(value)[1], "float32")
        else:
            real = ops.cast(padding_mask, "float32")
            lengths *= ops.sum(real, axis=1)[:, None, None]
        distances = keys - self.places(query, lengths, start)  # [B, T, S]
        window = ops.abs(distances) <= self.half_width
        if mask is not None:
            window = ops.logical_and(window, mask)
        attention_weights = attention.masked_softmax(scores, window)
        if self.place == "predictive":
            deviation = self.half_width / 2
            attention_weights *= ops.exp(-((distances / deviation) ** 2) / 2)
        context = attention.weighted_sum(attention_weights, value)
        return context, attention_weights

    def get_config(self):
        return {
            **super().get_config(),
            "half_width": self.half_width,
            "place": self.place,
        }
