"""Folders of line-aligned files: what is read, and what is refused."""

import bz2
import gzip
import lzma

import pytest
import tensorflow as tf
from backports import zstd

from keras_attention.data.readers import counted_pairs

COMPRESS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd.compress,
}
VALIDATION = {"val.en": b"yes\nno\n", "val.de": b"ja\nnein\n"}


def test_plain_and_compressed_files_may_be_partners(write, read, load):
    folder = write(
        {"train.en.gz": b"a\nb\n", "train.de": b"c\nd", **VALIDATION}
    )
    assert read(load(folder).splits["train"]) == [("a", "c"), ("b", "d")]


def test_other_files_and_languages_are_left_alone(write, load):
    folder = write(
        {
            **{"train.en": b"a\n", "train.de": b"b\n", "train.fr": b"c\nd\n"},
            **{"README.en": b"\xff", "notes.txt": b"", **VALIDATION},
        }
    )
    assert load(folder).sizes == {"train": 1, "validation": 2}


@pytest.mark.parametrize(
    "name, suffix",
    [
        ("validation", ""),
        ("val", ".gz"),
        ("valid", ".bz2"),
        ("dev", ".xz"),
        ("validation", ".zst"),
    ],
)
def test_names_of_splits_and_compressions(tmp_path, read, load, name, suffix):
    for path, content in {
        "train.en": "two café\nb\n",
        "train.de": "zwei größer\nB\n",
        f"{name}.en": "c\n",
        f"{name}.de": "C\n",
        "test_2016.en": "d\n",
        "test_2016.de": "D\n",
    }.items():
        whole = COMPRESS[suffix](content.encode())
        (tmp_path / f"{path}{suffix}").write_bytes(whole)
    corpus = load(tmp_path)
    assert corpus.languages == ("en", "de")
    assert corpus.sizes == {"train": 2, "validation": 1, "test_2016": 1}
    assert {split: read(pairs) for split, pairs in corpus.splits.items()} == {
        "train": [("two café", "zwei größer"), ("b", "B")],
        "validation": [("c", "C")],
        "test_2016": [("d", "D")],
    }


# A corpus that changes between its count and its reading.

CHANGES = {
    "shorter": b"a\nb\n",
    "much shorter": b"",
    "longer": b"a\nb\nc\nd\n",
    "much longer": b"a\n" * 5000,
    "gone": None,
}


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_that_changed_is_an_error(write, load, language, change):
    folder = write(
        {"train.en": b"a\nb\nc\n", "train.de": b"A\nB\nC\n", **VALIDATION}
    )
    train = load(folder).splits["train"]
    path = folder / f"train.{language}"
    path.unlink()
    if change is not None:
        path.write_bytes(change)
    with pytest.raises(ValueError, match="train.en.*changed after 3 pairs"):
        with counted_pairs.clear_errors():
            list(train.batch(2))


def test_another_error_is_not_made_clear():
    failing = tf.data.Dataset.range(1).map(
        lambda number: tf.ensure_shape(tf.range(number), [2])
    )
    with pytest.raises(tf.errors.InvalidArgumentError):
        with counted_pairs.clear_errors():
            list(failing)


@pytest.mark.parametrize("count", [1, 999, 1000, 1001, 3000])
def test_blocks_of_lines_become_single_pairs(write, read, load, count):
    lines = [f"{number}\n".encode() for number in range(count)]
    folder = write(
        {
            "train.en": b"".join(lines),
            "train.de": b"".join(b"d" + line for line in lines),
            **VALIDATION,
        }
    )
    corpus = load(folder)
    train = corpus.splits["train"]
    assert corpus.sizes["train"] == train.cardinality() == count
    # Read twice, and not to the end.
    for _ in range(2):
        assert read(train) == [(str(n), f"d{n}") for n in range(count)]
    assert len(read(train.take(1))) == 1


def test_unlike_numbers_of_lines_name_the_first_without_a_partner(write, load):
    folder = write(
        {"train.en": b"a\nb\nc\nd\n", "train.de": b"a\nb\n", **VALIDATION}
    )
    with pytest.raises(ValueError) as caught:
        load(folder)
    message = str(caught.value)
    assert f"{folder / 'train.en'} has 4 lines" in message
    assert f"{folder / 'train.de'} has 2:" in message
    assert f"{folder / 'train.en'}, line 3 has no partner" in message


def test_an_empty_file_is_refused(write, load):
    folder = write({"train.en": b"a\n", "train.de": b"", **VALIDATION})
    with pytest.raises(ValueError, match="train.de, line 1: .* is empty"):
        load(folder)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_bad_utf8_names_file_and_line(write, load, suffix):
    folder = write(
        {
            f"train.en{suffix}": b"a\nb\nc \xff d\ne\n",
            "train.de": b"a\nb\nc\nd\n",
            **VALIDATION,
        }
    )
    with pytest.raises(
        ValueError, match=rf"train.en{suffix}, line 3 is not UTF-8"
    ):
        load(folder)


def test_a_missing_partner_is_named(write, load):
    folder = write({"train.en": b"a\n", "train.de": b"b\n", "val.de": b"c\n"})
    with pytest.raises(ValueError, match="validation.en, plain or") as caught:
        load(folder)
    assert f"{folder / 'val.de'} has no partner" in str(caught.value)


@pytest.mark.parametrize("missing", ["train", "validation"])
def test_a_missing_split_is_named(write, load, missing):
    present = {"train": "val", "validation": "train"}[missing]
    folder = write({f"{present}.en": b"a\n", f"{present}.de": b"b\n"})
    with pytest.raises(ValueError, match=f"has no {missing}.en and"):
        load(folder)


def test_two_files_for_one_side_are_refused(write, load):
    folder = write(
        {
            "train.en": b"a\n",
            "train.de": b"b\n",
            "validation.en": b"c\n",
            **VALIDATION,
        }
    )
    with pytest.raises(ValueError, match="validation.en has two files"):
        load(folder)


def test_a_folder_that_is_not_there_is_refused(tmp_path, load):
    with pytest.raises(ValueError, match="There is no corpus '.*nowhere'"):
        load(tmp_path / "nowhere")
