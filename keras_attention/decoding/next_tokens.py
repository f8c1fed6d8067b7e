"""The next token: how probable each is, of those that an answer may hold."""

from keras import ops

from keras_attention.decoding import answers, buffers, ngrams

# Stands for log 0: far below any log-probability, and finite, so that sums
# of two stay finite and nothing becomes NaN.
IMPOSSIBLE = -1e9


def possible_log_probs(logits, rules, blocked_ids=()):
    """Log-probabilities of the next token, without what may never come.

    Args, Returns: as of `allowed_log_probs`, whose limit and prefix are those
        of a position.
    """
    # In half precision, sums over a long answer would lose digits.
    log_probs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    if ngrams.are_limited(rules.no_repeat_ngram_size):
        log_probs = _without(log_probs, blocked_ids, rules.end_id)
    ids = ops.arange(logits.shape[-1])
    for forbidden_id in rules.forbidden_ids:
        log_probs = ops.where(ids == forbidden_id, IMPOSSIBLE, log_probs)
    return log_probs


def allowed_log_probs(logits, position, rules, blocked_ids=()):
    """Log-probabilities of the next token, before any choice.

    Args:
        logits: [B, V].
        position: int scalar, how many tokens stand before it.
        rules: `answers.Rules`.
        blocked_ids: of `ngrams.blocked_ids`.

    Returns:
        float32 [B, V]. What is forbidden is at log 0; the rest is not
        normalised again, so that sums equal forced scores. A given token is
        at log 1, and all others are then at log 0.
    """
    log_probs = possible_log_probs(logits, rules, blocked_ids)
    ids = ops.arange(logits.shape[-1])
    must_end = answers.must_end(rules, position)
    impossible = ops.logical_and(
        must_end[:, None], (ids != rules.end_id)[None, :]
    )
    log_probs = ops.where(impossible, IMPOSSIBLE, log_probs)
    if rules.min_lengths is not None:
        is_end = (ids == rules.end_id)[None, :]
        log_probs = _not_too_short(log_probs, is_end, position, rules)
    if rules.prefix_ids is None:
        return log_probs
    given_ids, given = answers.given_tokens(rules, position, must_end)
    certain = ops.where(ids == given_ids[:, None], 0.0, IMPOSSIBLE)
    return ops.where(given[:, None], certain, log_probs)


def _not_too_short(log_probs, is_end, position, rules):
    """Log-probabilities [B, C] with END at log 0 where it is too early."""
    others = ops.where(is_end, IMPOSSIBLE, log_probs)
    # A row that can only end may end.
    goes_on = ops.any(others > IMPOSSIBLE / 2, axis=1)
    is_early = ops.logical_and(answers.is_short(rules, position), goes_on)
    refused = ops.logical_and(is_early[:, None], is_end)
    return ops.where(refused, IMPOSSIBLE, log_probs)


def _without(log_probs, blocked_ids, end_id):
    """Log-probabilities [B, V] with some ids [B, L] at log 0, but not END."""
    num_rows, size = ops.shape(log_probs)
    firsts = ops.arange(num_rows, dtype="int32")[:, None] * size
    places = ops.reshape(firsts + blocked_ids, (-1, 1))
    marks = ops.scatter_update(
        ops.zeros((num_rows * size,), dtype="int32"),
        places,
        ops.ones_like(places[:, 0]),
    )
    is_blocked = ops.logical_and(
        ops.reshape(marks, (-1, size)) > 0,
        ops.not_equal(ops.arange(size), end_id),
    )
    return ops.where(is_blocked, IMPOSSIBLE, log_probs)


