"""Multi-head scaled dot-product attention, with its decoding cache."""

import functools
import math

import keras
from keras import ops

from keras_attention.layers import attention, masks


def dot_product_attention(query, key, value, mask=None, dropout=None):
    """`softmax(Q K^T / sqrt(d_k)) V` (Vaswani et al. 2017, equation 1).

    Args:
        query: [..., T, d_k].
        key: [..., S, d_k].
        value: [..., S, d_v].
        mask: bool that broadcasts over [..., T, S], True = attend.
        dropout: optional function of the weights, applied before the sum.

    Returns:
        `(context, attention_weights)`: [..., T, d_v], float32 [..., T, S].
    """
    query = query * (1.0 / math.sqrt(query.shape[-1]))
    scores = ops.matmul(query, ops.swapaxes(key, -1, -2))
    attention_weights = attention.masked_softmax(scores, mask)
    kept = attention_weights if dropout is None else dropout(attention_weights)
    return attention.weighted_sum(kept, value), attention_weights


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


@keras.saving.register_keras_serializable(package="keras_attention")
class MultiHeadAttention(keras.layers.Layer):
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

    Decoding: `project` gives the keys and values of a memory once;
    `attend` and `attend_one` use them at many steps; `initial_cache` and
    `step` attend to the tokens produced so far.

    Args:
        num_heads: number of heads.
        key_dim: width of each head; d_model / num_heads in the paper.
        dropout: rate of dropout on the attention weights.
        use_bias: whether the four projections add a bias.
        kernel_initializer: initializer of the four kernels.

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

    Returns:
        `(context, attention_weights)`: [B, T, Dq], float32 [B, H, T, S].

    Masking: explicit masks only, none that Keras passes along. Masked keys
    have weight exactly 0 (their values must be finite all the same); a row
    with every key masked has weights 0.

    Errors: `ValueError` for a query, value or key that is not of rank 3, for
    a mask of another rank than these, and for `use_causal_mask` where S is
    known not to be T.

    Reference: https://arxiv.org/abs/1706.03762
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        dropout=0.0,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_heads < 1 or key_dim < 1:
            raise ValueError(
                "`num_heads` and `key_dim` must be positive integers. "
                f"Received: num_heads={num_heads}, key_dim={key_dim}"
            )
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.dropout = dropout
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )

    def build(self, query_shape, value_shape=None, key_shape=None):
        value_shape = value_shape or query_shape
        key_shape = key_shape or value_shape
        query_dim, inner_dim = query_shape[-1], self.num_heads * self.key_dim
        self._add_projection("query", query_dim, inner_dim)
        self._add_projection("key", key_shape[-1], inner_dim)
        self._add_projection("value", value_shape[-1], inner_dim)
        self._add_projection("output", inner_dim, query_dim)

    def _add_projection(self, name, input_dim, output_dim):
        kernel = self.add_weight(
            name=f"{name}_kernel",
            shape=(input_dim, output_dim),
            initializer=self.kernel_initializer.clone(),
        )
        setattr(self, f"{name}_kernel", kernel)
        if self.use_bias:
            bias = self.add_weight(
                name=f"{name}_bias", shape=(output_dim,), initializer="zeros"
            )
            setattr(self, f"{name}_bias", bias)

    def _weight(self, name):
        # Keras casts by itself in `call`, but not in `project` and `step`.
        return ops.cast(getattr(self, name), self.compute_dtype)

    def _project(self, inputs, *names):
        """One matrix product for all the named projections of `inputs`."""
        kernels = [self._weight(f"{name}_kernel") for name in names]
        fused = len(kernels) > 1
        kernel = ops.concatenate(kernels, axis=1) if fused else kernels[0]
        outputs = ops.matmul(inputs, kernel)
        if self.use_bias:
            biases = [self._weight(f"{name}_bias") for name in names]
            outputs += ops.concatenate(biases, axis=0) if fused else biases[0]
        return ops.split(outputs, len(names), axis=-1) if fused else outputs

    def _split_heads(self, inputs):
        batch, length = ops.shape(inputs)[:2]
        heads = (batch, length, self.num_heads, self.key_dim)
        return ops.transpose(ops.reshape(inputs, heads), (0, 2, 1, 3))

    def _heads_of_one(self, inputs):
        """[B, H * key_dim] -> [B, H, 1, key_dim]."""
        return ops.reshape(inputs, (-1, self.num_heads, 1, self.key_dim))

    def project(self, value, key=None):
        """Keys and values by head, to attend to many times.

        Returns:
            `(key, value)`: both [B, H, S, key_dim].
        """
        if key is None:
            key, value = self._project(value, "key", "value")
        else:
            key = self._project(key, "key")
            value = self._project(value, "value")
        return self._split_heads(key), self._split_heads(value)

    def attend(self, query, key, value, mask=None, training=None):
        """Attends from `query` [B, T, Dq] to what `project` returned.

        `mask` is a bool that broadcasts over [B, T, S].
        """
        query = self._split_heads(self._project(query, "query"))
        return self._attend_heads(
            query=query, key=key, value=value, mask=mask, training=training
        )

    def attend_one(self, query, key, value, mask=None):
        """Like `attend`, for one query a row and without dropout.

        Its projections are products of two axes: around one of three axes
        TensorFlow computes shapes first.

        Args:
            query: [B, Dq].
            key, value: what `project` returned.
            mask: bool [B, S] or [1, S], True = attend.

        Returns:
            `(context, attention_weights)`: [B, Dq], float32 [B, H, S].
        """
        context, attention_weights = dot_product_attention(
            query=self._heads_of_one(self._project(query, "query")),
            key=key,
            value=value,
            mask=None if mask is None else mask[:, None, None],
        )  # [B, H, 1, key_dim], [B, H, 1, S]
        joined = (-1, self.num_heads * self.key_dim)
        context = self._project(ops.reshape(context, joined), "output")
        return context, attention_weights[:, :, 0]

    def _attend_heads(self, query, key, value, mask, training):
        if mask is not None:
            mask = ops.expand_dims(mask, 1)  # [B, 1, T, S]
        dropout = None
        if self.dropout > 0:
            dropout = functools.partial(self.dropout_layer, training=training)
        context, attention_weights = dot_product_attention(
            query=query, key=key, value=value, mask=mask, dropout=dropout
        )  # [B, H, T, key_dim], [B, H, T, S]
        context = ops.transpose(context, (0, 2, 1, 3))
        batch, length = ops.shape(context)[:2]
        joined = (batch, length, self.num_heads * self.key_dim)
        context = self._project(ops.reshape(context, joined), "output")
        return context, attention_weights

    def initial_cache(self, batch_size, max_length):
        """Room for the keys and values of `max_length` tokens to come.

        Where TensorFlow does not know `max_length` when it makes the graph,
        the cache is empty and grows: at each write in a loop TensorFlow
        copies the whole room, while joining copies what is filled.
        """
        shape = (batch_size, self.num_heads, max_length, self.key_dim)
        cache = [ops.zeros(shape, self.compute_dtype) for _ in range(2)]
        if cache[0].shape[2] is None:
            cache = [room[:, :, : 0 * max_length] for room in cache]
        return tuple(cache)

    def step(self, query, cache, position):
        """Causal self-attention of one more token.

        A cache of known length has room for so many tokens and no more.

        Args:
            query: [B, Dq], the token at `position`.
            cache: as `initial_cache` or the last `step` returned it, in the
                same graph: whether its length is known tells how to write.
            position: int scalar, 0 for the first token.

        Returns:
            `(context, attention_weights, cache)`: [B, Dq], [B, H, cached]
            and the cache with this token in it.
        """
        # One by one: kernels that are joined would be copied at each step.
        added = [
            self._heads_of_one(self._project(query, name))
            for name in ("key", "value")
        ]
        mask = None
        if cache[0].shape[2] is None:
            cache = [
                ops.concatenate(pair, axis=2)
                for pair in zip(cache, added, strict=True)
            ]
        else:
            cache = [
                ops.slice_update(room, (0, 0, position, 0), token)
                for room, token in zip(cache, added, strict=True)
            ]
            mask = (ops.arange(cache[0].shape[2]) <= position)[None, :]
        key, value = cache
        context, attention_weights = self.attend_one(
            query=query, key=key, value=value, mask=mask
        )
        return context, attention_weights, tuple(cache)

    def call(
        self,
        query,
        value=None,
        key=None,
        padding_mask=None,
        attention_mask=None,
        use_causal_mask=False,
        training=None,
    ):
        attention.check_sequences(query=query, value=value, key=key)
        mask = masks.combine_masks(padding_mask, attention_mask)
        if use_causal_mask:
            _check_lengths(query, value)
            causal = masks.causal_mask(ops.shape(query)[1])
            mask = causal if mask is None else ops.logical_and(mask, causal)
        if value is None and key is None:
            query, key, value = self._project(query, "query", "key", "value")
            return self._attend_heads(
                query=self._split_heads(query),
                key=self._split_heads(key),
                value=self._split_heads(value),
                mask=mask,
                training=training,
            )
        value = query if value is None else value
        key, value = self.project(value=value, key=key)
        return self.attend(
            query=query, key=key, value=value, mask=mask, training=training
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
        source = query if value is None else value
        shapes = self.compute_output_shape(query.shape, source.shape)
        return attention.output_spec(shapes, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }
