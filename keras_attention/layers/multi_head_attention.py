"""Multi-head scaled dot-product attention, with its decoding cache."""

import functools
import typing

import keras
from keras import ops

from keras_attention.layers import (
    attention,
    caches,
    head_projections,
    hypotheses,
    masks,
    weights,
)
from keras_attention.layers import positions as position_layers


def _check_lengths(query, value):
    """As many keys as queries, as far as is known: else what is causal?"""
    lengths = (
        query.shape[1],
        query.shape[1] if value is None else value.shape[1],
    )
    if None not in lengths and lengths[0] != lengths[1]:
        raise ValueError(
            "`use_causal_mask` needs as many keys as queries. Received: "
            f"{lengths[1]} keys, {lengths[0]} queries"
        )


def _places(heads):
    """0 ... T - 1 for heads [B, H, T, key_dim]."""
    return ops.arange(ops.shape(heads)[2])


@keras.saving.register_keras_serializable(package="keras_attention")
class MultiHeadAttention(head_projections.HeadProjections):
    """`Concat(head_1, ..., head_h) W_O` (Vaswani et al. 2017, 3.2.2).

    `head_i = softmax(Q W_Q_i (K W_K_i)^T / sqrt(d_k)) V W_V_i`

    | paper | here |
    |---|---|
    | h | `num_heads` |
    | d_k = d_v = d_model / h | `key_dim` |
    | W_Q, W_K, W_V, W_O | `query_kernel`, ..., `output_kernel` |

    Self-attention (`value` not given) computes Q, K and V in one matrix
    product. Deviation: the projections have biases, as in the authors'
    code and in Keras; `use_bias=False` gives the paper's text.

    With `num_key_value_heads` below `num_heads`, several query heads share one
    head of keys and values: one for all in multi-query attention (Shazeer
    2019), one a group in grouped-query attention (Ainslie et al. 2023). The
    cache is smaller by the same factor. Below, G is `num_key_value_heads`.

    Decoding: `project` gives the keys and values of a memory once;
    `attend` and `attend_one` use them at many steps; `initial_cache` and
    `step` attend to the tokens produced so far. The layer is called or built
    before.

    Args:
        num_heads: number of heads.
        key_dim: width of each head; d_model / num_heads in the paper.
        dropout: rate of dropout on the attention weights.
        use_bias: whether the four projections add a bias.
        kernel_initializer: initializer of the four kernels.
        positions: a layer that puts positions into queries, keys and
            scores, such as `RotaryPositions`; see `Positions`. Without one,
            attention knows no order.
        num_key_value_heads: heads of keys and values, G; must divide
            `num_heads`. None for as many as there are query heads.

    Call arguments:
        query: [B, T, Dq].
        value: [B, S, Dv]; defaults to `query` (self-attention).
        key: [B, S, Dk]; defaults to `value`.
        padding_mask: bool [B, S], True at real keys.
        attention_mask: bool [B, T, S] or [T, S], True where a query may
            attend.
        use_causal_mask: position t attends to positions 0 ... t only
            (self-attention: S = T).
        training: whether dropout acts.
        mask, query_mask, value_mask, key_mask: bool, [B, T] or [B, S]. Keras
            fills them in.

    Returns:
        `(context, attention_weights)`: [B, T, Dq], float32 [B, H, T, S].

    Masking: where `padding_mask` is not given, the mask that Keras passes
    along with value or key takes its place (that of
    `Embedding(mask_zero=True)`, say). Masked keys have weight exactly 0. Their
    values must be finite all the same. A row with every key masked has
    weights 0. The context has the mask of the query.

    Raises:
        ValueError: If a query, value or key is not of rank 3, if a mask has
            another rank than these or holds floats, if tensors come in a
            list, if S is known not to be T with `use_causal_mask`, and if
            `num_key_value_heads` does not divide `num_heads`.

    References: https://arxiv.org/abs/1706.03762,
    https://arxiv.org/abs/1911.02150 (multi-query),
    https://arxiv.org/abs/2305.13245 (grouped-query)
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        dropout=0.0,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        positions=None,
        num_key_value_heads=None,
        **kwargs,
    ):
        super().__init__(
            num_heads,
            key_dim,
            use_bias,
            kernel_initializer,
            num_key_value_heads,
            **kwargs,
        )
        self.dropout = dropout
        self.positions = positions
        self.supports_masking = True
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )

    def __call__(self, *args, **kwargs) -> typing.Any:
        attention.check_separate(
            "layer(query=query, value=value)", [*args, *kwargs.values()]
        )
        return super().__call__(*args, **kwargs)

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        # A layer that was loaded from a file is built already.
        if self.positions is not None and not self.positions.built:
            self.positions.build((None, self.num_heads, None, self.key_dim))

    def _rotate(self, heads, start=0):
        """Queries or keys of all heads, of which the first is at `start`."""
        if self.positions is None:
            return heads
        return self.positions.rotate(heads, start + _places(heads))

    def project(self, value, key=None):
        """Keys and values by head, to attend to many times.

        Returns:
            `(key, value)`: both [B, G, S, key_dim].
        """
        weights.check_ready(self, value)
        if key is None:
            key, value = self._joined_linear(
                value,
                [self._kernel("key"), self._kernel("value")],
                [self.key_bias, self.value_bias],
            )
        else:
            key = self._linear(key, self._kernel("key"), self.key_bias)
            value = self._linear(value, self._kernel("value"), self.value_bias)
        return self._rotate(self._split_heads(key)), self._split_heads(value)

    def attend(self, query, key, value, mask=None, training=None):
        """Attends from `query` [B, T, Dq] to what `project` returned.

        `mask` is a bool that broadcasts over [B, T, S].
        """
        weights.check_ready(self, query)
        query = self._linear(query, self._kernel("query"), self.query_bias)
        return self._attend_heads(
            query=self._rotate(self._split_heads(query)),
            key=key,
            value=value,
            mask=mask,
            training=training,
        )

    def attend_one(
        self, query, key, value, mask=None, position=None, num_hypotheses=1
    ):
        """Like `attend`, for one query a row and without dropout.

        Its projections are products of two axes: around one of three axes
        TensorFlow computes shapes first.

        Args:
            query: [B, Dq].
            key, value: what `project` returned.
            mask: bool [B, S] or [1, S], True = attend.
            position: int scalar, that of the query, which a layer of
                positions needs.
            num_hypotheses: N. Keys, values and mask have a row for each N
                consecutive queries. Without a layer of positions.

        Returns:
            `(context, attention_weights)`: [B, Dq], float32 [B, H, S].

        Raises:
            ValueError: If there is a layer of positions and no position.
        """
        if self.positions is not None and position is None:
            raise ValueError(
                f"An attention with {self.positions.__class__.__name__} needs "
                "the position of the query. Received: position=None"
            )
        weights.check_ready(self, query)
        query = self._query_of_one(query, position)
        context, attention_weights = self._dot_products(
            query=hypotheses.by_text(query, num_hypotheses),
            key=key,
            value=value,
            mask=None if mask is None else mask[:, None, None],
            start=position,
        )  # [B / N, H, N, key_dim], [B / N, H, N, S]
        context = hypotheses.by_hypothesis(context, num_hypotheses)
        attention_weights = hypotheses.by_hypothesis(
            attention_weights, num_hypotheses
        )
        return self._join_heads_of_one(context), attention_weights[:, :, 0]

    def _query_of_one(self, query, position):
        """[B, Dq] -> [B, H, 1, key_dim]."""
        query = self._linear(query, self._kernel("query"), self.query_bias)
        return self._rotate(self._heads_of_one(query), position)

    def _dot_products(self, query, key, value, mask, start=0, dropout=None):
        """Equation 1, by the layer of positions where there is one."""
        if self.positions is None:
            return attention.dot_product_attention(
                query=query, key=key, value=value, mask=mask, dropout=dropout
            )
        return self.positions.attend(
            query=query,
            key=key,
            value=value,
            query_positions=start + _places(query),
            key_positions=_places(key),
            mask=mask,
            dropout=dropout,
        )

    def _attend_heads(self, query, key, value, mask, training):
        if mask is not None:
            mask = ops.expand_dims(mask, 1)  # [B, 1, T, S]
        dropout = None
        if self.dropout > 0:
            dropout = functools.partial(self.dropout_layer, training=training)
        context, attention_weights = self._dot_products(
            query=query, key=key, value=value, mask=mask, dropout=dropout
        )  # [B, H, T, key_dim], [B, H, T, S]
        return self._join_heads(context), attention_weights

    def initial_cache(self, batch_size, max_length):
        """Room for the keys and values of `max_length` tokens to come."""
        return caches.empty(
            batch_size,
            self.num_key_value_heads,
            max_length,
            self.key_dim,
            self.compute_dtype,
        )

    def can_settle(self, cache):
        """Whether `step` takes the first tokens of a cache as `settled`."""
        known = self.positions is None or self.positions.only_rotates
        return known and caches.can_settle(cache)

    def step(self, query, cache, position, settled=None, num_hypotheses=1):
        """Causal self-attention of one more token.

        Args:
            query: [B, Dq], the token at `position`.
            cache: as `initial_cache` or the last `step` returned it.
            position: int scalar, 0 for the first token.
            settled: `GrowingCache` of the tokens before those of the cache,
                one row for each `num_hypotheses` queries; see `caches.settle`.
                See `can_settle`.
            num_hypotheses: N.

        Returns:
            `(context, attention_weights, cache)`: [B, Dq], [B, H, cached]
            and the cache with this token in it. With `settled`, the weights
            are of these tokens, too.
        """
        weights.check_ready(self, query)
        # One by one: kernels that are joined would be copied at each step.
        key = self._linear(query, self._kernel("key"), self.key_bias)
        value = self._linear(query, self._kernel("value"), self.value_bias)
        cache, mask = caches.write(
            cache,
            key=self._rotate(self._heads_of_one(key), position),
            value=self._heads_of_one(value),
            position=position,
        )
        if settled is not None:
            context, attention_weights = hypotheses.attend_to_parts(
                self._query_of_one(query, position),
                hypotheses.Parts(settled.key, cache.key),
                hypotheses.Parts(settled.value, cache.value),
                num_hypotheses,
            )
            context = self._join_heads_of_one(context)
            return context, attention_weights[:, :, 0], cache
        context, attention_weights = self.attend_one(
            query=query,
            key=cache.key,
            value=cache.value,
            mask=mask,
            position=position,
        )
        return context, attention_weights, cache

    def call(
        self,
        query,
        value=None,
        key=None,
        padding_mask=None,
        attention_mask=None,
        use_causal_mask=False,
        training=None,
        mask=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
    ):
        attention.check_sequences(query=query, value=value, key=key)
        if padding_mask is None:
            if value is None:
                # Keras calls the mask of a single tensor `mask`.
                value_mask = mask if query_mask is None else query_mask
            padding_mask = masks.either_or_both(value_mask, key_mask)
        allowed = masks.combine_masks(padding_mask, attention_mask)
        if use_causal_mask:
            _check_lengths(query, value)
            causal = masks.causal_mask(ops.shape(query)[1])
            if allowed is not None:
                causal = ops.logical_and(allowed, causal)
            allowed = causal
        if value is None and key is None:
            query, key, value = self._joined_linear(
                query,
                [
                    self._kernel("query"),
                    self._kernel("key"),
                    self._kernel("value"),
                ],
                [self.query_bias, self.key_bias, self.value_bias],
            )
            return self._attend_heads(
                query=self._rotate(self._split_heads(query)),
                key=self._rotate(self._split_heads(key)),
                value=self._split_heads(value),
                mask=allowed,
                training=training,
            )
        value = query if value is None else value
        key, value = self.project(value=value, key=key)
        return self.attend(
            query=query, key=key, value=value, mask=allowed, training=training
        )

    def compute_output_shape(
        self, query_shape, value_shape=None, key_shape=None
    ):
        source_length = (value_shape or query_shape)[1]
        weights = (
            query_shape[0],
            self.num_heads,
            query_shape[1],
            source_length,
        )
        return tuple(query_shape), weights

    def compute_output_spec(self, query, value=None, key=None, *args, **kwargs):
        attention.check_sequences(query=query, value=value, key=key)
        masks.refuse_floats(*args, *kwargs.values())
        source = query if value is None else value
        shapes = self.compute_output_shape(query.shape, source.shape)
        return attention.output_spec(shapes, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "dropout": self.dropout,
            "positions": position_layers.serialize(self.positions),
        }

    @classmethod
    def from_config(cls, config):
        return cls(**position_layers.deserialize(config))
