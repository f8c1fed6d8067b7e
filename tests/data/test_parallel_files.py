"""Folders of line-aligned files: what is read, and what is refused."""

import gzip

import pytest

from keras_attention.data import parallel_files

VALIDATION = {"val.en": b"yes\nno\n", "val.de": b"ja\nnein\n"}


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("validation", ["val", "validation"])
def test_lines_become_pairs(write, read, load, suffix, validation):
    lines = {"en": "one\ntwo café\nthree\n", "de": "eins\nzwei größer\ndrei\n"}
    folder = write(
        {
            f"{split}.{language}{suffix}": content.encode()
            for language, content in lines.items()
            for split in ("train", validation, "test", "test_2016_flickr")
        }
    )
    corpus = load(folder)
    assert set(corpus.splits) == {
        "train",
        "validation",
        "test",
        "test_2016_flickr",
    }
    assert (corpus.source_language, corpus.target_language) == ("en", "de")
    for split, dataset in corpus.splits.items():
        assert corpus.sizes[split] == 3
        assert read(dataset) == [
            ("one", "eins"),
            ("two café", "zwei größer"),
            ("three", "drei"),
        ]


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


ODD = {
    "windows": b"a\r\nb c\r\n",
    "no newline at the end": b"a\nb",
    "blank lines": b"a\n\n  \nb\n",
    "line separators": "a\u2028b\nc\u2029d\x85e\n".encode(),
    "vertical tabs": b"a\x0bb\nc\x0cd\x1ce\x1dg\x1eh\n",
    "a lone carriage return": b"a\rb\nc\n",
    "carriage returns alone": b"a\rb\rc",
    "two carriage returns": b"a\r\r\nb\n",
    "a carriage return at the end": b"a\nb\r",
    "NUL": b"a\x00b\nc\n",
    "a byte order mark": "\ufeffa\nb\n".encode(),
    "one newline": b"\n",
    "a newline at the start": b"\na\n",
}


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("content", ODD.values(), ids=ODD)
def test_checker_and_dataset_read_the_same_lines(write, read, content, suffix):
    name = f"train.en{suffix}"
    path = write({name: content}) / name
    # Lines end in newlines alone, the last one perhaps without.
    text = content.decode().replace("\r", "")
    expected = text.removesuffix("\n").split("\n")
    assert list(parallel_files.read_lines(path)) == expected
    assert parallel_files.check_aligned(path, path) == len(expected)
    pairs = read(parallel_files.pairs(path, path))
    assert pairs == [(line, line) for line in expected]


def test_unlike_numbers_of_lines_name_the_first_without_a_partner(write, load):
    folder = write(
        {"train.en": b"a\nb\nc\nd\n", "train.de": b"a\nb\n", **VALIDATION}
    )
    with pytest.raises(ValueError) as caught:
        load(folder)
    message = str(caught.value)
    assert f"{folder / 'train.en'} with 4 lines" in message
    assert f"{folder / 'train.de'} with 2 lines" in message
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
    with pytest.raises(ValueError, match=rf"train.en{suffix}, line 3: .*utf-8"):
        load(folder)


WHOLE = gzip.compress(bytes(range(128)) * 40, mtime=0)
DAMAGED = {
    "truncated": WHOLE[:-10],
    "garbled": WHOLE[:20] + bytes([WHOLE[20] ^ 255]) + WHOLE[21:],
    "of another checksum": WHOLE[:-8] + bytes(4) + WHOLE[-4:],
    "not compressed": b"one line\n",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_damaged_compression_is_refused(write, load, content):
    folder = write({"train.de": b"a\n", **VALIDATION})
    (folder / "train.en.gz").write_bytes(content)
    with pytest.raises(ValueError, match="whole gzip file.*train.en.gz, after"):
        load(folder)


def test_a_missing_partner_is_named(write, load):
    folder = write({"train.en": b"a\n", "train.de": b"b\n", "val.de": b"c\n"})
    with pytest.raises(ValueError, match=r"validation.en \(or .gz\)") as caught:
        load(folder)
    assert f"{folder / 'val.de'} alone" in str(caught.value)


@pytest.mark.parametrize("missing", ["train", "validation"])
def test_a_missing_split_is_named(write, load, missing):
    present = {"train": "val", "validation": "train"}[missing]
    folder = write({f"{present}.en": b"a\n", f"{present}.de": b"b\n"})
    with pytest.raises(ValueError, match=f"Expected {missing}.en and"):
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
    with pytest.raises(ValueError, match="one file for validation in en"):
        load(folder)


def test_a_folder_that_is_not_there_is_refused(tmp_path, load):
    with pytest.raises(ValueError, match="Received: '.*nowhere'"):
        load(tmp_path / "nowhere")
