"""Searches that follow one hypothesis a row: greedy, forced, sampling."""

import keras
from keras import ops

from keras_attention.decoding import scores
from keras_attention.tokens import END, PAD, START

# Draws of one row; an answer that is longer begins with them again.
MAX_DRAWS = 4096


def _follow_one_path(
    choose,
    step,
    memory,
    state,
    source_mask,
    max_lengths,
    start_id,
    end_id,
    pad_id,
):
    """Extends one hypothesis a row, until END.

    `choose(logits, position)` -> int [B] tokens and their log-probabilities.
    """
    batch_size, source_length = ops.shape(source_mask)  # [B, S]
    max_length = ops.max(max_lengths, initial=1)

    def proceed(position, last_ids, ids, lengths, log_probs, weights, state):
        return ops.logical_and(
            position < max_length, ops.any(ops.equal(lengths, 0))
        )

    def body(position, last_ids, ids, lengths, log_probs, weights, state):
        logits, state, step_weights = step(last_ids, memory, state)
        token_ids, chosen = choose(logits, position)
        alive = ops.equal(lengths, 0)
        token_ids = ops.where(alive, token_ids, pad_id)
        step_weights = scores.weights_over_source(
            step_weights, (batch_size, source_length)
        )
        step_weights = ops.where(alive[:, None], step_weights, 0.0)
        ended = ops.logical_and(alive, ops.equal(token_ids, end_id))
        return (
            position + 1,
            token_ids,
            scores.write(ids, position, token_ids),
            ops.where(ended, position + 1, lengths),
            log_probs + ops.where(alive, chosen, 0.0),
            scores.write(weights, position, step_weights),
            state,
        )

    _, _, ids, lengths, log_probability, weights, _ = ops.while_loop(
        proceed,
        body,
        (
            ops.convert_to_tensor(0, dtype="int32"),
            ops.full((batch_size,), start_id, dtype="int32"),
            scores.empty_rows(
                batch_size, max_length, value=pad_id, dtype="int32"
            ),
            ops.zeros((batch_size,), dtype="int32"),
            ops.zeros((batch_size,), dtype="float32"),
            scores.empty_rows(batch_size, max_length, source_length),
            state,
        ),
    )
    ids = scores.fill(ids, max_length, pad_id)
    weights = scores.fill(weights, max_length)
    best = (ids, lengths, log_probability, log_probability, weights)
    return scores.SearchResult(*(ops.expand_dims(leaf, 1) for leaf in best))


def greedy_search(
    step,
    memory,
    state,
    source_mask,
    max_lengths,
    alpha=0.0,
    beta=0.0,
    start_id=START,
    end_id=END,
    pad_id=PAD,
    forbidden_ids=(),
    prefix_ids=None,
):
    """Takes the most probable token at each step.

    Args:
        step, memory, state, source_mask, max_lengths: see the module.
        alpha: length penalty, beta: coverage penalty; they only change
            the score that is reported.
        start_id, end_id, pad_id: control ids.
        forbidden_ids: ids that are never produced.
        prefix_ids: what each answer begins with, see the module.

    Returns:
        `SearchResult` with N = 1.

    Errors: `ValueError` for a negative alpha or beta, and where END is
    forbidden.
    """
    scores.check_penalties(alpha, beta)
    scores.check_end(end_id, forbidden_ids)
    max_lengths = scores.row_limits(max_lengths)
    source_mask = scores.source_rows(source_mask, ops.shape(max_lengths)[0])
    rules = scores.Rules(
        max_lengths,
        end_id,
        forbidden_ids,
        scores.prefix_rows(prefix_ids),
        pad_id,
    )

    def choose(logits, position):
        log_probs, token_ids = scores.best_extensions(
            logits, 1, position, rules
        )
        log_probs, best = ops.top_k(log_probs, 1)
        token_ids = scores.pick(token_ids, ops.cast(best, "int32"))
        return token_ids[:, 0], log_probs[:, 0]

    path = _follow_one_path(
        choose,
        step,
        memory,
        state,
        source_mask,
        max_lengths,
        start_id,
        end_id,
        pad_id,
    )
    lengths = scores.num_chosen(rules, path.lengths)
    score = path.log_probability / scores.length_penalty(lengths, alpha)
    if beta:
        attention_sums = ops.sum(path.attention_weights, axis=2)
        score += scores.coverage_penalty(
            attention_sums, source_mask[:, None], beta
        )
    return path._replace(score=score)


def forced_search(
    step,
    memory,
    state,
    source_mask,
    labels,
    start_id=START,
    end_id=END,
    pad_id=PAD,
):
    """Follows given answers: what the model thinks of them, and looks at.

    Args:
        step, memory, state, source_mask: see the module.
        labels: int [B, T], END included, then `pad_id`.
        start_id, end_id, pad_id: control ids.

    Returns:
        `SearchResult` with N = 1 and L the longest answer; its lengths are
        those of the labels, its log-probabilities those of
        `sequence_log_probability`.
    """
    labels = ops.cast(labels, "int32")
    real = ops.not_equal(labels, pad_id)
    lengths = ops.sum(ops.cast(real, "int32"), axis=1)
    source_mask = scores.source_rows(source_mask, ops.shape(lengths)[0])

    def choose(logits, position):
        token_ids = ops.take(labels, position, axis=1)
        log_probs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        chosen = ops.take_along_axis(log_probs, token_ids[:, None], axis=1)
        padding = ops.equal(token_ids, pad_id)
        return token_ids, ops.where(padding, 0.0, chosen[:, 0])

    path = _follow_one_path(
        choose,
        step,
        memory,
        state,
        source_mask,
        lengths,
        start_id,
        end_id,
        pad_id,
    )
    # A row of padding alone has no END.
    real = real[:, None, : ops.shape(path.ids)[2]]  # [B, 1, L]
    weights = ops.where(real[..., None], path.attention_weights, 0.0)
    return path._replace(lengths=lengths[:, None], attention_weights=weights)


