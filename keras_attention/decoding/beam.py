"""Beam search, with finished hypotheses kept apart and frozen.

At each position, each live hypothesis offers its best next tokens. The N best
of all that a row is offered are its candidates. Those that end in END are
finished; the others live on.
"""

import collections
import functools

from keras import ops, tree

from keras_attention.decoding import (
    answers,
    beam_history,
    buffers,
    next_tokens,
    ngrams,
    penalties,
    positions,
    rows,
    search_result,
    source,
)
from keras_attention.tokens import END, PAD, START

# The hypotheses that may go on, the most probable first, with all that ended.
_Beams = collections.namedtuple(
    "_Beams",
    "token_ids parents stopped log_probs attention_sums history finished",
)
# The hypotheses that have ended, best first; where the last stands.
_Finished = collections.namedtuple(
    "_Finished", "score log_probability lengths slots"
)


def _initial_beams(rules, source_length, num_beams, beta):
    """One live beam a row; the others are impossible until it branches."""
    batch_size = ops.shape(rules.max_lengths)[0]
    shape = (batch_size, num_beams)
    zeros = ops.zeros(shape, dtype="int32")
    impossible = ops.full(shape, next_tokens.IMPOSSIBLE, dtype="float32")
    # Equal beams would extend alike, and fill the width with copies.
    first = ops.equal(ops.arange(num_beams), 0)[None, :]
    # They are of use for the coverage penalty alone.
    sums = ()
    if penalties.counts(beta):
        sums = ops.zeros((*shape, source_length), "float32")
    max_length = answers.max_length(rules)
    return _Beams(
        token_ids=ops.full(shape, rules.start_id, dtype="int32"),
        parents=zeros,  # At first all beams are the same.
        stopped=ops.zeros((batch_size,), dtype="bool"),
        log_probs=ops.where(first, 0.0, impossible),
        attention_sums=sums,
        history=beam_history.empty(
            batch_size, max_length, num_beams, source_length
        ),
        finished=_Finished(impossible, impossible, zeros, zeros),
    )


def totals(offers, log_probs):
    """What the hypotheses of a row would come to with each offer.

    Args:
        offers: `(log_probs, token_ids)`, both [B, N * C]: each of N live
            hypotheses offers C next tokens.
        log_probs: [B, N], of the live hypotheses.

    Returns:
        `(log_probs, token_ids, C)`, both [B, N * C].
    """
    offered, token_ids = offers
    num_beams = log_probs.shape[1]
    count = buffers.size(token_ids) // num_beams
    # The beams of a row compete: one may have several children, or none.
    offered = ops.reshape(offered, (-1, num_beams, count))
    totals = log_probs[:, :, None] + offered
    return ops.reshape(totals, (-1, num_beams * count)), token_ids, count


def best(offers, beams):
    """The N most probable of all that a row is offered, best first.

    Args:
        offers: see `totals`.
        beams: the live hypotheses.

    Returns:
        `(log_probs, token_ids, parents)`, each [B, N].
    """
    log_probs, token_ids, count = totals(offers, beams.log_probs)
    log_probs, chosen = ops.top_k(log_probs, beams.log_probs.shape[1])
    chosen = ops.cast(chosen, "int32")
    return log_probs, buffers.pick(token_ids, chosen), chosen // count


def within_width(log_probs, lengths, stopped, widths=None):
    """Which candidates have a place in the beam: bool [B, N].

    Args:
        log_probs: [B, N], of the candidates, best first.
        lengths: int [B, N], of the finished hypotheses; 0 for none.
        stopped: bool [B].
        widths: int [B], the places of each row; by default N.
    """
    # Each finished hypothesis has taken one place: so a beam of 1 is greedy
    # search, and ends at the first END.
    num_beams = log_probs.shape[1]
    width = num_beams
    if widths is not None:
        width = ops.cast(widths, "int32")[:, None]
    is_finished = ops.cast(lengths > 0, "int32")
    num_left = width - ops.sum(is_finished, axis=1, keepdims=True)
    # Half of log 0: sums with log-probabilities stay near it.
    possible = log_probs > next_tokens.IMPOSSIBLE / 2
    going = ~stopped[:, None]
    return (ops.arange(num_beams)[None, :] < num_left) & possible & going


