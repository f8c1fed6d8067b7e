"""Beam search, with finished hypotheses kept apart and frozen."""

import collections
import functools

from keras import ops, tree

from keras_attention.decoding import scores
from keras_attention.tokens import END, PAD, START


def _gather_beams(structure, beams):
    """Picks `leaf[b, beams[b, n]]` for leaves [B * N, ...]."""
    batch_size, num_beams = ops.shape(beams)
    first = ops.arange(batch_size, dtype="int32")[:, None] * num_beams
    rows = ops.reshape(first + beams, (-1,))
    return tree.map_structure(lambda leaf: ops.take(leaf, rows, 0), structure)


def _trace_back(slots, lengths, max_length, token_ids, parents, weights):
    """Follows each hypothesis from its last slot to its first.

    Args:
        slots: int [B, K], the slot that held the hypothesis' END.
        lengths: int [B, K], END included.
        max_length: int, L.
        token_ids, parents: int [B, positions, N]: at each position, what a
            slot holds and which slot of the position before it extends.
        weights: [B, positions, N, S].

    Returns:
        `(ids [B, K, L], attention_weights [B, K, L, S])`.
    """
    batch_size, length, _, source_length = ops.shape(weights)
    num_hypotheses = slots.shape[1]

    def body(count, slots, ids, attention_weights):
        position = length - 1 - count
        alive = position < lengths
        here = scores.pick(token_ids[:, position], slots)
        seen = scores.pick(weights[:, position], slots)
        before = scores.pick(parents[:, position], slots)
        return (
            count + 1,
            ops.where(alive, before, slots),
            scores.write(ids, count, ops.where(alive, here, 0)),
            scores.write(
                attention_weights,
                count,
                ops.where(alive[:, :, None], seen, 0.0),
            ),
        )

    rows = (batch_size, length, num_hypotheses)
    _, _, ids, attention_weights = ops.while_loop(
        lambda count, *_: count < length,
        body,
        (
            ops.convert_to_tensor(0, dtype="int32"),
            slots,
            scores.empty_rows(*rows, dtype="int32"),
            scores.empty_rows(*rows, source_length),
        ),
    )
    return tuple(
        ops.swapaxes(scores.fill(ops.flip(buffer, axis=1), max_length), 1, 2)
        for buffer in (ids, attention_weights)
    )


_Live = collections.namedtuple(
    "_Live", ["token_ids", "log_probs", "attention_sums", "state"]
)
_History = collections.namedtuple(
    "_History", ["token_ids", "parents", "weights"]
)
_Finished = collections.namedtuple(
    "_Finished", ["score", "log_probability", "lengths", "slots"]
)


_Settings = collections.namedtuple(
    "_Settings",
    [
        "step",
        "memory",
        "source_mask",
        "rules",
        "beam_rules",
        "num_beams",
        "n_best",
        "alpha",
        "beta",
    ],
)


def _initial_beams(settings, state, max_length, start_id):
    """One live beam a row; the others are impossible until it branches."""
    batch_size, source_length = ops.shape(settings.source_mask)
    shape = (batch_size, settings.num_beams)
    first = ops.equal(ops.arange(settings.num_beams), 0)[None, :]
    impossible = ops.full(shape, scores.IMPOSSIBLE, dtype="float32")
    live = _Live(
        token_ids=ops.full(
            (batch_size * settings.num_beams,), start_id, dtype="int32"
        ),
        log_probs=ops.where(first, 0.0, impossible),
        attention_sums=ops.zeros((*shape, source_length), dtype="float32"),
        state=state,
    )
    rows = (batch_size, max_length, settings.num_beams)
    history = _History(
        token_ids=scores.empty_rows(*rows, dtype="int32"),
        parents=scores.empty_rows(*rows, dtype="int32"),
        weights=scores.empty_rows(*rows, source_length),
    )
    finished = _Finished(
        score=impossible,
        log_probability=impossible,
        lengths=ops.zeros(shape, dtype="int32"),
        slots=ops.zeros(shape, dtype="int32"),
    )
    return live, history, finished


def _extend(settings, live, position):
    """One step of all beams: the `num_beams` best extensions, best first.

    Returns:
        `(live, parents, weights)`: the candidates, int [B, N] the beam that
        each extends, and [B, N, S] where that beam looked.
    """
    batch_size, source_length = ops.shape(settings.source_mask)
    num_beams = settings.num_beams
    logits, state, weights = settings.step(
        live.token_ids, settings.memory, live.state
    )
    log_probs, token_ids = scores.best_extensions(
        logits,
        num_beams,
        position,
        settings.beam_rules,
    )
    totals = ops.reshape(live.log_probs, (-1, 1)) + log_probs
    count = token_ids.shape[-1]
    joined = (batch_size, num_beams * count)
    log_probs, chosen = ops.top_k(ops.reshape(totals, joined), num_beams)
    chosen = ops.cast(chosen, "int32")
    parents = chosen // count
    token_ids = scores.pick(ops.reshape(token_ids, joined), chosen)
    weights = scores.weights_over_source(
        weights, (batch_size * num_beams, source_length)
    )
    state, weights = _gather_beams((state, weights), parents)
    weights = ops.reshape(weights, (batch_size, num_beams, source_length))
    sums = weights + scores.pick(live.attention_sums, parents)
    token_ids = ops.reshape(token_ids, (-1,))
    return _Live(token_ids, log_probs, sums, state), parents, weights


