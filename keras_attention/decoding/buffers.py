"""Tensors that a loop fills, one position after the other."""

from keras import ops


def empty_rows(batch_size, max_length, *shape, value=0, dtype="float32"):
    """A buffer for `write`: [B, max_length, ...], filled with `value`.

    Where TensorFlow does not know `max_length` when it makes the graph, the
    buffer is [B, 0, ...] and grows: at each write in a loop TensorFlow copies
    the whole room, while joining copies what is filled.
    """
    buffer = ops.full((batch_size, max_length, *shape), value, dtype=dtype)
    if _grows(buffer):
        # What stands after the last place: nothing, of a length that the
        # graph does not know. (A length of 0 would be fixed for the loop.)
        return buffer[:, max_length:]
    return buffer


def _grows(buffer):
    """Whether the graph leaves the buffer's length open."""
    return buffer.shape[1] is None


def write(buffer, position, values):
    """Puts `values` [B, ...] at `buffer[:, position]`."""
    values = ops.expand_dims(values, 1)
    if _grows(buffer):
        return ops.concatenate([buffer, values], axis=1)
    start = (0, position, *(0 for _ in buffer.shape[2:]))
    return ops.slice_update(buffer, start, values)


def fill(buffer, max_length, value=0):
    """A buffer that grew, as one that had room for `max_length`."""
    batch_size, length = ops.shape(buffer)[:2]
    rest = (batch_size, max_length - length, *ops.shape(buffer)[2:])
    return ops.concatenate(
        [buffer, ops.full(rest, value, dtype=buffer.dtype)], axis=1
    )