def _retire(finished, ended, length, score, log_probs):
    """The finished hypotheses with those that ended here, best first."""
    # Of one shape at each position: what did not end joins too, at log 0.
    impossible = next_tokens.IMPOSSIBLE
    num_beams = ended.shape[1]
    slots = ops.arange(num_beams)[None, :]
    newly = _Finished(
        score=ops.where(ended, score, impossible),
        log_probability=ops.where(ended, log_probs, impossible),
        lengths=ops.where(ended, length, 0),
        slots=ops.broadcast_to(slots, ops.shape(ended)),
    )
    joined = tree.map_structure(
        lambda *pair: ops.concatenate(pair, axis=1), finished, newly
    )
    _, best = ops.top_k(joined.score, num_beams)
    return buffers.pick(joined, ops.cast(best, "int32"))


def read_offers(
    rules, num_beams, source_length, logits, weights, state, count=None
):
    """What a row is offered: log p and ids [A, N * C], weights [A, N, S].

    Args:
        rules: `answers.Rules`.
        num_beams: N.
        source_length: S.
        logits, weights, state: what the step has returned.
        count: how many tokens a beam offers beside END, by default N.
    """
    # More of one beam cannot be among the N best of all. Here, in the rows
    # that are computed, as a vocabulary's logits are slow to move.
    log_probs, token_ids = next_tokens.best_extensions(
        logits, count or num_beams, rules, ngrams.blocked_ids(state, rules)
    )
    width = num_beams * token_ids.shape[1]
    weights = source.weights_over(weights, logits, source_length)
    num_rows = ops.shape(weights)[0] // num_beams
    return (
        ops.reshape(log_probs, (-1, width)),
        ops.reshape(token_ids, (-1, width)),
        ops.reshape(weights, (num_rows, num_beams, source_length)),
    )


def _advancing(rules, source_mask, n_best, alpha, beta, choose, widths):
    """The function that makes one position of the search."""
    longest = answers.num_chosen(rules, rules.max_lengths[:, None])
    longest_penalty = penalties.length_penalty(
        longest, penalties.column(alpha)
    )[:, 0]

    def advance(position, seen, beams):
        log_probs, token_ids, *more, weights = seen
        # Expansion: the best extensions of the live hypotheses.
        offers = next_tokens.within_limits(
            log_probs, token_ids, position, rules
        )
        offers = (*offers, *more)
        log_probs, token_ids, parents = choose(offers, beams)
        sums = beams.attention_sums
        if penalties.counts(beta):
            sums = buffers.pick(weights + sums, parents)
        # Retirement: what ends here joins the finished ones and is frozen.
        kept = within_width(
            log_probs, beams.finished.lengths, beams.stopped, widths
        )
        ended = kept & (token_ids == rules.end_id)
        length = position + 1
        score = penalties.score(
            log_probs,
            answers.num_chosen(rules, length),
            sums,
            source_mask,
            alpha,
            beta,
        )
        finished = _retire(beams.finished, ended, length, score, log_probs)
        # What is kept and has not ended lives on.
        alive = kept & ~ended
        log_probs = ops.where(alive, log_probs, next_tokens.IMPOSSIBLE)
        # Early stop: log-probabilities only fall, and no penalty adds. So a
        # live hypothesis reaches at best its log-probability over the penalty
        # of the longest.
        reachable = ops.max(log_probs, axis=1) / longest_penalty
        cannot_improve = finished.score[:, n_best - 1] >= reachable
        return _Beams(
            token_ids=token_ids,
            # What is not alive follows the best, whatever it comes from: so
            # hypotheses soon have one past.
            parents=ops.where(alive, parents, parents[:, :1]),
            stopped=~ops.any(alive, axis=1) | cannot_improve,
            log_probs=log_probs,
            attention_sums=sums,
            history=beam_history.write(
                beams.history, position, token_ids, parents, weights
            ),
            finished=finished,
        )

    return advance


def check_width(num_beams, n_best):
    """Refuses a beam that has no place for as many hypotheses as are wanted.

    Raises:
        ValueError: Unless 1 <= n_best <= num_beams.
    """
    if not 1 <= n_best <= num_beams:
        raise ValueError(
            "Expected 1 <= n_best <= num_beams. Received: "
            f"n_best={n_best}, num_beams={num_beams}"
        )


