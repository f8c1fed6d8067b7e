"""Greedy search: the most probable token at each step."""

from keras import ops

from keras_attention.decoding import (
    answers,
    buffers,
    next_tokens,
    one_path,
    penalties,
    search_result,
    source,
)
from keras_attention.tokens import END, PAD, START


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
    no_repeat_ngram_size=0,
    room=None,
    min_lengths=None,
    is_scored=True,
) -> search_result.SearchResult:
    """Takes the most probable token at each step.

    Args:
        step, memory, state, source_mask, max_lengths: see the package.
        alpha: length penalty. It only changes the score that is reported.
        beta: coverage penalty. It only changes the score that is reported.
        start_id, end_id, pad_id: control ids.
        forbidden_ids: ids that are never chosen.
        prefix_ids: what each answer begins with, see the package.
        no_repeat_ngram_size: n of the n-grams that no answer holds twice, see
            the package; 0 for none.
        room: the most tokens of any answer, for a compiler, see the package.
        min_lengths: the fewest tokens of each answer, see the package.
        is_scored: whether the result has log-probabilities, scores and where
            attention looked. The answers are the same without, but for ties
            by rounding. A step then takes no softmax over the vocabulary.

    Returns:
        `SearchResult` with N = 1. If it is not scored, its probabilities and
        scores are 0, and its attention weights have S = 0.

    Raises:
        ValueError: If alpha, beta or the n-grams' size is negative, if END is
            forbidden, or for another rank of `max_lengths` or `prefix_ids`.
    """
    penalties.check_penalties(alpha, beta)
    rules = answers.check_rules(
        max_lengths,
        start_id,
        end_id,
        pad_id,
        forbidden_ids,
        prefix_ids,
        no_repeat_ngram_size,
        room,
        min_lengths,
    )
    source_mask = source.mask_of(
        source_mask if is_scored else None, ops.shape(rules.max_lengths)[0]
    )
    offer, choose = _by_probability(rules, is_scored)
    loop = one_path.loop(offer, choose, step, memory, state, source_mask, rules)
    # Penalties cannot change the only hypothesis of a row: they come last.
    path = one_path.result(ops.while_loop(*loop), rules)
    score = penalties.score(
        path.log_probability,
        answers.num_chosen(rules, path.lengths),
        ops.sum(path.attention_weights, axis=2),
        source_mask,
        alpha,
        beta,
    )
    return path._replace(score=score)


def _by_probability(rules, is_scored):
    """The functions of `one_path.loop` that take the most probable token."""

    def offer(logits, blocked_ids):
        return next_tokens.best_extensions(
            logits, 1, rules, blocked_ids, is_normalised=is_scored
        )

    def choose(offers, position):
        log_probs, token_ids = next_tokens.within_limits(
            *offers, position, rules
        )
        # One word beside END, of which END has not yet been compared.
        log_probs, best = ops.top_k(log_probs, 1)
        token_ids = buffers.pick(token_ids, ops.cast(best, "int32"))
        log_probs = log_probs[:, 0]
        return token_ids[:, 0], (
            log_probs if is_scored else ops.zeros_like(log_probs)
        )

    return offer, choose