def truncate_distribution(log_probs, top_k=None, top_p=None):
    """Keeps the most probable tokens only, for sampling.

    Args:
        log_probs: [B, V], normalised.
        top_k: keep this many, and all that are level with the last (Fan et
            al. 2018, arXiv 1805.04833), or None.
        top_p: keep the smallest set whose probability reaches this, the
            nucleus of the whole distribution (Holtzman et al. 2019, arXiv
            1904.09751), or None.

    Returns:
        [B, V], the tokens left out at log 0; not normalised again.

    Errors: `ValueError` for a `top_k` or `top_p` out of range.
    """
    if top_k is not None and top_k < 1:
        raise ValueError(
            f"`top_k` must be at least 1 or None. Received: top_k={top_k}"
        )
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(
            f"`top_p` must be in (0, 1] or None. Received: top_p={top_p}"
        )
    descending = -ops.sort(-log_probs, axis=-1)
    if top_k is not None:
        top_k = min(top_k, log_probs.shape[-1])
        threshold = descending[:, top_k - 1, None]
        log_probs = ops.where(
            log_probs >= threshold, log_probs, scores.IMPOSSIBLE
        )
    if top_p is not None:
        probabilities = ops.exp(descending)
        before = ops.cumsum(probabilities, axis=-1) - probabilities
        kept = ops.where(before < top_p, descending, -scores.IMPOSSIBLE)
        threshold = ops.min(kept, axis=-1, keepdims=True)
        log_probs = ops.where(
            log_probs >= threshold, log_probs, scores.IMPOSSIBLE
        )
    return log_probs


def sampling_search(
    step,
    memory,
    state,
    source_mask,
    max_lengths,
    seed,
    temperature=1.0,
    top_k=None,
    top_p=None,
    start_id=START,
    end_id=END,
    pad_id=PAD,
    forbidden_ids=(),
    prefix_ids=None,
):
    """Draws each token from the model's distribution.

    Args:
        step, memory, state, source_mask, max_lengths: see the module.
        seed: int; the same seed draws the same tokens. A row's draws
            depend on the seed and on its place in the batch alone.
        temperature: above 0; below 1 sharpens, above 1 flattens.
        top_k, top_p: see `truncate_distribution`; they act after the
            temperature.
        start_id, end_id, pad_id: control ids.
        forbidden_ids: ids that are never produced.
        prefix_ids: what each answer begins with, see the module.

    Returns:
        `SearchResult` with N = 1; the log-probability is the model's own,
        before temperature and truncation.

    Errors: `ValueError` for a temperature, `top_k` or `top_p` out of range,
        and if END is among the forbidden.
    """
    scores.check_end(end_id, forbidden_ids)
    if temperature <= 0:
        raise ValueError(
            "`temperature` must be above 0 (greedy_search is its limit at "
            f"0). Received: temperature={temperature}"
        )
    max_lengths = scores.row_limits(max_lengths)
    # One uniform number for each token to come, drawn before the loop. The
    # width is fixed: a row's numbers must not depend on the other rows.
    source_mask = scores.source_rows(source_mask, ops.shape(max_lengths)[0])
    rules = scores.Rules(
        max_lengths,
        end_id,
        forbidden_ids,
        scores.prefix_rows(prefix_ids),
        pad_id,
    )
    batch_size = ops.shape(source_mask)[0]
    uniforms = keras.random.uniform((batch_size, MAX_DRAWS), seed=seed)

    def choose(logits, position):
        allowed = log_probs = scores.allowed_log_probs(logits, position, rules)
        possible = log_probs > scores.IMPOSSIBLE / 2
        # From the greatest down, so that no temperature overflows.
        log_probs = log_probs - ops.max(log_probs, axis=-1, keepdims=True)
        log_probs = ops.log_softmax(
            ops.where(possible, log_probs / temperature, scores.IMPOSSIBLE),
            axis=-1,
        )
        log_probs = truncate_distribution(log_probs, top_k, top_p)
        cumulative = ops.cumsum(ops.exp(log_probs), axis=-1)  # [B, V]
        draws = uniforms[:, position % MAX_DRAWS]
        threshold = draws[:, None] * cumulative[:, -1:]
        passed = ops.cast(cumulative <= threshold, "int32")
        # Rounding must not step past the last token that may be drawn.
        last = ops.max(
            ops.where(
                ops.exp(log_probs) > 0,
                ops.arange(log_probs.shape[-1], dtype="int32"),
                0,
            ),
            axis=-1,
        )
        token_ids = ops.minimum(ops.sum(passed, axis=-1), last)
        chosen = ops.take_along_axis(allowed, token_ids[:, None], axis=1)
        return token_ids, chosen[:, 0]

    return _follow_one_path(
        choose,
        step,
        memory,
        state,
        source_mask,
        max_lengths,
        start_id,
        end_id,
        pad_id,
    )
