"""What is kept of a corpus, dropped of it, and how its batches are filled."""

import dataclasses
import zlib

import numpy as np
import tensorflow as tf

from keras_attention.data import plans
from keras_attention.data.readers import counted_pairs


@dataclasses.dataclass(frozen=True)
class Report:
    """What the pipeline keeps of a corpus.

    Args:
        pairs_kept: pairs that are trained on.
        pairs_dropped: all others: too long, or blank.
        batches: of an epoch.
        tokens: real labels (END counts, START does not).
        padding_share: of the label positions.
        checksum: of all ids in their order: another one means other pairs.
        pairs_blank: those of the dropped ones of which a side is blank.
    """

    pairs_kept: int
    pairs_dropped: int
    batches: int
    tokens: int
    padding_share: float
    checksum: int
    pairs_blank: int = 0

    @property
    def pairs_too_long(self) -> int:
        """Those of the dropped ones that have over `max_length` tokens."""
        return self.pairs_dropped - self.pairs_blank

    def __str__(self) -> str:
        return (
            f"{self.pairs_kept:,} pairs kept, {self.pairs_too_long:,} too "
            f"long, {self.pairs_blank:,} blank; {self.tokens:,} target "
            f"tokens in {self.batches:,} batches, "
            f"{100 * self.padding_share:.1f} % padding"
        )


def count_blank(blocks: tf.data.Dataset) -> int:
    """Reads the blocks once and counts the pairs that are blank on a side.

    Args:
        blocks: tokenised, not yet filtered.
    """
    count = 0
    with counted_pairs.clear_errors():
        for lengths in blocks.map(plans.row_lengths).as_numpy_iterator():
            source, target = lengths
            # END alone, or START and END.
            count += int(np.sum((source <= 1) | (target <= 2)))
    return count


def report(
    blocks: tf.data.Dataset,
    num_pairs: int,
    max_tokens: int,
    multiple_of: int = 1,
    num_blank: int = 0,
) -> Report:
    """Reads the blocks once and reports what `batch_by_tokens` makes of them.

    Args:
        blocks: tokenised and filtered, as `batch_by_tokens` gets them.
        num_pairs: pairs before the filter.
        max_tokens, multiple_of: see `plan_batches`.
        num_blank: what `count_blank` counted before the filter.

    Returns:
        `Report`. Where blocks are shuffled into several pools, the number
        of batches and the padding differ a little from epoch to epoch.

    Raises:
        ValueError: If a file has changed since its lines were counted.
    """
    num_kept = batches = places = real = checksum = 0
    with counted_pairs.clear_errors():
        for block in blocks:
            # All ids, and where rows end.
            for ids in (block["source_ids"], block["target_ids"]):
                checksum = zlib.crc32(ids.flat_values.numpy(), checksum)
                checksum = zlib.crc32(ids.row_splits.numpy(), checksum)
            source, target = (n.numpy() for n in plans.row_lengths(block))
            if not len(target):
                continue
            order, ends = plans.plan_batches(
                source, target, max_tokens, multiple_of
            )
            starts = np.array([0, *ends], "int64")[:-1]
            # Labels are one shorter than targets: START is none.
            longest = np.maximum.reduceat(target[order] - 1, starts)
            num_kept += len(target)
            batches += len(ends)
            places += int(np.sum(longest * (ends - starts)))
            real += int(np.sum(target - 1))
    return Report(
        pairs_kept=num_kept,
        pairs_dropped=num_pairs - num_kept,
        batches=batches,
        tokens=real,
        padding_share=1 - real / max(places, 1),
        checksum=checksum,
        pairs_blank=num_blank,
    )
