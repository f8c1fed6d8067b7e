"""Attention of a search's hypotheses, N for each text, to what they share.

Each hypothesis has a row of its own, [B * N, ...]. The source is one for all
hypotheses of a text, and so is what all of them began with: of these there is
one row for each text, [B, ...].
"""

import math
import typing

from keras import ops

from keras_attention.layers import attention


class Parts(typing.NamedTuple):
    """The keys, or the values, of what each hypothesis holds so far.

    - `shared`: [B, G, S, key_dim], the first S tokens, which are the same in
      all hypotheses of a text;
    - `own`: [B * N, G, T, key_dim], the T tokens after these, at least one.
    """

    shared: typing.Any
    own: typing.Any


def by_text(rows, num_hypotheses):
    """[B * N, H, 1, D] -> [B, H, N, D]."""
    if num_hypotheses == 1:
        return rows
    _, num_heads, _, width = ops.shape(rows)
    shape = (-1, num_hypotheses, num_heads, width)
    return ops.swapaxes(ops.reshape(rows, shape), 1, 2)


def by_hypothesis(texts, num_hypotheses):
    """[B, H, N, D] -> [B * N, H, 1, D]."""
    if num_hypotheses == 1:
        return texts
    num_texts, num_heads, _, width = ops.shape(texts)
    shape = (num_texts * num_hypotheses, num_heads, 1, width)
    return ops.reshape(ops.swapaxes(texts, 1, 2), shape)


def attend_to_parts(query, key, value, num_hypotheses):
    """`attention.dot_product_attention` of one query a hypothesis.

    Args:
        query: [B * N, H, 1, key_dim].
        key, value: `Parts`; heads may share one of theirs.
        num_hypotheses: N.

    Returns:
        `(context, attention_weights)`: [B * N, H, 1, key_dim], float32
        [B * N, H, 1, S + T].
    """
    query = query * (1.0 / math.sqrt(query.shape[-1]))
    own = attention.matmul_of_heads(query, ops.swapaxes(key.own, -1, -2))
    shared = attention.matmul_of_heads(
        by_text(query, num_hypotheses), ops.swapaxes(key.shared, -1, -2)
    )
    attention_weights = attention.masked_softmax(
        ops.concatenate([shared, by_text(own, num_hypotheses)], axis=-1)
    )
    length = ops.shape(key.shared)[2]
    shared = attention.weighted_sum(
        attention_weights[..., :length], value.shared
    )
    own = by_hypothesis(attention_weights[..., length:], num_hypotheses)
    own = attention.weighted_sum(own, value.own)
    return (
        by_hypothesis(shared, num_hypotheses) + own,
        by_hypothesis(attention_weights, num_hypotheses),
    )
