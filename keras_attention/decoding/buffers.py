"""Tensors that a loop fills, one position after the other."""

import typing

from keras import ops, tree

# So many places are joined to those before at once.
BLOCK = 32


class Blocks(typing.NamedTuple):
    """A wide buffer that grows: what is joined, and fewer than `BLOCK` more.

    To join one place copies all before it. So most are joined to the few
    last ones alone.
    """

    joined: typing.Any
    last: typing.Any


def empty_rows(
    batch_size, max_length, *shape, value=0, dtype="float32", is_wide=False
):
    """A buffer for `write`: [B, max_length, ...], filled with `value`.

    Where TensorFlow does not know `max_length` when it makes the graph, the
    buffer is [B, 0, ...] and grows: at each write in a loop TensorFlow copies
    the whole room, while joining copies what is filled. One that `is_wide`
    grows in `Blocks`.
    """
    buffer = ops.full((batch_size, max_length, *shape), value, dtype=dtype)
    if not _grows(buffer):
        return buffer
    # What stands after the last place: nothing, of a length that the graph
    # does not know. (A length of 0 would be fixed for the loop.)
    nothing = buffer[:, max_length:]
    return Blocks(nothing, nothing) if is_wide else nothing


def _grows(buffer):
    """Whether the graph leaves the buffer's length open."""
    return buffer.shape[1] is None


def write(buffer, position, values):
    """Puts `values` [B, ...] at `buffer[:, position]`."""
    if isinstance(buffer, Blocks):
        buffer = buffer._replace(last=write(buffer.last, position, values))
        return ops.cond(
            ops.shape(buffer.last)[1] >= BLOCK,
            lambda: Blocks(whole(buffer), buffer.last[:, BLOCK:]),
            lambda: buffer,
        )
    values = ops.expand_dims(values, 1)
    if _grows(buffer):
        return ops.concatenate([buffer, values], axis=1)
    start = (0, position, *(0 for _ in buffer.shape[2:]))
    return ops.slice_update(buffer, start, values)


def whole(buffer):
    """The places so far of a buffer: one tensor [B, positions, ...]."""
    return (
        ops.concatenate(buffer, axis=1)
        if isinstance(buffer, Blocks)
        else buffer
    )


def fill(buffer, max_length, value=0):
    """A buffer that grew, as one that had room for `max_length`."""
    buffer = whole(buffer)
    batch_size, length = ops.shape(buffer)[:2]
    rest = (batch_size, max_length - length, *ops.shape(buffer)[2:])
    return ops.concatenate(
        [buffer, ops.full(rest, value, dtype=buffer.dtype)], axis=1
    )


def size(values):
    """The length of axis 1: a number, or a tensor where the graph knows none.

    (`ops.shape` makes operations for the other axes in any case.)
    """
    known = values.shape[1]
    return ops.shape(values)[1] if known is None else known


def pick(values, places):
    """`values[b, places[b, k]]`, in few operations.

    (`ops.take_along_axis` makes about twenty for shapes, at each step.)

    Args:
        values: [B, V, ...], or a structure of such.
        places: int32 [B, K], from 0.

    Returns:
        [B, K, ...], or a structure of such.
    """
    batch_size, size = ops.shape(tree.flatten(values)[0])[:2]
    firsts = ops.arange(batch_size, dtype="int32") * size
    rows = firsts[:, None] + places

    def picked(leaf):
        joined = (batch_size * size, *ops.shape(leaf)[2:])
        return ops.take(ops.reshape(leaf, joined), rows, axis=0)

    return tree.map_structure(picked, values)
