"""What is kept of a corpus, dropped of it, and how its batches are filled."""

import dataclasses
import zlib
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from keras_attention.data import columns, plans
from keras_attention.data.readers import counted_pairs


@dataclasses.dataclass(frozen=True)
class Report:
    """What the pipeline keeps of a corpus.

    Args:
        kept: rows that are trained on.
        dropped: all others: too long, or blank.
        batches: of an epoch.
        tokens: of the texts that the model writes, or else reads. END counts,
            START does not.
        padding_share: of the places of these tokens in the batches.
        checksum: of all ids in their order: another one means other rows.
        blank: those of the dropped ones of which a text is blank.
        cut: those of the kept ones of which a text has lost an end.
        unlabelled: rows of all splits without a label, which are left out.
    """

    kept: int
    dropped: int
    batches: int
    tokens: int
    padding_share: float
    checksum: int
    blank: int = 0
    cut: int = 0
    unlabelled: int = 0

    @property
    def too_long(self) -> int:
        """Those of the dropped ones that have over `max_length` tokens."""
        return self.dropped - self.blank

    def __str__(self) -> str:
        cut = f" ({self.cut:,} of them cut)" if self.cut else ""
        without = (
            f", {self.unlabelled:,} without a label" if self.unlabelled else ""
        )
        return (
            f"{self.kept:,} rows kept{cut}, {self.too_long:,} too long, "
            f"{self.blank:,} blank{without}; {self.tokens:,} tokens in "
            f"{self.batches:,} batches, {100 * self.padding_share:.1f} % "
            "padding"
        )


def count_blank(blocks: tf.data.Dataset) -> int:
    """Reads the blocks once and counts the rows of which a text is blank.

    Args:
        blocks: encoded, not yet filtered.
    """
    return count(blocks, columns.blank_rows)


def count(blocks: tf.data.Dataset, test: Callable) -> int:
    """Reads the blocks once and counts the rows for which a test holds.

    Args:
        blocks: encoded, not yet filtered.
        test: a function of a block; it gives a bool for each row.
    """
    with counted_pairs.clear_errors():
        return sum(int(test(block).numpy().sum()) for block in blocks)


def report(
    blocks: tf.data.Dataset,
    num_rows: int,
    max_tokens: int,
    multiple_of: int = 1,
    num_blank: int = 0,
    num_cut: int = 0,
) -> Report:
    """Reads the blocks once and reports what `batch_by_tokens` makes of them.

    Args:
        blocks: encoded and filtered, as `batch_by_tokens` gets them.
        num_rows: rows before the filter.
        max_tokens, multiple_of: see `plan_batches`.
        num_blank, num_cut: rows that were counted before the filter: of which
            a text is blank, and of which a text is cut.

    Returns:
        `Report`. Where blocks are shuffled into several pools, the number
        of batches and the padding differ a little from epoch to epoch.

    Raises:
        ValueError: If a file has changed since its lines were counted.
    """
    num_kept = batches = places = real = checksum = 0
    with counted_pairs.clear_errors():
        for block in blocks:
            checksum = _checksum(block, checksum)
            read, written = (n.numpy() for n in columns.row_lengths(block))
            if not len(read):
                continue
            order, ends = plans.plan_batches(
                read, written, max_tokens, multiple_of
            )
            starts = np.array([0, *ends], "int64")[:-1]
            num_kept += len(read)
            batches += len(ends)
            for lengths in _counted_lengths(block):
                longest = np.maximum.reduceat(lengths[order], starts)
                places += int(np.sum(longest * (ends - starts)))
                real += int(np.sum(lengths))
    return Report(
        kept=num_kept,
        dropped=num_rows - num_kept,
        batches=batches,
        tokens=real,
        padding_share=(places - real) / max(places, 1),
        checksum=checksum,
        blank=num_blank,
        cut=num_cut,
    )


def _counted_lengths(block) -> list[np.ndarray]:
    """Tokens of each row: of what is written, or else of what is read."""
    if "target_ids" in block:
        # Labels are one shorter: START is none.
        return [block["target_ids"].row_lengths().numpy() - 1]
    return [
        ids.row_lengths().numpy()
        for name, ids in block.items()
        if name != "label" and ids.dtype.is_integer  # Numbers are no tokens.
    ]


def _checksum(block, checksum: int) -> int:
    """The checksum of all values and of where rows end, after those before.

    A run compares it with the one that it began with, so it never changes.
    """
    rows = list(block.values())
    if list(block) == ["target_ids"]:
        # A text alone has always been counted as read and as written.
        rows.insert(0, rows[0][:, 1:])
    for ids in rows:
        checksum = zlib.crc32(ids.flat_values.numpy(), checksum)
        if ids is not block.get("label"):
            checksum = zlib.crc32(ids.row_splits.numpy(), checksum)
    return checksum