def beam_search(
    step,
    memory,
    state,
    source_mask,
    max_lengths,
    num_beams,
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
    settle=None,
    min_lengths=None,
    widths=None,
) -> search_result.SearchResult:
    """Extends the `num_beams` most probable hypotheses in parallel.

    A hypothesis that ends leaves the beam and is frozen: it keeps its score
    and its place in the width. A beam of 1 is therefore greedy search, and a
    beam as wide as there are hypotheses is exhaustive.

    A row stops when it has `num_beams` finished hypotheses, or `n_best` that
    no live one can beat any more. Log-probabilities only fall and no penalty
    adds, so a live hypothesis can at best reach
    `log_probability / lp(max_length)`.

    Args:
        step, memory, state, source_mask, max_lengths: see the package.
        num_beams: width N.
        n_best: how many hypotheses must be the best ones, at most N.
        alpha: length penalty, see `length_penalty`; 0 for none. A number, or
            float [B].
        beta: coverage penalty, see `coverage_penalty`; 0 for none. A number,
            or float [B].
        start_id, end_id, pad_id: control ids.
        forbidden_ids: ids that are never chosen.
        prefix_ids: what each answer begins with, see the package.
        no_repeat_ngram_size: n of the n-grams that no answer holds twice, see
            the package; 0 for none.
        room: the most tokens of any answer, for a compiler, see the package.
        settle: how the model keeps a common past once, see the package.
        min_lengths: the fewest tokens of each answer, see the package.
        widths: int [B], from 1 to N: rows with a narrower beam. By default
            each has N.

    Returns:
        `SearchResult` with N = `n_best`.

    Raises:
        ValueError: Unless 1 <= n_best <= num_beams; if alpha, beta or the
            n-grams' size is negative, if END is forbidden, or for another
            rank of `max_lengths` or `prefix_ids`.
    """
    check_width(num_beams, n_best)
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
    parts = (step, memory, state, source_mask, settle)
    loop, max_length = loop_of(
        rules, parts, num_beams, n_best, alpha, beta, widths=widths
    )
    _, beams, _ = ops.while_loop(*loop)
    return result_of(rules, max_length, beams, n_best)


def loop_of(
    rules,
    parts,
    num_beams,
    n_best,
    alpha,
    beta,
    choose=best,
    read=None,
    widths=None,
):
    """The loop of a search, and the most positions that it has.

    Args:
        rules: `answers.Rules`.
        parts: `(step, memory, state, source_mask, settle)`.
        num_beams, n_best, alpha, beta, widths: see `beam_search`.
        choose: which candidates live on or end, see `best`.
        read: what a row is offered, by default that of beam search.

    Returns:
        `(loop, max_length)`: the arguments of `ops.while_loop`, see
        `positions.loop`, and an int.
    """
    step, memory, state, source_mask, settle = parts
    batch_size = ops.shape(rules.max_lengths)[0]
    source_mask = source.mask_of(source_mask, batch_size)
    source_length = ops.shape(source_mask)[1]
    max_length = answers.max_length(rules)
    step, state, settle = ngrams.watched(step, state, rules, settle)

    def of_beams(structure):
        return tree.map_structure(
            lambda leaf: ops.repeat(leaf, num_beams, axis=0), structure
        )

    # To the step, each beam is a row of a batch that is N times as large.
    state = of_beams(state)
    if settle is None:
        memory = of_beams(memory)
    loop = positions.loop(
        step,
        rows.every(batch_size, memory, state, rules.room),
        functools.partial(read or read_offers, rules, num_beams, source_length),
        _advancing(rules, source_mask, n_best, alpha, beta, choose, widths),
        _initial_beams(rules, source_length, num_beams, beta),
        max_length,
        settle,
    )
    return loop, max_length


def result_of(rules, max_length, beams, n_best):
    """The `SearchResult` of what the loop has left of its beams."""
    # The others were only needed to know when the width is full.
    finished = tree.map_structure(lambda leaf: leaf[:, :n_best], beams.finished)
    ids, weights = beam_history.trace_back(
        beams.history, finished, max_length, rules.pad_id
    )
    return search_result.SearchResult(
        ids,
        finished.lengths,
        finished.log_probability,
        finished.score,
        weights,
    )
