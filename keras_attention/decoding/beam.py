"""Beam search, with finished hypotheses kept apart and frozen."""

import collections
import functools

from keras import ops, tree

from keras_attention.decoding import (
    answers,
    beam_history,
    buffers,
    next_tokens,
    penalties,
    rows,
    search_result,
    source,
)
from keras_attention.tokens import END, PAD, START

# What no step changes.
_Settings = collections.namedtuple(
    "_Settings",
    [
        "step",
        "source_mask",
        "rules",
        "longest_penalty",
        "num_beams",
        "n_best",
        "alpha",
        "beta",
    ],
)
# The hypotheses that may go on, the most probable first.
_Live = collections.namedtuple(
    "_Live", ["token_ids", "log_probs", "attention_sums"]
)
# The hypotheses that have ended, best first; where the last stands.
_Finished = collections.namedtuple(
    "_Finished", ["score", "log_probability", "lengths", "slots"]
)


def _initial_beams(settings, max_length, start_id):
    """One live beam a row; the others are impossible until it branches."""
    batch_size, source_length = ops.shape(settings.source_mask)
    num_beams = settings.num_beams
    shape = (batch_size, num_beams)
    # Equal beams would extend alike, and fill the width with copies.
    first = ops.equal(ops.arange(num_beams), 0)[None, :]
    impossible = ops.full(shape, next_tokens.IMPOSSIBLE, dtype="float32")
    live = _Live(
        token_ids=ops.full(shape, start_id, dtype="int32"),
        log_probs=ops.where(first, 0.0, impossible),
        # They are of use for the coverage penalty alone.
        attention_sums=ops.zeros((*shape, source_length), dtype="float32")
        if settings.beta
        else (),
    )
    history = beam_history.empty(
        batch_size, max_length, num_beams, source_length
    )
    finished = _Finished(
        score=impossible,
        log_probability=impossible,
        lengths=ops.zeros(shape, dtype="int32"),
        slots=ops.zeros(shape, dtype="int32"),
    )
    return live, history, finished


def _gather_beams(structure, beams):
    """Picks `leaf[b, beams[b, n]]` for leaves [B * N, ...]."""
    batch_size, num_beams = ops.shape(beams)
    first = ops.arange(batch_size, dtype="int32")[:, None] * num_beams
    places = ops.reshape(first + beams, (-1,))
    return tree.map_structure(lambda leaf: ops.take(leaf, places, 0), structure)


def _expand(settings, computed, live, logits, weights, position):
    """The `num_beams` best extensions of the live hypotheses, best first.

    Args:
        settings, live, position: see `_advance`.
        computed: the rows, with the state after a step of all their beams.
        logits, weights: what else the step has given.

    Returns:
        `(computed, live, parents, weights)`: the rows with the state of the
        candidates, the candidates, int [B, N] the beam that each extends, and
        [B, N, S] where that beam looked.
    """
    num_beams = settings.num_beams
    num_rows = ops.shape(computed.numbers)[0]
    # Each beam offers its N best next tokens, and END. More of one beam cannot
    # be among the N best of all. At its limit a hypothesis can only end.
    rules = settings.rules._replace(**computed.memory["limits"])
    log_probs, token_ids = next_tokens.best_extensions(
        logits, num_beams, position, rules
    )
    count = token_ids.shape[-1]
    # The offers of a row's beams compete, and the N most probable remain.
    joined = (num_rows, num_beams * count)
    totals = ops.reshape(rows.of(computed, live.log_probs), (-1, 1)) + log_probs
    log_probs, chosen = ops.top_k(ops.reshape(totals, joined), num_beams)
    chosen = ops.cast(chosen, "int32")
    token_ids = buffers.pick(ops.reshape(token_ids, joined), chosen)
    # Each of them takes over what belongs to the beam that it extends.
    parents = chosen // count
    source_length = ops.shape(settings.source_mask)[1]
    weights = source.weights_over(
        weights, (num_rows * num_beams, source_length)
    )
    state, weights = _gather_beams((computed.state, weights), parents)
    weights = ops.reshape(weights, (num_rows, num_beams, source_length))
    computed = computed._replace(state=state)
    # A row that is left out has stopped: none of these counts in it.
    token_ids, log_probs, parents, weights = (
        rows.spread(computed, values)
        for values in (token_ids, log_probs, parents, weights)
    )
    sums = live.attention_sums
    if settings.beta:
        sums = weights + buffers.pick(sums, parents)
    return computed, _Live(token_ids, log_probs, sums), parents, weights


def _within_width(settings, live, finished, stopped):
    """Which candidates have a place in the beam: bool [B, N]."""
    # Each finished hypothesis has taken one place: so a beam of 1 is greedy
    # search, and ends at the first END.
    num_finished = ops.sum(
        ops.cast(finished.lengths > 0, "int32"), axis=1, keepdims=True
    )
    slots = ops.arange(settings.num_beams)[None, :]
    kept = ops.logical_and(
        slots < settings.num_beams - num_finished,
        # Half of it: sums with log-probabilities stay near log 0.
        live.log_probs > next_tokens.IMPOSSIBLE / 2,
    )
    return ops.logical_and(kept, ops.logical_not(stopped)[:, None])


def _score(settings, live, position):
    """The candidates' scores after the penalties, [B, N]."""
    length = answers.num_chosen(settings.rules, position + 1)
    score = live.log_probs / penalties.length_penalty(length, settings.alpha)
    if settings.beta:
        score += penalties.coverage_penalty(
            live.attention_sums, settings.source_mask[:, None], settings.beta
        )
    return score


