"""What every search returns."""

import collections

from keras import ops, tree

from keras_attention.decoding import buffers

SearchResult = collections.namedtuple(
    "SearchResult",
    ["ids", "lengths", "log_probability", "score", "attention_weights"],
)
SearchResult.__doc__ = """Hypotheses of a search, best first.

- `ids`: int32 [B, N, L], END included, then PAD.
- `lengths`: int32 [B, N], END included; 0 where there is no N-th hypothesis,
  whose log-probability and score are then -1e9.
- `log_probability`: float32 [B, N], sum of the tokens' log p, END included.
- `score`: float32 [B, N], the log-probability after the penalties.
- `attention_weights`: float32 [B, N, L, S], 0 after END; S is 0 without a
  source.
"""


def best(result, count, n_best):
    """The best of what several searches found for one row.

    Args:
        result: `SearchResult` whose rows are `count` for each row of a batch.
        count: how many searches a row of the batch had.
        n_best: how many hypotheses are wanted.

    Returns:
        `SearchResult` with N = `n_best`, by their scores.
    """
    num_found = result.lengths.shape[1] * count

    def joined(leaf):
        # Without a source there is nothing to divide -1 by.
        num_rows = ops.shape(leaf)[0] // count
        return ops.reshape(leaf, (num_rows, num_found, *ops.shape(leaf)[2:]))

    result = tree.map_structure(joined, result)
    _, order = ops.top_k(result.score, n_best)
    return buffers.pick(result, ops.cast(order, "int32"))
