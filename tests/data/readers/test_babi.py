"""Stories as bAbI publishes them."""

import os
import pathlib
import tarfile

import pytest

from keras_attention.data.readers import babi

STORY = """1 Mary moved to the bathroom.
2 John went to the hallway.
3 Where is Mary? \tbathroom\t1
4 Mary went to the office.
5 Where is Mary? \toffice\t4
1 John took the milk.
2 Is John in the hall?\tno\t1
"""
NAME = "qa1_single-supporting-fact_{}.txt"


def test_a_question_has_the_sentences_before_it(tmp_path):
    (tmp_path / NAME.format("train")).write_text(STORY * 10)
    (tmp_path / NAME.format("test")).write_text(STORY)
    splits = babi.load(tmp_path)
    first = "Mary moved to the bathroom\nJohn went to the hallway"
    assert splits["test"] == [
        ("bathroom", first, "Where is Mary", [2]),
        ("office", f"{first}\nMary went to the office", "Where is Mary", [1]),
        ("no", "John took the milk", "Is John in the hall", [1]),
    ]
    # Whole stories are for validation: each tenth of twenty.
    assert splits["validation"] == 2 * splits["test"][:2]
    assert len(splits["train"]) == 30 - 4


@pytest.mark.parametrize(
    "tasks",
    [
        ("qa1_single-supporting-fact", "qa2_two-supporting-facts"),
        ("qa1", "qa2"),  # As in the folder `en-valid`.
    ],
)
def test_one_file_means_its_task(tmp_path, tasks):
    for task in tasks:
        for split in ("train", "valid", "test"):
            (tmp_path / f"{task}_{split}.txt").write_text(STORY)
    assert len(babi.load(tmp_path)["train"]) == 6
    splits = babi.load(tmp_path / f"{tasks[1]}_train.txt")
    assert {split: len(rows) for split, rows in splits.items()} == {
        "train": 3,
        "validation": 3,
        "test": 3,
    }


@pytest.mark.parametrize(
    "text, message",
    [
        ("Mary moved.\n", "line 1 does not begin with the number"),
        ("2 Mary moved.\n", "line 1 does not begin with the number"),
        ("1 Mary moved.\n\n", "line 2 does not begin with the number"),
    ],
)
def test_another_file_is_refused(tmp_path, text, message):
    (tmp_path / NAME.format("train")).write_text(text)
    with pytest.raises(ValueError, match=message):
        babi.load(tmp_path)


def test_supporting_sentences_are_counted_from_the_end(tmp_path):
    """In the order of the file; a question between them is none of them."""
    (tmp_path / NAME.format("train")).write_text(
        "1 Mary took the milk.\n2 Mary went to the hall.\n"
        "3 Where is Mary? \thall\t2\n4 John left.\n"
        "5 Where is the milk?\thall\t1 2\n6 Who left?\tJohn\n"
    )
    rows = babi.load(tmp_path / NAME.format("train"))["validation"]
    assert [facts for *_, facts in rows] == [[1], [3, 2], []]


@pytest.mark.parametrize("name", ["", "none", "notes.txt"])
def test_a_place_without_stories(tmp_path, name):
    (tmp_path / "notes.txt").write_text("nothing")
    assert babi.load(tmp_path / name) is None


def test_stories_without_training_are_refused(tmp_path):
    (tmp_path / NAME.format("test")).write_text(STORY)
    with pytest.raises(ValueError, match="and none for training"):
        babi.load(tmp_path)


def test_the_published_stories(tmp_path):
    folder = os.environ.get("KERAS_ATTENTION_BABI")
    if not folder:
        pytest.skip("KERAS_ATTENTION_BABI names no folder with en.tar.gz")
    with tarfile.open(pathlib.Path(folder) / "en.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    splits = babi.load(tmp_path / "en")
    assert len(splits["test"]) == 20 * 1000
    assert len(splits["train"]) + len(splits["validation"]) == 20 * 1000
    for task in ("qa1_single-supporting-fact", "qa3_three-supporting-facts"):
        rows = babi.load(tmp_path / "en" / f"{task}_train.txt")
        assert {len(facts) for *_, facts in rows["test"]} == {int(task[2])}
        assert {answer for answer, *_ in rows["test"]} == {
            *("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")
        }
