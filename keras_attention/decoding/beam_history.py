"""What each beam held at each position, and the way back through it."""

import collections

from keras import ops

from keras_attention.decoding import buffers

History = collections.namedtuple(
    "History", ["token_ids", "parents", "attention_weights"]
)
History.__doc__ = """A slot for each beam at each position.

- `token_ids`: int [B, positions, N], what the slot holds.
- `parents`: int [B, positions, N], the slot of the position before that it
  extends.
- `attention_weights`: [B, positions, N, S], where it looked.
"""


def empty(batch_size, max_length, num_beams, source_length):
    """A history before the first position."""
    rows = (batch_size, max_length, num_beams)
    return History(
        token_ids=buffers.empty_rows(*rows, dtype="int32"),
        parents=buffers.empty_rows(*rows, dtype="int32"),
        attention_weights=buffers.empty_rows(*rows, source_length),
    )


def write(history, position, *slots):
    """Puts the token ids, parents and weights of a position into it."""
    return History(
        *(
            buffers.write(buffer, position, values)
            for buffer, values in zip(history, slots, strict=True)
        )
    )


def trace_back(history, slots, lengths, max_length):
    """Follows each hypothesis from its last slot to its first.

    Args:
        history: `History`.
        slots: int [B, K], the slot that holds the hypothesis' END.
        lengths: int [B, K], END included.
        max_length: int, L.

    Returns:
        `(ids [B, K, L], attention_weights [B, K, L, S])`, 0 after END.
    """
    # Beams hold back-pointers, and not whole hypotheses: to reorder these at
    # each step would copy all tokens and weights so far.
    batch_size, length, _, source_length = ops.shape(history.attention_weights)
    num_hypotheses = slots.shape[1]

    def body(count, slots, ids, attention_weights):
        position = length - 1 - count
        # The way back begins at the hypothesis' own END.
        inside = position < lengths
        here, before, seen = buffers.pick(
            History(*(buffer[:, position] for buffer in history)), slots
        )
        return (
            count + 1,
            ops.where(inside, before, slots),
            buffers.write(ids, count, ops.where(inside, here, 0)),
            buffers.write(
                attention_weights,
                count,
                ops.where(inside[:, :, None], seen, 0.0),
            ),
        )

    rows = (batch_size, length, num_hypotheses)
    _, _, ids, attention_weights = ops.while_loop(
        lambda count, *_: count < length,
        body,
        (
            ops.convert_to_tensor(0, dtype="int32"),
            slots,
            buffers.empty_rows(*rows, dtype="int32"),
            buffers.empty_rows(*rows, source_length),
        ),
    )
    return tuple(
        ops.swapaxes(buffers.fill(ops.flip(buffer, axis=1), max_length), 1, 2)
        for buffer in (ids, attention_weights)
    )
