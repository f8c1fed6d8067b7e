"""What each beam held at each position, and the way back through it."""

import collections

from keras import ops

from keras_attention.decoding import buffers

History = collections.namedtuple(
    "History", "token_ids parents attention_weights"
)
History.__doc__ = """A slot for each beam at each position.

- `token_ids`: int [B, positions, N], what the slot holds.
- `parents`: int [B, positions, N], the slot of the position before that it
  extends.
- `attention_weights`: [B, positions, N, S], where the step looked that read
  the slot of the position before: each slot that extends it looks there.
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


def trace_back(history, finished, max_length, pad_id):
    """Follows each hypothesis from its last slot to its first.

    Args:
        history: `History`.
        finished: has `slots`, int [B, K], those that hold the END of each
            hypothesis, and `lengths`, int [B, K], END included.
        max_length: int, L.
        pad_id: what stands after END.

    Returns:
        `(ids [B, K, L], attention_weights [B, K, L, S])`, the weights 0 after
        END.
    """
    # Beams hold back-pointers, and not whole hypotheses: to reorder these at
    # each step would copy all tokens and weights so far.
    batch_size, length, _, source_length = ops.shape(history.attention_weights)

    def body(count, slots, ids, attention_weights):
        position = length - 1 - count
        # The way back begins at the hypothesis' own END.
        inside = position < finished.lengths
        token_ids, parents, looks = (one[:, position] for one in history)
        here, before = buffers.pick((token_ids, parents), slots)
        seen = buffers.pick(looks, before)
        here = ops.where(inside, here, pad_id)
        seen = ops.where(inside[:, :, None], seen, 0.0)
        return (
            count + 1,
            ops.where(inside, before, slots),
            buffers.write(ids, count, here),
            buffers.write(attention_weights, count, seen),
        )

    rows = (batch_size, length, finished.slots.shape[1])
    _, _, ids, attention_weights = ops.while_loop(
        lambda count, *_: count < length,
        body,
        (
            ops.convert_to_tensor(0, dtype="int32"),
            finished.slots,
            buffers.empty_rows(*rows, dtype="int32"),
            buffers.empty_rows(*rows, source_length),
        ),
    )
    # The last position was written first.
    ids = buffers.fill(ops.flip(ids, axis=1), max_length, pad_id)
    weights = buffers.fill(ops.flip(attention_weights, axis=1), max_length)
    return ops.swapaxes(ids, 1, 2), ops.swapaxes(weights, 1, 2)