def _retire(settings, live, finished, ended, position):
    """The finished hypotheses with those that ended here, best first."""
    impossible = next_tokens.IMPOSSIBLE
    slots = ops.arange(settings.num_beams)[None, :]
    newly = _Finished(
        score=ops.where(ended, _score(settings, live, position), impossible),
        log_probability=ops.where(ended, live.log_probs, impossible),
        lengths=ops.where(ended, position + 1, 0),
        slots=ops.broadcast_to(slots, ops.shape(ended)),
    )
    joined = _Finished(
        *(
            ops.concatenate(pair, axis=1)
            for pair in zip(finished, newly, strict=True)
        )
    )
    _, best = ops.top_k(joined.score, settings.num_beams)
    return buffers.pick(joined, ops.cast(best, "int32"))


def _longest_penalty(rules, alpha):
    """The length penalty of a hypothesis at its row's limit: [B]."""
    lengths = answers.num_chosen(rules, rules.max_lengths[:, None])[:, 0]
    return penalties.length_penalty(lengths, alpha)


def _cannot_improve(settings, live, finished):
    """Whether no live hypothesis can reach the n best any more: bool [B].

    Log-probabilities only fall, and no penalty adds: a live hypothesis
    reaches at best its log-probability over the penalty of the longest.
    """
    reachable = ops.max(live.log_probs, axis=1) / settings.longest_penalty
    return finished.score[:, settings.n_best - 1] >= reachable


def _advance(settings, computed, stopped, position, live, history, finished):
    """One position of the search."""
    # Expansion: the best extensions of the live hypotheses.
    last_ids = rows.of(computed, live.token_ids)
    logits, state, weights = settings.step(
        ops.reshape(last_ids, (-1,)), computed.memory["memory"], computed.state
    )
    computed, live, parents, weights = _expand(
        settings,
        computed._replace(state=state),
        live,
        logits,
        weights,
        position,
    )
    token_ids = live.token_ids
    history = beam_history.write(history, position, token_ids, parents, weights)
    # Retirement: what ends here joins the finished ones and is frozen.
    kept = _within_width(settings, live, finished, stopped)
    ended = ops.logical_and(kept, ops.equal(token_ids, settings.rules.end_id))
    finished = _retire(settings, live, finished, ended, position)
    # What is kept and has not ended lives on.
    alive = ops.logical_and(kept, ops.logical_not(ended))
    live = live._replace(
        log_probs=ops.where(alive, live.log_probs, next_tokens.IMPOSSIBLE)
    )
    # Early stop: a row is done when nothing lives, or nothing can win.
    stopped = ops.logical_or(
        ops.logical_not(ops.any(alive, axis=1)),
        _cannot_improve(settings, live, finished),
    )
    computed = rows.without(computed, stopped, settings.num_beams)
    return computed, stopped, position + 1, live, history, finished


def _collect(settings, history, finished, max_length):
    """The best of the finished hypotheses, as a `SearchResult`."""
    finished = _Finished(*(leaf[:, : settings.n_best] for leaf in finished))
    ids, weights = beam_history.trace_back(
        history, finished.slots, finished.lengths, max_length
    )
    positions = ops.arange(ops.shape(ids)[2])[None, None, :]
    inside = positions < finished.lengths[:, :, None]
    return search_result.SearchResult(
        ops.where(inside, ids, settings.rules.pad_id),
        finished.lengths,
        finished.log_probability,
        finished.score,
        weights,
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
):
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
        alpha: length penalty, see `length_penalty`; 0 for none.
        beta: coverage penalty, see `coverage_penalty`; 0 for none.
        start_id, end_id, pad_id: control ids.
        forbidden_ids: ids that are never chosen.
        prefix_ids: what each answer begins with, see the package.

    Returns:
        `SearchResult` with N = `n_best`.

    Raises:
        ValueError: Unless 1 <= n_best <= num_beams; if alpha or beta is
            negative, if END is forbidden, or for another rank of
            `max_lengths` or `prefix_ids`.
    """
    if not 1 <= n_best <= num_beams:
        raise ValueError(
            "Expected 1 <= n_best <= num_beams. Received: "
            f"n_best={n_best}, num_beams={num_beams}"
        )
    penalties.check_penalties(alpha, beta)
    rules = answers.check_rules(
        max_lengths, end_id, pad_id, forbidden_ids, prefix_ids
    )
    max_length = ops.max(rules.max_lengths, initial=1)
    # The limits of the rows stand beside the memory: a row that is left out of
    # the step takes both along.
    memory, state = tree.map_structure(
        lambda leaf: ops.repeat(leaf, num_beams, axis=0),
        ({"memory": memory, "limits": answers.limits(rules)}, state),
    )
    source_mask = source.mask_of(source_mask, ops.shape(rules.max_lengths)[0])
    settings = _Settings(
        step=step,
        source_mask=source_mask,
        rules=rules,
        longest_penalty=_longest_penalty(rules, alpha),
        num_beams=num_beams,
        n_best=n_best,
        alpha=alpha,
        beta=beta,
    )

    def proceed(computed, stopped, position, *others):
        return ops.logical_and(
            position < max_length, ops.logical_not(ops.all(stopped))
        )

    *_, history, finished = ops.while_loop(
        proceed,
        functools.partial(_advance, settings),
        (
            rows.every(ops.shape(source_mask)[0], memory, state),
            ops.zeros_like(rules.max_lengths, dtype="bool"),
            ops.convert_to_tensor(0, dtype="int32"),
            *_initial_beams(settings, max_length, start_id),
        ),
    )
    return _collect(settings, history, finished, max_length)
