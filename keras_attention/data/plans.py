"""Which rows of a block make which batch, by a budget of tokens."""

import numpy as np


def plan_batches(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    max_tokens: int,
    multiple_of: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Cuts rows, sorted by length, into batches of a token budget.

    Args:
        source_lengths, target_lengths: int [n], tokens of each row.
        max_tokens: the most target tokens of a batch, START and padding
            included. Source tokens may be twice as many. A longer row is a
            batch of its own.
        multiple_of: rows of a batch come in multiples of this (the number
            of replicas), where the budget allows.

    Returns:
        `(order, ends)`: int64 [n], rows by target length, then source
        length, ties as they come; int64 [batches], where each batch ends.

    Raises:
        ValueError: Unless both limits are at least 1.
    """
    if max_tokens < 1 or multiple_of < 1:
        raise ValueError(
            "Expected max_tokens >= 1 and multiple_of >= 1. Received: "
            f"max_tokens={max_tokens}, multiple_of={multiple_of}"
        )
    # Sort the rows by target length, then by source length.
    order = np.lexsort((source_lengths, target_lengths))
    # What a row costs, were all rows of its batch like it.
    costs = np.maximum((source_lengths + 1) // 2, target_lengths)[order]
    ends, start = [], 0
    while start < len(costs):
        # The most that a row of the next batch costs, by the batch's size.
        # Sources do not grow steadily: take the running maximum.
        window = np.maximum.accumulate(costs[start : start + max_tokens])
        sizes = np.arange(1, len(window) + 1)
        # Take as many rows as fit the budget, but one at least.
        fits = int(np.searchsorted(window * sizes > max_tokens, True))
        size = max(1, fits)
        # Go down to a multiple, unless these rows are the last ones.
        if start + size < len(costs) and size > multiple_of:
            size -= size % multiple_of
        # The batch ends here, and the next one starts.
        start += size
        ends.append(start)
    return order.astype("int64"), np.array(ends, "int64")
