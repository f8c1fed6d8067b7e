"""Folders of texts, as people publish them."""

import gzip

import pytest

from keras_attention.data.readers import texts


def write(folder, files):
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")


@pytest.mark.parametrize(
    "names",
    [
        ("train.txt", "validation.txt", "test.txt"),
        ("ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"),
        ("wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"),
        ("train.txt", "dev.txt", "test_2016.txt"),
    ],
)
def test_published_names(names, tmp_path):
    train, validation, test = names
    write(tmp_path, {train: " a b \n c\n", validation: "d\n", test: "é"})
    write(tmp_path, {"README.md": "x", "vocabulary.txt": "y"})
    splits = texts.load(tmp_path)
    last = "test_2016" if "2016" in test else "test"
    assert splits == {"train": ["a b", "c"], "validation": ["d"], last: ["é"]}


def test_compressed_files_and_blank_lines(tmp_path):
    with gzip.open(tmp_path / "train.txt.gz", "wt", encoding="utf-8") as file:
        file.write("\na b\n \nc\r\n")
    write(tmp_path, {"valid.txt": "d"})
    assert texts.load(str(tmp_path))["train"] == ["a b", "c"]


@pytest.mark.parametrize(
    "files, message",
    [
        ({"train.txt": "a"}, "has no validation.txt, .* It has train.$"),
        ({}, "has no train.txt, .* It has no split at all.$"),
        (
            {"train.txt": "a", "valid.txt": "b", "dev.txt": "c"},
            "validation has two files, .*dev.txt and .*valid.txt",
        ),
        (
            {"train.txt": "a", "dev.txt": " \n\n"},
            "dev.txt has no text",
        ),
    ],
)
def test_folders_that_are_refused(files, message, tmp_path):
    write(tmp_path, files)
    with pytest.raises(ValueError, match=message):
        texts.load(tmp_path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="There is no folder .*nowhere"):
        texts.load(tmp_path / "nowhere")


def test_a_line_that_is_no_utf8_is_named(tmp_path):
    write(tmp_path, {"dev.txt": "a"})
    (tmp_path / "train.txt").write_bytes(b"a\n\xff\n")
    with pytest.raises(ValueError, match="train.txt, line 2"):
        texts.load(tmp_path)
