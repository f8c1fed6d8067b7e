"""What searches share: the result, penalties, forced scores, buffers."""

import collections

from keras import ops

from keras_attention.tokens import PAD

# Stands for log 0: far below any log-probability, and finite, so that sums
# of two stay finite and nothing becomes NaN.
IMPOSSIBLE = -1e9

SearchResult = collections.namedtuple(
    "SearchResult",
    ["ids", "lengths", "log_probability", "score", "attention_weights"],
)
SearchResult.__doc__ = """Hypotheses of a search, best first.

- `ids`: int32 [B, N, L], END included, then PAD.
- `lengths`: int32 [B, N], END included; 0 where there is no N-th hypothesis,
  whose log-probability and score are then -1e9.
- `log_probability`: float32 [B, N], sum of the tokens' log p, END included.
- `score`: float32 [B, N], the log-probability after the penalties.
- `attention_weights`: float32 [B, N, L, S], 0 after END; S is 0 without a
  source.
"""

Rules = collections.namedtuple(
    "Rules", ["max_lengths", "end_id", "forbidden_ids", "prefix_ids", "pad_id"]
)
Rules.__doc__ = """Which tokens a hypothesis may hold.

- `max_lengths`: int32 [B]; a row at its limit can only end.
- `end_id`: id of END.
- `forbidden_ids`: ids that are never chosen.
- `prefix_ids`: int32 [B, P], the tokens that each row begins with, then
  `pad_id`; or None.
"""


def check_penalties(alpha, beta):
    """Raises `ValueError` for a penalty that would be a reward."""
    if alpha < 0 or beta < 0:
        raise ValueError(
            "Expected alpha >= 0 and beta >= 0. "
            f"Received: alpha={alpha}, beta={beta}"
        )


def check_end(end_id, forbidden_ids):
    """Raises `ValueError` where no hypothesis could end."""
    if end_id in forbidden_ids:
        raise ValueError(
            "Expected an end_id that is not forbidden: each answer ends in "
            f"it. Received: end_id={end_id}, forbidden_ids={forbidden_ids}"
        )


def row_limits(max_lengths):
    """The most tokens of each row, int32 [B]; `ValueError` for another rank."""
    max_lengths = ops.cast(max_lengths, "int32")
    if len(max_lengths.shape) != 1:
        raise ValueError(
            "Expected `max_lengths` to hold one limit for each row: shape "
            f"[batch]. Received: shape {tuple(max_lengths.shape)}"
        )
    return max_lengths


def prefix_rows(prefix_ids):
    """The given tokens of each row, int32 [B, P], or None.

    Raises:
        ValueError: If `prefix_ids` has another rank.
    """
    if prefix_ids is None:
        return None
    prefix_ids = ops.cast(prefix_ids, "int32")
    if len(prefix_ids.shape) != 2:
        raise ValueError(
            "Expected `prefix_ids` to hold one row of ids for each answer: "
            "shape [batch, length]. Received: shape "
            f"{tuple(prefix_ids.shape)}"
        )
    return prefix_ids


def source_rows(source_mask, batch_size):
    """The mask of the source, bool [B, S]; [B, 0] where there is none."""
    if source_mask is None:
        return ops.zeros((batch_size, 0), dtype="bool")
    return source_mask


def without_source(step):
    """A language model's step, as a search takes it.

    Args:
        step: `step(token_ids, state)` -> `(logits, state)`.

    Returns:
        `step(token_ids, memory, state)` -> `(logits, state, None)`.
    """

    def step_without_source(token_ids, memory, state):
        logits, state = step(token_ids, state)
        return logits, state, None

    return step_without_source


def length_penalty(lengths, alpha):
    """`lp(Y) = ((5 + |Y|) / 6)^alpha` (Wu et al. 2016, equation 14).

    `|Y|` counts END. Reference: https://arxiv.org/abs/1609.08144
    """
    return ((5.0 + ops.cast(lengths, "float32")) / 6.0) ** alpha


def coverage_penalty(attention_sum, source_mask, beta):
    """`cp = beta sum_i log(min(sum_j p_ij, 1))` (Wu et al. 2016, eq. 14).

    Args:
        attention_sum: [..., S], weights summed over the target.
        source_mask: bool that broadcasts over it, True at real tokens.
        beta: weight of the penalty.

    Returns:
        [...], at most 0: 0 where each source token got weight 1 in all.
    """
    logs = ops.log(ops.clip(attention_sum, 1e-9, 1.0))
    return beta * ops.sum(ops.where(source_mask, logs, 0.0), axis=-1)


