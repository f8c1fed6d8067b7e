"""Monotonic attention: at each key, a cursor stops or moves on."""

import keras
from keras import ops

from keras_attention.layers import additive_attention, attention, masks, weights

# A score of this size is a probability of exactly 1, or of 0. Sums of many are
# still exact in float32.
SURE = 200.0


@keras.saving.register_keras_serializable(package="keras_attention")
class MonotonicAttention(additive_attention.AdditiveAttention):
    """Attention by a cursor that never goes back.

    Each query goes on from the key where the query before stopped. At each key
    it stops with probability p, or moves on. Raffel et al. 2017, section 2:

    ```
    e_ij = g v . tanh(W s_{i-1} + U h_j + b) / |v| + r
    p_ij = sigmoid(e_ij)
    q_ij = (1 - p_{i,j-1}) q_{i,j-1} + a_{i-1,j}
    a_ij = p_ij q_ij
    ```

    q_ij is the probability that the cursor arrives at key j, and a_ij that it
    stops there. A cursor that passes the last key stops nowhere: a row of
    weights sums to at most one. Before the first query it stands at the first
    key.

    | paper | here |
    |---|---|
    | s_{i-1}, h_j | `query`, `key` and `value` |
    | W, U, v | `query_kernel`, `key_kernel`, `score_vector` |
    | b, g, r | `bias`, `scale`, `level` |
    | a_i | `attention_weights` |

    In training, normal noise makes the network choose p near 0 or 1. Then
    `hard=True` changes little, which stops at the first key with p > 1/2 and
    works while the keys are still coming.

    Args:
        units: width of the comparison.
        noise: standard deviation of the noise on e in training; the paper has
            1.
        offset: r before training. Below 0, a cursor without training moves on.
        kernel_initializer: initializer of W, U and v.

    Call arguments, masking and returns: see `Attention`; `training`, whether
    there is noise, and `hard`, whether the cursor stops for sure. The cursor
    passes masked keys. `attend` also takes `previous`, the weights [B, S] of
    the query before, for a decoder that goes token by token.

    Raises:
        ValueError: If `units` is not positive or `noise` is below 0, and as
            `Attention` does.

    Reference: https://arxiv.org/abs/1704.00784
    """

    def __init__(
        self,
        units,
        noise=1.0,
        offset=-1.0,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(units, kernel_initializer, **kwargs)
        if noise < 0:
            raise ValueError(
                f"`noise` must be at least 0. Received: noise={noise}"
            )
        self.noise = noise
        self.offset = offset
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, query_shape, value_shape, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        self.bias = self.add_weight(
            name="bias", shape=(self.units,), initializer="zeros"
        )
        self.scale = self.add_weight(
            name="scale",
            shape=(),
            # 1 / sqrt(units): so |e - r| is at most 1 before training.
            initializer=keras.initializers.Constant(self.units**-0.5),
        )
        self.level = self.add_weight(
            name="level",
            shape=(),
            initializer=keras.initializers.Constant(self.offset),
        )

    def score(self, query, projected_key):
        """e without noise: float32 [B, T, S]."""
        weights.check_ready(self, query)
        query = ops.matmul(query, self._cast(self.query_kernel))
        query += self._cast(self.bias)
        compared = ops.tanh(
            ops.expand_dims(query, 2) + ops.expand_dims(projected_key, 1)
        )  # [B, T, S, units]
        vector = ops.cast(self.score_vector, "float32")
        # Not in place: PyTorch would divide the weight itself.
        vector = vector / ops.sqrt(ops.sum(vector**2))
        scores = ops.matmul(compared, ops.cast(vector, compared.dtype))
        scores = ops.cast(ops.squeeze(scores, -1), "float32")
        return ops.cast(self.scale, "float32") * scores + ops.cast(
            self.level, "float32"
        )

    def stop(self, previous, scores):
        """a_i, from a_{i-1} and e_i: where the cursor stops next.

        Args:
            previous: float32 [B, S], where it stopped before.
            scores: float32 [B, S].

        Returns:
            float32 [B, S].
        """
        # log of the probability that the cursor passes keys before j.
        passes = ops.log_sigmoid(-scores)
        passed = ops.cumsum(passes, axis=1) - passes  # [B, S]
        # From where the query before stopped, k, to j.
        from_to = passed[:, None, :] - passed[:, :, None]  # [B, k, j]
        places = ops.arange(ops.shape(scores)[1])
        forward = places[:, None] <= places[None, :]
        from_to = ops.where(forward, from_to, attention.MASKED_SCORE)
        arrives = ops.einsum("bk,bkj->bj", previous, ops.exp(from_to))
        return ops.sigmoid(scores) * arrives

    def attend(
        self,
        query,
        projected_key,
        value,
        padding_mask=None,
        attention_mask=None,
        previous=None,
        training=False,
        hard=False,
    ):
        mask = masks.combine_masks(padding_mask, attention_mask)
        scores = self.score(query, projected_key)  # [B, T, S]
        if training and self.noise and not hard:
            noise = keras.random.normal(
                ops.shape(scores), dtype="float32", seed=self.seed_generator
            )
            scores += self.noise * noise
        if hard:
            scores = ops.where(scores > 0, SURE, -SURE)
        if mask is not None:
            scores = ops.where(ops.cast(mask, "bool"), scores, -SURE)
        if previous is None:
            first = ops.equal(ops.arange(ops.shape(scores)[2]), 0)
            previous = ops.zeros_like(scores[:, 0]) + ops.cast(first, "float32")

        def step(previous, scores):
            stops = self.stop(previous, scores)
            return stops, stops

        _, stops = ops.scan(step, previous, ops.swapaxes(scores, 0, 1))
        attention_weights = ops.swapaxes(stops, 0, 1)  # [B, T, S]
        context = attention.weighted_sum(attention_weights, value)
        return context, attention_weights

    def call(
        self,
        query,
        value,
        key=None,
        padding_mask=None,
        attention_mask=None,
        value_mask=None,
        key_mask=None,
        hard=False,
        training=None,
    ):
        attention.check_sequences(query=query, value=value, key=key)
        if padding_mask is None:
            padding_mask = masks.either_or_both(value_mask, key_mask)
        return self.attend(
            query=query,
            projected_key=self.project(value if key is None else key),
            value=value,
            padding_mask=padding_mask,
            attention_mask=attention_mask,
            training=training,
            hard=hard,
        )

    def get_config(self):
        return {
            **super().get_config(),
            "noise": self.noise,
            "offset": self.offset,
        }
