"""The rows of a batch that a search still computes.

In a batch of many lengths, most rows have stopped long before the last one. A
graph of TensorFlow can leave them out of the step where it does not know the
size of the batch: its tensors may then have fewer rows than before. Where the
size is known, all rows are computed to the end.
"""

import collections

from keras import ops, tree

Rows = collections.namedtuple("Rows", ["numbers", "places", "memory", "state"])
Rows.__doc__ = """The rows that are computed, A of the B in the batch.

- `numbers`: int32 [A], which rows of the batch these are.
- `places`: int32 [B], where each row of the batch stands among them; 0 for a
  row that is left out.
- `memory`, `state`: what the step gets. Their leaves are [A * N, ...], with N
  hypotheses a row.
"""


def every(batch_size, memory, state):
    """All rows, before the first step."""
    numbers = ops.arange(batch_size, dtype="int32")
    return Rows(numbers, numbers, memory, state)


def _has_fixed_size(rows):
    """Whether the size of the batch, or of what the step gets, is known."""
    # A loop's tensors keep the shapes that the graph knows, so rows can only
    # be left out where it does not know how many there are. The answers are
    # the same either way: a row that has stopped stays as it is.
    leaves = tree.flatten((rows.places, rows.memory, rows.state))
    return any(leaf.shape[0] is not None for leaf in leaves)


def of(rows, values):
    """Of values [B, ...] those of the rows that are computed: [A, ...]."""
    if _has_fixed_size(rows):
        return values
    return ops.take(values, rows.numbers, axis=0)


def spread(rows, values):
    """Values [A, ...] as [B, ...]; arbitrary ones in rows that are left out."""
    if _has_fixed_size(rows):
        return values
    return ops.take(values, rows.places, axis=0)


def without(rows, stopped, num_hypotheses=1):
    """The rows without those that have stopped, or all the same.

    To leave rows out takes a copy of the memory. So it waits until they are a
    quarter of those that are computed.

    Args:
        rows: `Rows`.
        stopped: bool [B].
        num_hypotheses: N.
    """
    if _has_fixed_size(rows):
        return rows
    goes_on = ops.logical_not(of(rows, stopped))
    num_rows = ops.sum(ops.cast(goes_on, "int32"))

    def fewer():
        (kept,) = ops.nonzero(goes_on)
        kept = ops.cast(kept, "int32")
        numbers = ops.take(rows.numbers, kept, axis=0)
        places = ops.scatter_update(
            ops.zeros_like(rows.places),
            numbers[:, None],
            ops.arange(num_rows, dtype="int32"),
        )
        hypotheses = ops.arange(num_hypotheses, dtype="int32")
        chosen = kept[:, None] * num_hypotheses + hypotheses
        chosen = ops.reshape(chosen, (-1,))
        memory, state = tree.map_structure(
            lambda leaf: ops.take(leaf, chosen, axis=0),
            (rows.memory, rows.state),
        )
        return Rows(numbers, places, memory, state)

    is_worth_it = 4 * num_rows <= 3 * ops.shape(goes_on)[0]
    return ops.cond(is_worth_it, fewer, lambda: rows)