def sequence_log_probability(logits, labels, pad_id=PAD):
    """Forced scores: log p of given labels.

    Args:
        logits: [B, T, V].
        labels: int [B, T], END included, then `pad_id`.
        pad_id: the id that does not count.

    Returns:
        `(log_probability, num_tokens)`: float32 [B] and int32 [B].
    """
    log_probs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    chosen = ops.take_along_axis(log_probs, labels[..., None], axis=-1)
    real = ops.not_equal(labels, pad_id)
    total = ops.sum(ops.where(real, ops.squeeze(chosen, -1), 0.0), axis=-1)
    return total, ops.sum(ops.cast(real, "int32"), axis=-1)


def given_tokens(rules, position):
    """The prefix at one position.

    A prefix that leaves no room for END is cut.

    Returns:
        `(token_ids, given)`: int32 [B], and bool [B], whether the row's
        prefix reaches that far.
    """
    # One more column, for all positions behind the prefix.
    padded = ops.pad(
        rules.prefix_ids, ((0, 0), (0, 1)), constant_values=rules.pad_id
    )
    last = ops.shape(padded)[1] - 1
    token_ids = ops.take(padded, ops.minimum(position, last), axis=1)
    given = ops.logical_and(
        ops.not_equal(token_ids, rules.pad_id),
        position + 1 < rules.max_lengths,
    )
    return token_ids, given


def num_chosen(rules, lengths):
    """How many tokens of a hypothesis were chosen, not given.

    Args:
        rules: `Rules`.
        lengths: int32 [B, N] or [], END included.
    """
    if rules.prefix_ids is None:
        return lengths
    given = ops.not_equal(rules.prefix_ids, rules.pad_id)
    num_given = ops.sum(ops.cast(given, "int32"), axis=1)
    num_given = ops.minimum(num_given, rules.max_lengths - 1)
    return ops.maximum(lengths - num_given[:, None], 0)


def allowed_log_probs(logits, position, rules):
    """Log-probabilities of the next token, before any choice.

    Args:
        logits: [B, V].
        position: int scalar, how many tokens stand before it.
        rules: `Rules`.

    Returns:
        float32 [B, V]. What is forbidden is at log 0; the rest is not
        normalised again, so that sums equal forced scores. A given token is
        at log 1, all others at log 0.
    """
    log_probs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    ids = ops.arange(logits.shape[-1])
    for forbidden_id in rules.forbidden_ids:
        log_probs = ops.where(ids == forbidden_id, IMPOSSIBLE, log_probs)
    must_end = (position + 1 >= rules.max_lengths)[:, None]
    impossible = ops.logical_and(must_end, (ids != rules.end_id)[None, :])
    log_probs = ops.where(impossible, IMPOSSIBLE, log_probs)
    if rules.prefix_ids is None:
        return log_probs
    token_ids, given = given_tokens(rules, position)
    certain = ops.where(ids == token_ids[:, None], 0.0, IMPOSSIBLE)
    return ops.where(given[:, None], certain, log_probs)


def pick(values, places):
    """`values[b, places[b, k]]`, in few operations.

    (`ops.take_along_axis` makes about twenty for shapes, at each step.)

    Args:
        values: [B, V, ...].
        places: int32 [B, K], from 0.

    Returns:
        [B, K, ...].
    """
    batch_size, size, *rest = ops.shape(values)
    firsts = ops.arange(batch_size, dtype="int32") * size
    rows = ops.reshape(values, (batch_size * size, *rest))
    return ops.take(rows, firsts[:, None] + places, axis=0)


