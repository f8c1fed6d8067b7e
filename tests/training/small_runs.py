"""Small corpora and batches, and runs that are killed where they write."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import files
from keras_attention.tokens import END, START

VOCABULARY = 31

NAMES = "null ein zwei drei vier fünf sechs sieben acht neun".split()
# Those of a Transformer.
SIZES = {
    "num_layers": 1,
    "hidden_dim": 16,
    "intermediate_dim": 32,
    "num_heads": 2,
}


def write_digits(folder, **sizes):
    """Writes aligned lines of digits and their names.

    Args:
        folder: where they are.
        sizes: the number of lines in each split.
    """
    generator = np.random.default_rng(0)
    for split, size in sizes.items():
        rows = [
            generator.integers(0, 10, generator.integers(1, 6))
            for _ in range(size)
        ]
        for language, names in (("en", range(10)), ("de", NAMES)):
            lines = [" ".join(str(names[d]) for d in row) for row in rows]
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{split}.{language}").write_text(text, "utf-8")


def reversing(sources):
    """One block: each source, which ends in END, and what it is reversed."""
    ids = {
        "source_ids": sources,
        "target_ids": [[START, *row[-2::-1], END] for row in sources],
    }
    return tf.data.Dataset.from_tensors(
        {
            name: tf.ragged.constant(rows, dtype=tf.int32)
            for name, rows in ids.items()
        }
    )


def uneven(num_rows):
    """Rows of 1 to 11 tokens and END."""
    generator = np.random.default_rng(0)
    return [
        [*generator.integers(4, VOCABULARY, length), END]
        for length in generator.integers(1, 12, num_rows)
    ]


class Stop(Exception):
    """Stands for a kill."""


@contextlib.contextmanager
def killed(name, call=1, counts=lambda path: True):
    """Lets a run die when it would write a file for the n-th time.

    Args:
        name: the file's, perhaps with its folder's.
        call: 1 for the first time.
        counts: a function of the path: whether a time counts.
    """
    write, calls = files.write_atomically, []

    def dies(path, data):
        if path.match(name) and counts(path):
            calls.append(path)
            if len(calls) == call:
                raise Stop
        write(path, data)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stop):
        patch.setattr(files, "write_atomically", dies)
        yield
