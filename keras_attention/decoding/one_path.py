"""The loop of the searches that follow one hypothesis a row."""

from keras import ops

from keras_attention.decoding import buffers, rows, search_result, source


def loop(choose, step, memory, state, source_mask, start_id, rules):
    """What extends one hypothesis a row, until END.

    The searches run it themselves: so few functions lie between a text and
    the step.

    Args:
        choose: `choose(logits, position)` -> `(token_ids, log_probs)`, both
            [B].
        step, memory, state: see the package.
        source_mask: bool [B, S].
        start_id: what the first step gets.
        rules: `answers.Rules`.

    Returns:
        The arguments of `ops.while_loop`.
    """
    batch_size, source_length = ops.shape(source_mask)
    max_length = ops.max(rules.max_lengths, initial=1)

    # The loop ends when every row has, and not at the limit of the longest.
    def proceed(position, last_ids, ids, lengths, log_probs, weights, computed):
        return ops.logical_and(
            position < max_length, ops.any(ops.equal(lengths, 0))
        )

    def body(position, last_ids, ids, lengths, log_probs, weights, computed):
        # Only rows that still go on are worth a step of the model.
        last_ids = rows.of(computed, last_ids)
        logits, state, step_weights = step(
            last_ids, computed.memory, computed.state
        )
        step_weights = source.weights_over(
            step_weights, (ops.shape(last_ids)[0], source_length)
        )
        computed = computed._replace(state=state)
        # All rows of the batch: what is drawn depends on a row's place in it.
        token_ids, chosen = choose(rows.spread(computed, logits), position)
        # A hypothesis that has ended gets padding, and nothing changes it.
        alive = ops.equal(lengths, 0)
        token_ids = ops.where(alive, token_ids, rules.pad_id)
        step_weights = ops.where(
            alive[:, None], rows.spread(computed, step_weights), 0.0
        )
        ended = ops.logical_and(alive, ops.equal(token_ids, rules.end_id))
        lengths = ops.where(ended, position + 1, lengths)
        return (
            position + 1,
            token_ids,
            buffers.write(ids, position, token_ids),
            lengths,
            log_probs + ops.where(alive, chosen, 0.0),
            buffers.write(weights, position, step_weights),
            rows.without(computed, lengths > 0),
        )

    room = (batch_size, max_length)
    start = (
        ops.convert_to_tensor(0, dtype="int32"),
        ops.full((batch_size,), start_id, dtype="int32"),
        buffers.empty_rows(*room, value=rules.pad_id, dtype="int32"),
        ops.zeros((batch_size,), dtype="int32"),
        ops.zeros((batch_size,), dtype="float32"),
        buffers.empty_rows(*room, source_length),
        rows.every(batch_size, memory, state),
    )
    return proceed, body, start


def result(end, rules):
    """The hypotheses at the end of a loop.

    Args:
        end: what `ops.while_loop` returned.
        rules: `answers.Rules`.

    Returns:
        `SearchResult` with N = 1, its scores without penalties.
    """
    _, _, ids, lengths, log_probability, weights, _ = end
    max_length = ops.max(rules.max_lengths, initial=1)
    ids = buffers.fill(ids, max_length, rules.pad_id)
    weights = buffers.fill(weights, max_length)
    best = (ids, lengths, log_probability, log_probability, weights)
    return search_result.SearchResult(
        *(ops.expand_dims(leaf, 1) for leaf in best)
    )