def top_k(values, k):
    """The k greatest of each row and their places, greatest first.

    In two rounds, as sorting k out of a vocabulary is slow: the k blocks
    with the greatest maxima hold the k greatest values.

    Args:
        values: [B, V].
        k: how many; at most V come out.

    Returns:
        `(values, indices)`: [B, k], int32 [B, k].
    """
    size = values.shape[-1]
    k = min(k, size)
    # About 100 blocks; a small V, or one without such a divisor: one round.
    num_blocks = next((n for n in range(80, 161) if size % n == 0), size)
    if num_blocks == size or k >= num_blocks:
        best, indices = ops.top_k(values, k)
        return best, ops.cast(indices, "int32")
    width = size // num_blocks
    blocks = ops.reshape(values, (-1, num_blocks, width))
    _, chosen = ops.top_k(ops.max(blocks, axis=-1), k)
    chosen = ops.cast(ops.sort(chosen, axis=-1), "int32")
    places = chosen[:, :, None] * width + ops.arange(width, dtype="int32")
    places = ops.reshape(places, (-1, k * width))
    best, indices = ops.top_k(pick(values, places), k)
    return best, pick(places, ops.cast(indices, "int32"))


def best_extensions(logits, count, position, rules):
    """The next tokens worth a look: the `count` best ones, and END.

    The same log-probabilities as `allowed_log_probs`, of these tokens only,
    without sorting the vocabulary.

    Args:
        logits: [B, V].
        count: how many beside END.
        position, rules: see `allowed_log_probs`.

    Returns:
        `(log_probs, token_ids)`: float32 and int32 [B, C], best first, END
        last: of equals it is the last choice. A given token comes first, at
        log 1; all else is then at log 0.
    """
    logits = ops.cast(logits, "float32")
    # Some of the best may be forbidden, or be END.
    best, token_ids = top_k(logits, count + len(rules.forbidden_ids) + 1)
    # log(sum(exp)) is the greatest logit less the log of its probability:
    # a softmax is one operation in TensorFlow, exp and sum are two.
    greatest = pick(ops.softmax(logits, axis=-1), token_ids[:, :1])
    normaliser = best[:, :1] - ops.log(greatest)
    left_out = (position + 1 >= rules.max_lengths)[:, None]
    for token_id in (*rules.forbidden_ids, rules.end_id):
        left_out = ops.logical_or(left_out, ops.equal(token_ids, token_id))
    best = ops.where(left_out, IMPOSSIBLE, best - normaliser)
    end = logits[:, rules.end_id, None] - normaliser
    log_probs = ops.concatenate([best, end], axis=1)
    end_ids = ops.full_like(token_ids[:, :1], rules.end_id)
    token_ids = ops.concatenate([token_ids, end_ids], axis=1)
    if rules.prefix_ids is None:
        return log_probs, token_ids
    given_ids, given = given_tokens(rules, position)
    first = ops.arange(token_ids.shape[-1]) == 0
    certain = ops.where(first, 0.0, IMPOSSIBLE)[None, :]
    return (
        ops.where(given[:, None], certain, log_probs),
        ops.where(given[:, None], given_ids[:, None], token_ids),
    )


def weights_over_source(attention_weights, shape):
    """Weights [B, S] of a step, from [B, S] or [B, H, S]; 0 from None."""
    if attention_weights is None:
        return ops.zeros(shape, dtype="float32")
    if len(attention_weights.shape) == 3:
        return ops.mean(attention_weights, axis=1)
    return attention_weights


def empty_rows(batch_size, max_length, *shape, value=0, dtype="float32"):
    """A buffer for `write`: [B, max_length, ...], filled with `value`.

    Where TensorFlow does not know `max_length` when it makes the graph, the
    buffer is [B, 0, ...] and grows: at each write in a loop TensorFlow copies
    the whole room, while joining copies what is filled.
    """
    buffer = ops.full((batch_size, max_length, *shape), value, dtype=dtype)
    if buffer.shape[1] is None:
        return buffer[:, : 0 * max_length]
    return buffer


def write(buffer, position, values):
    """Puts `values` [B, ...] at `buffer[:, position]`."""
    values = ops.expand_dims(values, 1)
    if buffer.shape[1] is None:
        return ops.concatenate([buffer, values], axis=1)
    start = (0, position, *(0 for _ in buffer.shape[2:]))
    return ops.slice_update(buffer, start, values)


def fill(buffer, max_length, value=0):
    """A buffer that grew, as one that had room for `max_length`."""
    batch_size, length = ops.shape(buffer)[:2]
    rest = (batch_size, max_length - length, *ops.shape(buffer)[2:])
    return ops.concatenate(
        [buffer, ops.full(rest, value, dtype=buffer.dtype)], axis=1
    )
