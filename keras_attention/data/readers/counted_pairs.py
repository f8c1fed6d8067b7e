"""Pairs that a reader gives, as a dataset of as many as were counted."""

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator

import tensorflow as tf

BLOCK_SIZE = 1000
Pairs = Iterator[tuple[bytes, bytes] | tuple[str, str]]


def changed(num_pairs: int, origin: str) -> ValueError:
    """The error of a corpus that is no longer as it was counted."""
    return ValueError(
        f"{origin} changed after {num_pairs:,} pairs were counted. Start "
        "again, and leave the corpus alone meanwhile."
    )


def dataset(
    read: Callable[[], Pairs], num_pairs: int, origin: str
) -> tf.data.Dataset:
    """Pairs from a reader in Python; memory does not grow with them.

    The reader is called anew for each pass. What it gives is compared with
    `num_pairs`: `clear_errors` turns the error of a difference, as any error
    of the reader, into a `ValueError`.

    Args:
        read: a function without arguments that iterates over the pairs.
        num_pairs: how many it gave when they were counted.
        origin: what it reads, for the error.

    Returns:
        {"source", "target"} string scalars, of known cardinality.
    """

    def next_block(pairs):
        try:
            return list(itertools.islice(pairs, BLOCK_SIZE))
        except OSError as error:
            raise changed(num_pairs, origin) from error

    def blocks():
        pairs, count = read(), 0
        # Whole blocks cross from Python to TensorFlow, not single lines.
        while block := next_block(pairs):
            count += len(block)
            if count > num_pairs:
                break
            sources, targets = zip(*block, strict=True)
            yield {"source": sources, "target": targets}
        if count != num_pairs:
            raise changed(num_pairs, origin)

    texts = tf.TensorSpec([None], tf.string)
    return (
        tf.data.Dataset.from_generator(
            blocks, output_signature={"source": texts, "target": texts}
        )
        .unbatch()
        .apply(tf.data.experimental.assert_cardinality(num_pairs))
    )


@contextlib.contextmanager
def clear_errors():
    """Around what reads a dataset: a reader's error is a `ValueError`.

    TensorFlow would raise one of its own, with a traceback as its message.
    """
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        message = re.search(r"ValueError: (.+)", str(error))
        if message is None:
            raise
        raise ValueError(message[1]) from error