def _retire(settings, live, finished, stopped, position):
    """Moves the candidates that ended from the live to the finished ones."""
    num_beams = settings.num_beams
    length = scores.num_chosen(settings.rules, position + 1)
    score = live.log_probs / scores.length_penalty(length, settings.alpha)
    if settings.beta:
        score += scores.coverage_penalty(
            live.attention_sums, settings.source_mask[:, None], settings.beta
        )
    # Each finished hypothesis has taken one place of the beam.
    num_finished = ops.sum(
        ops.cast(finished.lengths > 0, "int32"), axis=1, keepdims=True
    )
    slots = ops.arange(num_beams)[None, :]
    kept = ops.logical_and(
        slots < num_beams - num_finished,
        live.log_probs > scores.IMPOSSIBLE / 2,
    )
    kept = ops.logical_and(kept, ops.logical_not(stopped)[:, None])
    token_ids = ops.reshape(live.token_ids, (-1, num_beams))
    ended = ops.logical_and(kept, ops.equal(token_ids, settings.rules.end_id))
    newly = _Finished(
        score=ops.where(ended, score, scores.IMPOSSIBLE),
        log_probability=ops.where(ended, live.log_probs, scores.IMPOSSIBLE),
        lengths=ops.where(ended, position + 1, 0),
        slots=ops.broadcast_to(slots, ops.shape(ended)),
    )
    joined = [
        ops.concatenate(pair, axis=1)
        for pair in zip(finished, newly, strict=True)
    ]
    _, best = ops.top_k(joined[0], num_beams)
    best = ops.cast(best, "int32")
    finished = _Finished(*(scores.pick(leaf, best) for leaf in joined))
    live_on = ops.logical_and(kept, ops.logical_not(ended))
    live = live._replace(
        log_probs=ops.where(live_on, live.log_probs, scores.IMPOSSIBLE)
    )
    length = scores.num_chosen(
        settings.rules, settings.rules.max_lengths[:, None]
    )
    reachable = ops.max(live.log_probs, axis=1) / scores.length_penalty(
        length[:, 0], settings.alpha
    )
    stopped = ops.logical_or(
        ops.logical_not(ops.any(live_on, axis=1)),
        finished.score[:, settings.n_best - 1] >= reachable,
    )
    return live, finished, stopped


def _advance(settings, position, live, history, finished, stopped):
    """One position of the search: extend, remember, retire."""
    live, parents, weights = _extend(settings, live, position)
    token_ids = ops.reshape(live.token_ids, ops.shape(parents))
    history = _History(
        scores.write(history.token_ids, position, token_ids),
        scores.write(history.parents, position, parents),
        scores.write(history.weights, position, weights),
    )
    live, finished, stopped = _retire(
        settings, live, finished, stopped, position
    )
    return position + 1, live, history, finished, stopped


def _collect(history, finished, max_length, n_best, pad_id):
    """The best of the finished hypotheses, as a `SearchResult`."""
    finished = _Finished(*(leaf[:, :n_best] for leaf in finished))
    ids, weights = _trace_back(
        finished.slots, finished.lengths, max_length, *history
    )
    positions = ops.arange(ops.shape(ids)[2])[None, None, :]
    ids = ops.where(positions < finished.lengths[:, :, None], ids, pad_id)
    return scores.SearchResult(
        ids,
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
    and its place in the width, so that a beam of 1 is greedy search, and a
    beam as wide as there are hypotheses is exhaustive. A row stops when it
    has `num_beams` finished hypotheses, or `n_best` that no live one can
    beat any more: log-probabilities only fall and no penalty adds, so a
    live hypothesis can at best reach `log_probability / lp(max_length)`.

    Args:
        step, memory, state, source_mask, max_lengths: see the module.
        num_beams: width N.
        n_best: how many hypotheses must be the best ones, at most N.
        alpha, beta: length and coverage penalty, see `length_penalty` and
            `coverage_penalty`; 0 for none.
        start_id, end_id, pad_id: control ids.
        forbidden_ids: ids that are never produced.
        prefix_ids: what each answer begins with, see the module.

    Returns:
        `SearchResult` with N = `n_best`.

    Errors: `ValueError` unless 1 <= n_best <= num_beams, for a negative
    alpha or beta, and where END is forbidden.
    """
    if not 1 <= n_best <= num_beams:
        raise ValueError(
            "Expected 1 <= n_best <= num_beams. Received: "
            f"n_best={n_best}, num_beams={num_beams}"
        )
    scores.check_penalties(alpha, beta)
    scores.check_end(end_id, forbidden_ids)
    max_lengths = scores.row_limits(max_lengths)
    max_length = ops.max(max_lengths, initial=1)
    source_mask = scores.source_rows(source_mask, ops.shape(max_lengths)[0])
    rules = scores.Rules(
        max_lengths,
        end_id,
        forbidden_ids,
        scores.prefix_rows(prefix_ids),
        pad_id,
    )

    def for_each_beam(structure):
        return tree.map_structure(
            lambda leaf: ops.repeat(leaf, num_beams, axis=0), structure
        )

    memory, state = for_each_beam((memory, state))
    beam_rules = rules._replace(max_lengths=for_each_beam(max_lengths))
    if prefix_ids is not None:
        beam_rules = beam_rules._replace(
            prefix_ids=for_each_beam(rules.prefix_ids)
        )
    settings = _Settings(
        step,
        memory,
        source_mask,
        rules,
        beam_rules,
        num_beams,
        n_best,
        alpha,
        beta,
    )

    def proceed(position, live, history, finished, stopped):
        return ops.logical_and(
            position < max_length, ops.logical_not(ops.all(stopped))
        )

    _, _, history, finished, _ = ops.while_loop(
        proceed,
        functools.partial(_advance, settings),
        (
            ops.convert_to_tensor(0, dtype="int32"),
            *_initial_beams(settings, state, max_length, start_id),
            ops.zeros_like(max_lengths, dtype="bool"),
        ),
    )
    return _collect(history, finished, max_length, n_best, pad_id)
