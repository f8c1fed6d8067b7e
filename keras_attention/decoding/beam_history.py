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
        attention_weights=buffers.empty_rows(
            *rows, source_length, is_wide=True
        ),
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
    looks = buffers.whole(history.attention_weights)
    batch_size, length, num_beams, source_length = ops.shape(looks)

    def body(count, slots, ids, sources):
        position = length - 1 - count
        # The way back begins at the hypothesis' own END.
        inside = position < finished.lengths
        here, before = buffers.pick(
            (history.token_ids[:, position], history.parents[:, position]),
            slots,
        )
        return (
            count + 1,
            ops.where(inside, before, slots),
            buffers.write(ids, count, ops.where(inside, here, pad_id)),
            buffers.write(sources, count, before),
        )

    rows = (batch_size, length, finished.slots.shape[1])
    _, _, ids, sources = ops.while_loop(
        lambda count, *_: count < length,
        body,
        (
            ops.convert_to_tensor(0, dtype="int32"),
            finished.slots,
            buffers.empty_rows(*rows, dtype="int32"),
            buffers.empty_rows(*rows, dtype="int32"),
        ),
    )
    # The last position was written first.
    ids, sources = ops.flip(ids, axis=1), ops.flip(sources, axis=1)
    positions = ops.arange(length)[None, :, None]
    places = positions * num_beams + sources  # [B, positions, K]
    looks = ops.reshape(looks, (batch_size, length * num_beams, source_length))
    weights = buffers.pick(looks, ops.reshape(places, (batch_size, -1)))
    weights = ops.reshape(weights, (*rows, source_length))
    inside = positions < finished.lengths[:, None]
    weights = ops.where(inside[..., None], weights, 0.0)
    ids = buffers.fill(ids, max_length, pad_id)
    weights = buffers.fill(weights, max_length)
    return ops.swapaxes(ids, 1, 2), ops.swapaxes(weights, 1, 2)
