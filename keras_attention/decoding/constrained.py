"""Beam search for answers that hold given terms.

The beam is divided into banks, one for each number of tokens of terms that a
hypothesis holds, so that hypotheses with many of them are not crowded out by
others that are more probable.

References: Hokamp and Liu 2017 (arXiv 1704.07138), whose banks are a grid; Post
and Vilar 2018 (arXiv 1804.06609), who share one beam among all banks.
"""

import collections

from keras import ops

from keras_attention.decoding import (
    answers,
    beam,
    buffers,
    next_tokens,
    ngrams,
    penalties,
    search_result,
    source,
)
from keras_attention.tokens import END, PAD, START

_Terms = collections.namedtuple("_Terms", "ids lengths widths")
_Terms.__doc__ = """The terms of a row.

- `ids`: int32 [B, K, M], the tokens of each, then padding.
- `lengths`: int32 [B, K], 0 where there is none.
- `widths`: int32 [B], the width of the row's beam.
"""
_Progress = collections.namedtuple("_Progress", "begun matched is_met")
_Progress.__doc__ = """What a hypothesis holds of its terms, in its state.

- `begun`: bool [B], whether START has been read.
- `matched`: bool [B, K, M]: the last j + 1 tokens are the first of the term.
- `is_met`: bool [B, K], whether the term is in the hypothesis.
"""


def _check_terms(term_ids):
    term_ids = ops.cast(term_ids, "int32")
    if len(term_ids.shape) != 3:
        raise ValueError(
            "`term_ids` must hold the ids of each term of each answer: shape "
            f"[batch, terms, length]. Received: shape {tuple(term_ids.shape)}"
        )
    return term_ids


def constrained_beam_search(
    step,
    memory,
    state,
    source_mask,
    max_lengths,
    num_beams,
    term_ids,
    n_best=1,
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
    widths=None,
) -> search_result.SearchResult:
    """Beam search among the answers that hold all of a row's terms.

    A term is in an answer if its tokens stand there in a row. Terms may share
    tokens. END is possible only where all terms are met. Each hypothesis also
    offers the next token of each term that it does not hold yet, be it ever so
    improbable. At each position the best candidate of each bank is taken, then
    the second of each, until the beam is full. The bank of a hypothesis is the
    number of tokens of terms that it holds, those of the term that it is
    writing included.

    A beam as wide as there are hypotheses finds all. A row without terms is
    `beam_search`.

    Args:
        step, memory, state, source_mask, max_lengths: see the package.
        num_beams: width N. It is best not below the number of the tokens of a
            row's terms.
        term_ids: int [B, K, M], K >= 1 terms for each row, each followed by
            `pad_id`; of padding alone where a row has fewer terms.
        n_best: how many hypotheses are wanted, at most N.
        alpha, beta, widths: see `beam_search`.
        start_id, end_id, pad_id, forbidden_ids: see `beam_search`.
        prefix_ids, no_repeat_ngram_size, room, min_lengths: see the package.

    Returns:
        `SearchResult` with N = `n_best`. If no hypothesis met all terms within
        its limit, there is none: its length is 0.

    Raises:
        ValueError: As `beam_search`, and for another rank of `term_ids`.
    """
    beam.check_width(num_beams, n_best)
    penalties.check_penalties(alpha, beta)
    term_ids = _check_terms(term_ids)
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
    step, state = _watched(
        step, state, term_ids, pad_id, num_beams if widths is None else widths
    )
    loop, max_length = beam.loop_of(
        rules,
        (step, memory, state, source_mask, None),
        num_beams,
        n_best,
        alpha,
        beta,
        choose=_of_all_banks,
        read=_read,
        widths=widths,
    )
    _, beams, _ = ops.while_loop(*loop)
    return beam.result_of(rules, max_length, beams, n_best)


def _watched(step, state, term_ids, pad_id, widths):
    """A step and a state that also know what a hypothesis holds of its terms.

    The state is `(state, progress, terms)`.
    """
    lengths = ops.sum(ops.cast(ops.not_equal(term_ids, pad_id), "int32"), -1)
    widths = ops.cast(widths, "int32") + ops.zeros_like(lengths[:, 0])
    terms = _Terms(term_ids, lengths, widths)
    progress = _Progress(
        begun=ops.zeros_like(lengths[:, 0], dtype="bool"),
        matched=ops.zeros_like(term_ids, dtype="bool"),
        is_met=ops.equal(lengths, 0),
    )

    def watched(token_ids, memory, state):
        # The terms are a part of the state, as what reads it must know them.
        state, progress, terms = state
        logits, state, weights = step(token_ids, memory, state)
        progress = _with_token(progress, terms, token_ids)
        return logits, (state, progress, terms), weights

    return watched, (state, progress, terms)


def _with_token(progress, terms, token_ids):
    """The progress [B] with one more token: int [B]."""
    # START is read first. It is no token of the answer.
    begun = progress.begun[:, None, None]
    matched, is_met = _after(progress, terms, token_ids[:, None])
    return _Progress(
        begun=ops.ones_like(progress.begun),
        matched=ops.logical_and(matched[:, 0], begun),
        is_met=ops.where(begun[:, 0], is_met[:, 0], progress.is_met),
    )