def best_extensions(logits, count, rules, blocked_ids=(), is_normalised=True):
    """The next tokens worth a look: the `count` best ones, and END.

    They have the log-probabilities of `allowed_log_probs`, without sorting
    the vocabulary. `within_limits` does what depends on the row.

    Args:
        logits: [A, V].
        count: how many beside END.
        rules: `answers.Rules`, of the whole batch.
        blocked_ids: of `ngrams.blocked_ids`.
        is_normalised: whether the log-probabilities are needed. Without it,
            logits stand in their place: these have the same order.

    Returns:
        `(log_probs, token_ids)`: float32 and int32 [A, C], best first, END
        last: of equals it is the last choice.
    """
    logits = ops.cast(logits, "float32")
    are_limited = ngrams.are_limited(rules.no_repeat_ngram_size)
    if are_limited:
        # What is left is not normalised again. The greatest logit may be
        # blocked, so it cannot give the normaliser below.
        if is_normalised:
            logits = ops.log_softmax(logits, axis=-1)
        logits = _without(logits, blocked_ids, rules.end_id)
    # Some of the best may be forbidden, or be END.
    # So many more are looked at that `count` remain in any case.
    best, token_ids = top_k(logits, count + len(rules.forbidden_ids) + 1)
    if are_limited or not is_normalised:
        normaliser = 0.0
    else:
        # log(sum(exp)) is the greatest logit less the log of its probability:
        # a softmax is one operation in TensorFlow, exp and sum are two.
        greatest = buffers.pick(ops.softmax(logits, axis=-1), token_ids[:, :1])
        normaliser = best[:, :1] - ops.log(greatest)
    left_out = ops.any(
        ops.equal(token_ids[:, :, None], (*rules.forbidden_ids, rules.end_id)),
        axis=-1,
    )
    best = ops.where(left_out, IMPOSSIBLE, best - normaliser)
    end = logits[:, rules.end_id, None] - normaliser
    return (
        ops.concatenate([best, end], axis=1),
        ops.pad(token_ids, ((0, 0), (0, 1)), constant_values=rules.end_id),
    )


def within_limits(log_probs, token_ids, position, rules):
    """The best extensions of each row that its limit and its prefix allow.

    Args:
        log_probs, token_ids: [B, C], of `best_extensions`.
        position, rules: see `allowed_log_probs`.

    Returns:
        `(log_probs, token_ids)`. Only END is possible at the limit. A given
        token comes first, at log 1, and all others are then at log 0.
    """
    must_end = answers.must_end(rules, position)
    impossible = ops.logical_and(
        must_end[:, None], ops.not_equal(token_ids, rules.end_id)
    )
    log_probs = ops.where(impossible, IMPOSSIBLE, log_probs)
    if rules.min_lengths is not None:
        is_end = ops.equal(token_ids, rules.end_id)
        log_probs = _not_too_short(log_probs, is_end, position, rules)
    if rules.prefix_ids is None:
        return log_probs, token_ids
    given_ids, given = answers.given_tokens(rules, position, must_end)
    # One of all offers to a row: its beams branch only after the prefix.
    first = ops.arange(buffers.size(token_ids)) == 0
    certain = ops.where(first, 0.0, IMPOSSIBLE)[None, :]
    return (
        ops.where(given[:, None], certain, log_probs),
        ops.where(given[:, None], given_ids[:, None], token_ids),
    )


def top_k(values, k):
    """The k greatest of each row and their places, greatest first.

    In rounds, as sorting k out of a vocabulary is slow: the k blocks with the
    greatest maxima hold the k greatest values. XLA sorts all that it is given,
    so each round looks at about 100 values.

    Args:
        values: [B, V].
        k: how many; at most V come out.

    Returns:
        `(values, indices)`: [B, k], int32 [B, k].
    """
    size = values.shape[-1]
    k = min(k, size)
    # About 100 blocks; a small V, or one without such a divisor: no more round.
    num_blocks = next((n for n in range(80, 161) if size % n == 0), size)
    if num_blocks == size or k >= num_blocks:
        best, indices = ops.top_k(values, k)
        return best, ops.cast(indices, "int32")
    width = size // num_blocks
    blocks = ops.reshape(values, (-1, num_blocks, width))
    _, chosen = ops.top_k(ops.max(blocks, axis=-1), k)
    # In the order of the vocabulary: of equal values the first comes first.
    chosen = -ops.top_k(-ops.cast(chosen, "int32"), k)[0]
    places = chosen[:, :, None] * width + ops.arange(width, dtype="int32")
    places = ops.reshape(places, (-1, k * width))
    best, indices = top_k(buffers.pick(values, places), k)
    return best, buffers.pick(places, indices)
