"""Files of pairs, and datasets as lists of pairs."""

import gzip

import pytest

from keras_attention.data import corpora


@pytest.fixture
def write(tmp_path):
    """A function that writes {name: bytes} to a folder."""

    def write_files(files):
        for name, content in files.items():
            opened = gzip.open if name.endswith(".gz") else open
            with opened(tmp_path / name, "wb") as file:
                file.write(content)
        return tmp_path

    return write_files


@pytest.fixture
def read():
    """A function of a `tf.data` dataset: its pairs of strings."""

    def pairs(dataset):
        return [
            (pair["source"].decode(), pair["target"].decode())
            for pair in dataset.as_numpy_iterator()
        ]

    return pairs


@pytest.fixture
def load():
    """A function of a folder: its English to German corpus."""
    return lambda folder: corpora.load(str(folder), "en", "de")
