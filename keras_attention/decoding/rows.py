"""The rows of a batch that a search still computes.

In a batch of many lengths, most rows have stopped long before the last one. A
graph of TensorFlow can leave them out of the step where it does not know the
size of the batch: its tensors may then have fewer rows than before. Where the
size is known, all rows are computed to the end.
"""

import collections

from keras import ops, tree

Rows = collections.namedtuple("Rows", "numbers places memory state")
Rows.__doc__ = """The rows that are computed, A of the B in the batch.

- `numbers`: int32 [A], which rows of the batch these are; () if all are
  computed to the end.
- `places`: int32 [B], where each row of the batch stands among them; 0 for a
  row that is left out. () if all are computed to the end.
- `memory`, `state`: what the step gets. Their leaves are [A * N, ...], with N
  hypotheses a row.
"""


def every(batch_size, memory, state, room=None):
    """All rows, before the first step."""
    numbers = ops.arange(batch_size, dtype="int32")
    # A loop's tensors keep the shapes that the graph knows, so rows can only
    # be left out where it does not know how many there are. The answers are
    # the same either way: a row that has stopped stays as it is.
    leaves = tree.flatten((numbers, memory, state))
    # A compiler wants the same shapes at each step.
    if room or any(leaf.shape[0] is not None for leaf in leaves):
        return Rows((), (), memory, state)
    return Rows(numbers, numbers, memory, state)


def of(rows, structure):
    """Of leaves [B, ...] those of the rows that are computed: [A, ...]."""
    return _take(structure, rows.numbers)


def spread(rows, structure):
    """Leaves [A, ...] as [B, ...]; arbitrary in rows that are left out."""
    return _take(structure, rows.places)


def _take(structure, places):
    """The rows of all leaves at these places; all as they are for ()."""
    if isinstance(places, tuple):
        return structure
    return tree.map_structure(
        lambda leaf: ops.take(leaf, places, axis=0), structure
    )


def gather(structure, hypotheses):
    """Picks `leaf[a, hypotheses[a, n]]` of leaves [A * N, ...]."""
    num_rows, num_hypotheses = ops.shape(hypotheses)
    first = ops.arange(num_rows, dtype="int32")[:, None] * num_hypotheses
    return _take(structure, ops.reshape(first + hypotheses, (-1,)))


def without(rows, stopped, num_hypotheses):
    """The rows without those that have stopped, or all the same.

    To leave rows out takes a copy of the memory. So it waits until they are a
    quarter of those that are computed.

    Args:
        rows: `Rows`.
        stopped: bool [B].
        num_hypotheses: N.
    """
    if isinstance(rows.numbers, tuple):
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
        memory, state = _take((rows.memory, rows.state), chosen)
        return Rows(numbers, places, memory, state)

    is_worth_it = 4 * num_rows <= 3 * ops.shape(goes_on)[0]
    return ops.cond(is_worth_it, fewer, lambda: rows)
