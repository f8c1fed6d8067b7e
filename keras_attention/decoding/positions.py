"""The loop of every search, over the positions of an answer.

At each position the model makes a step, and with what it says the search makes
one. Between the two, rows that have stopped are left out: a search knows
nothing of it.
"""

import math

from keras import ops

from keras_attention.decoding import common_past, rows


def loop(step, computed, read, advance, hypotheses, max_length, settle=None):
    """What extends the hypotheses of a search until all rows have stopped.

    Args:
        step: see the package.
        computed: `rows.Rows`, with what the first step gets.
        read: `read(logits, attention_weights, state)` -> a structure of [A,
            ...]: what the search has to know of what the step returned, in A
            of the B rows.
        advance: `advance(position, seen, hypotheses)` -> `hypotheses`. What
            was read has come to all rows; it is arbitrary in rows that have
            stopped.
        hypotheses: the search's own namedtuple, before the first position.
            The loop looks at three of its fields: `token_ids`, int [B] or
            [B, N]; `parents`, int [B, N], the hypothesis that each of them
            extends, or () if each extends itself; `stopped`, bool [B].
        max_length: int, the most positions.
        settle: see the package; None of a model that has none.

    Returns:
        The arguments of `ops.while_loop`. Its variables are the position, the
        hypotheses and the rows, with the common past of the hypotheses.
    """

    # The loop ends when every row has, and not at the limit of the longest.
    def proceed(position, hypotheses, *_):
        going = ops.logical_not(ops.all(hypotheses.stopped))
        return ops.logical_and(position < max_length, going)

    def body(position, hypotheses, computed):
        computed, past = computed
        num_hypotheses = math.prod(hypotheses.token_ids.shape[1:])  # N, or 1
        # Only rows that still go on are worth a step of the model.
        computed = rows.without(
            computed,
            hypotheses.stopped,
            num_hypotheses,
            memory_is_shared=settle is not None,
        )
        token_ids, parents = rows.of(
            computed, (hypotheses.token_ids, hypotheses.parents)
        )
        memory, state = computed.memory, computed.state
        if len(token_ids.shape) == 2:
            # Each hypothesis takes over what belongs to the one it extends.
            # Only the state does: all beams of a row have one source.
            state = rows.gather(state, parents)
            token_ids = ops.reshape(token_ids, (-1,))
        if settle is not None:
            past, memory, state = common_past.settle(
                settle, past, position, hypotheses, memory, state
            )
        logits, state, weights = step(token_ids, memory, state)
        seen = rows.spread(computed, read(logits, weights, state))
        hypotheses = advance(position, seen, hypotheses)
        computed = computed._replace(memory=memory, state=state)
        return position + 1, hypotheses, (computed, past)

    start = ops.convert_to_tensor(0, dtype="int32")
    past = () if settle is None else common_past.begin(hypotheses)
    return proceed, body, (start, hypotheses, (computed, past))