def _after(progress, terms, token_ids):
    """What would be matched and met with each of some tokens [B, C].

    Returns:
        `(matched, is_met)`: bool [B, C, K, M] and [B, C, K].
    """
    before = ops.concatenate(
        [
            ops.ones_like(progress.matched[..., :1]),
            progress.matched[..., :-1],
        ],
        axis=-1,
    )
    same = ops.equal(
        terms.ids[:, None], ops.cast(token_ids, "int32")[:, :, None, None]
    )
    matched = ops.logical_and(before[:, None], same)
    places = ops.arange(ops.shape(terms.ids)[2], dtype="int32")
    is_last = ops.equal(places, terms.lengths[:, :, None] - 1)
    is_whole = ops.any(ops.logical_and(matched, is_last[:, None]), axis=-1)
    return matched, ops.logical_or(progress.is_met[:, None], is_whole)


def _num_held(matched, is_met, lengths):
    """How many tokens of terms are held: bool [..., K, M] -> int [...]."""
    held = ops.where(is_met, lengths, _depths(matched))
    return ops.sum(held, axis=-1)


def _depths(matched):
    """How far the longest match of each term goes: bool [..., K, M]."""
    places = ops.arange(ops.shape(matched)[-1], dtype="int32")
    return ops.max(ops.where(matched, places + 1, 0), axis=-1)


def _next_of_terms(progress, terms, pad_id):
    """The token that goes on with each term: int [B, K], padding if none."""
    depths = _depths(progress.matched)
    # The place behind the longest match, which a term that is met may not have.
    places = ops.arange(ops.shape(terms.ids)[2], dtype="int32")
    is_next = ops.equal(places, depths[:, :, None])
    token_ids = ops.sum(ops.where(is_next, terms.ids, 0), axis=-1)
    return ops.where(progress.is_met, pad_id, token_ids)


def _read(rules, num_beams, source_length, logits, weights, state):
    """What a row is offered, as in beam search; and what it holds of terms.

    Returns:
        `(log_probs, token_ids, num_held, weights)`: [A, N * C] three times,
        and [A, N, S].
    """
    blocked_ids = ngrams.blocked_ids(state, rules)
    if ngrams.are_limited(rules.no_repeat_ngram_size):
        state, _ = state
    _, progress, terms = state
    log_probs = next_tokens.possible_log_probs(logits, rules, blocked_ids)
    is_end = ops.arange(logits.shape[-1]) == rules.end_id
    words = ops.where(is_end, next_tokens.IMPOSSIBLE, log_probs)
    best, best_ids = next_tokens.top_k(words, num_beams)
    # A row with a narrower beam is offered no more than one of that width.
    within = ops.arange(best.shape[1]) < terms.widths[:, None]
    best = ops.where(within, best, next_tokens.IMPOSSIBLE)
    next_ids = _next_of_terms(progress, terms, rules.pad_id)
    same = ops.equal(next_ids[:, :, None], best_ids[:, None])
    is_new = ops.logical_and(
        ~ops.any(ops.logical_and(same, within[:, None]), axis=-1),
        ~_is_repeated(next_ids),
    )
    is_new = ops.logical_and(is_new, ops.not_equal(next_ids, rules.pad_id))
    of_terms = ops.where(
        is_new, buffers.pick(words, next_ids), next_tokens.IMPOSSIBLE
    )
    end = log_probs[:, rules.end_id, None]
    may_end = ops.all(progress.is_met, axis=-1, keepdims=True)
    end = ops.where(may_end, end, next_tokens.IMPOSSIBLE)
    offered = ops.concatenate([best, of_terms, end], axis=1)
    token_ids = ops.concatenate(
        [best_ids, next_ids, ops.full_like(next_ids[:, :1], rules.end_id)],
        axis=1,
    )
    num_held = _num_held(
        *_after(progress, terms, token_ids), terms.lengths[:, None]
    )
    weights = source.weights_over(weights, logits, source_length)
    num_rows = ops.shape(weights)[0] // num_beams
    of_row = (num_rows, num_beams * ops.shape(token_ids)[1])
    return (
        *(ops.reshape(one, of_row) for one in (offered, token_ids, num_held)),
        ops.reshape(weights, (num_rows, num_beams, source_length)),
    )


def _is_repeated(token_ids):
    """Whether a token stands there before: [B, K]."""
    same = ops.equal(token_ids[:, :, None], token_ids[:, None, :])
    places = ops.arange(ops.shape(token_ids)[1])
    return ops.any(
        ops.logical_and(same, places[None, :] < places[:, None]), axis=-1
    )


def _of_all_banks(offers, beams):
    """The best of each bank, then the second of each; see `beam.best`."""
    *offers, num_held = offers
    totals, token_ids, count = beam.totals(offers, beams.log_probs)
    width = beams.log_probs.shape[1]
    places = ops.arange(ops.shape(totals)[1])
    is_better = ops.logical_or(
        totals[:, None, :] > totals[:, :, None],
        ops.logical_and(
            ops.equal(totals[:, None, :], totals[:, :, None]),
            places[None, :] < places[:, None],
        ),
    )
    in_bank = ops.equal(num_held[:, None, :], num_held[:, :, None])
    better = ops.logical_and(is_better, in_bank)
    rank = ops.sum(ops.cast(better, "int32"), axis=-1)
    # Of equal ranks, the bank that holds more comes first.
    most = ops.max(num_held, axis=-1, keepdims=True) + 1
    order = rank * most + (most - 1 - num_held)
    possible = totals > next_tokens.IMPOSSIBLE / 2
    # Whatever is impossible comes last.
    last = ops.shape(totals)[1] * ops.max(most)
    _, chosen = ops.top_k(-ops.where(possible, order, last), width)
    chosen = ops.cast(chosen, "int32")
    log_probs, ids = buffers.pick((totals, token_ids), chosen)
    return log_probs, ids, chosen // count
