"""The searches that follow one hypothesis a row."""

import collections

from keras import ops

from keras_attention.decoding import (
    answers,
    buffers,
    ngrams,
    positions,
    rows,
    search_result,
    source,
)

# Each hypothesis so far; its last token, and whether it has ended.
_Path = collections.namedtuple(
    "_Path",
    "token_ids parents stopped ids lengths log_probability attention_weights",
)


def loop(offer, choose, step, memory, state, source_mask, rules):
    """What extends one hypothesis a row, until END.

    Args:
        offer: `offer(logits, blocked_ids)` -> what `choose` has to know, a
            structure of [A, ...]: only rows that still go on are asked.
        choose: `choose(offers, position)` -> `(token_ids, log_probs)`, both
            [B]: all rows of the batch, as what is drawn depends on a row's
            place in it.
        step, memory, state: see the package.
        source_mask: bool [B, S].
        rules: `answers.Rules`.

    Returns:
        The arguments of `ops.while_loop`, see `positions.loop`.
    """
    batch_size, source_length = ops.shape(source_mask)
    max_length = answers.max_length(rules)

    def read(logits, weights, state):
        weights = source.weights_over(weights, logits, source_length)
        return offer(logits, ngrams.blocked_ids(state, rules)), weights

    def advance(position, seen, path):
        offers, weights = seen
        token_ids, chosen = choose(offers, position)
        # A hypothesis that has ended gets padding, and nothing changes it.
        alive = ops.logical_not(path.stopped)
        token_ids = ops.where(alive, token_ids, rules.pad_id)
        weights = ops.where(alive[:, None], weights, 0.0)
        ended = ops.logical_and(alive, ops.equal(token_ids, rules.end_id))
        return _Path(
            token_ids,
            (),  # A cache need not be copied, as no hypothesis moves.
            ops.logical_or(path.stopped, ended),
            buffers.write(path.ids, position, token_ids),
            ops.where(ended, position + 1, path.lengths),
            path.log_probability + ops.where(alive, chosen, 0.0),
            buffers.write(path.attention_weights, position, weights),
        )

    room = (batch_size, max_length)
    path = _Path(
        token_ids=ops.full((batch_size,), rules.start_id, dtype="int32"),
        parents=(),
        stopped=ops.zeros((batch_size,), dtype="bool"),
        ids=buffers.empty_rows(*room, value=rules.pad_id, dtype="int32"),
        lengths=ops.zeros((batch_size,), dtype="int32"),
        log_probability=ops.zeros((batch_size,), dtype="float32"),
        attention_weights=buffers.empty_rows(
            *room, source_length, is_wide=True
        ),
    )
    step, state, _ = ngrams.watched(step, state, rules)
    computed = rows.every(batch_size, memory, state, rules.room)
    return positions.loop(step, computed, read, advance, path, max_length)


def result(end, rules):
    """The hypotheses at the end of a loop.

    Args:
        end: what `ops.while_loop` returned.
        rules: `answers.Rules`.

    Returns:
        `SearchResult` with N = 1, its scores without penalties.
    """
    _, path, _ = end
    max_length = answers.max_length(rules)
    ids = buffers.fill(path.ids, max_length, rules.pad_id)
    weights = buffers.fill(path.attention_weights, max_length)
    log_probability = path.log_probability
    best = (ids, path.lengths, log_probability, log_probability, weights)
    return search_result.SearchResult(
        *(ops.expand_dims(leaf, 1) for leaf in best)
    )
