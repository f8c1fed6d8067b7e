"""SCAN, as it is published: two files for a split."""

import gzip

import pytest

from keras_attention.data import corpora
from keras_attention.data.readers import scan

VERBS = ("walk", "look", "run", "jump")
TIMES = {"": 1, " twice": 2, " thrice": 3}
PAIRS = [
    (f"{verb}{times}", " ".join([f"I_{verb.upper()}"] * count))
    for verb in VERBS
    for times, count in TIMES.items()
]
TEST = [("run and jump", "I_RUN I_JUMP"), ("jump", "I_JUMP")]


def write(path, pairs):
    text = "".join(f"IN: {s} OUT: {t}\n" for s, t in pairs)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)


@pytest.fixture
def folder(tmp_path):
    """One split, of which half is compressed."""
    write(tmp_path / "tasks_train_length.txt", PAIRS)
    write(tmp_path / "tasks_test_length.txt.gz", TEST)
    (tmp_path / "README.md").write_text("Not a split.")
    return tmp_path


def test_reads_its_lines(folder):
    assert scan.read(folder / "tasks_train_length.txt") == PAIRS
    assert scan.read(folder / "tasks_test_length.txt.gz") == TEST


def test_a_tenth_of_training_is_validation(folder):
    splits = scan.load(folder)
    assert splits["test"] == TEST
    assert len(splits["validation"]) == 1 and len(splits["train"]) == 11
    assert sorted(splits["train"] + splits["validation"]) == sorted(PAIRS)
    # In the order of the file.
    assert splits["train"] == [p for p in PAIRS if p in splits["train"]]
    assert scan.load(folder) == splits


def test_validation_does_not_depend_on_the_order(folder):
    held_out = scan.load(folder)["validation"]
    write(folder / "tasks_train_length.txt", PAIRS[::-1])
    assert scan.load(folder)["validation"] == held_out


def test_what_training_repeats_stays_in_it(folder):
    (held_out,) = scan.load(folder)["validation"]
    write(folder / "tasks_train_length.txt", [*PAIRS, held_out])
    splits = scan.load(folder)
    assert splits["train"].count(held_out) == 2
    assert splits["validation"] != [held_out]


def test_a_training_file_names_its_split(folder):
    write(folder / "tasks_train_addprim_jump.txt", PAIRS[:10])
    write(folder / "tasks_test_addprim_jump.txt", TEST[:1])
    splits = scan.load(folder / "tasks_train_addprim_jump.txt")
    assert splits["test"] == TEST[:1]
    assert len(splits["train"]) + len(splits["validation"]) == 10
    with pytest.raises(ValueError, match="several splits .* in place of"):
        scan.load(folder)


def test_it_is_a_corpus(folder):
    for name in (folder, folder / "tasks_train_length.txt"):
        corpus = corpora.load(name, "commands", "actions")
        assert corpus.sizes == {"train": 11, "validation": 1, "test": 2}
        for pair, expected in zip(
            corpus.splits["test"].as_numpy_iterator(), TEST, strict=True
        ):
            given = pair["source"].decode(), pair["target"].decode()
            assert given == expected


def test_a_missing_half(folder):
    (folder / "tasks_test_length.txt.gz").unlink()
    with pytest.raises(ValueError, match="lacks tasks_test_length.txt"):
        corpora.load(folder)


def test_two_files_for_one_half(folder):
    write(folder / "tasks_train_length.txt.gz", PAIRS)
    with pytest.raises(ValueError, match="train of length has two files"):
        scan.load(folder)


def test_a_damaged_line(folder):
    path = folder / "tasks_train_length.txt"
    path.write_text("IN: jump OUT: I_JUMP\njump\n")
    with pytest.raises(ValueError, match="line 2 is not .*: 'jump'"):
        scan.load(folder)


def test_too_few_commands(folder):
    write(folder / "tasks_train_length.txt", PAIRS[:9])
    with pytest.raises(ValueError, match="has only 9 commands that"):
        scan.load(folder)
