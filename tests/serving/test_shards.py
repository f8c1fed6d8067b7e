"""Lines go to shards and come back in order, whoever works on them."""

import gzip
import os
import signal
import subprocess
import sys
import threading

import pytest

from keras_attention import files
from keras_attention.serving import shards

LINES = [f"line {number}" for number in range(23)]


@pytest.fixture
def inputs(tmp_path):
    """Two files, the second one compressed, with a blank line between."""
    first, second = tmp_path / "first", tmp_path / "second.gz"
    first.write_text("\n".join(LINES[:11]) + "\n\n")
    second.write_bytes(gzip.compress("\n".join(LINES[11:]).encode()))
    return [first, second]


EXPECTED = [*LINES[:11], "", *LINES[11:]]


def upper(lines):
    return [line.upper() for line in lines], {}


def written(folder):
    """The lines of all shards, as `cat FOLDER/*.txt` shows them."""
    texts = [path.read_text() for path in sorted(folder.glob("*.txt"))]
    return "".join(texts).splitlines()


@pytest.mark.parametrize("count", [1, 5, 24, 31])
def test_order_and_number_of_lines_are_kept(tmp_path, inputs, count):
    split = shards.split(inputs, tmp_path / "out", count)
    assert (split.num_lines, split.count) == (24, count)
    shards.work(split, upper)
    assert written(tmp_path / "out") == [line.upper() for line in EXPECTED]
    assert len([*(tmp_path / "out").glob("*.txt")]) == count
    assert (split.missing(), split.num_done()) == ([], 24)


def test_names_keep_the_order_of_many_shards(tmp_path):
    many = shards.Shards(tmp_path, 0, 100_001)
    names = [many.answers(index).name for index in (9, 10, 99_999, 100_000)]
    assert names == sorted(names)
    assert names[0] == "000009-of-100001.txt"


def test_a_second_call_waits_for_the_first_to_split(tmp_path, inputs):
    """Then they share the shards."""
    found = []
    thread = threading.Thread(
        target=lambda: found.append(shards.split(inputs, tmp_path / "out"))
    )
    with files.lock(tmp_path / "out"):
        thread.start()
        thread.join(0.3)
        assert thread.is_alive() and not found
    first = shards.split(inputs, tmp_path / "out")
    thread.join(30)
    assert found == [first]
    assert not (tmp_path / "out" / ".lock").exists()


def test_a_file_without_lines_is_one_empty_shard(tmp_path):
    (tmp_path / "empty").write_text("")
    split = shards.split([tmp_path / "empty"], tmp_path / "out")
    shards.work(split, upper)
    assert (tmp_path / "out" / "00000-of-00001.txt").read_text() == ""


def test_another_call_answers_only_what_is_missing(tmp_path, inputs):
    shards.work(shards.split(inputs, tmp_path / "out", 4), upper)
    (tmp_path / "out" / "00002-of-00004.txt").unlink()
    split = shards.split(inputs, tmp_path / "out")
    assert (split.missing(), split.num_done()) == ([2], 18)
    asked = []
    shards.work(split, lambda lines: (asked.append(lines) or lines, {}))
    assert asked == [EXPECTED[12:18]]
    assert written(tmp_path / "out")[12:18] == EXPECTED[12:18]


@pytest.mark.parametrize(
    "count, choices, named",
    [(3, {"beams": 4}, "shards=4"), (None, {"beams": 1}, "beams=4")],
)
def test_other_choices_are_refused(tmp_path, inputs, count, choices, named):
    shards.split(inputs, tmp_path / "out", 4, {"beams": 4})
    with pytest.raises(ValueError, match=f"Expected {named}, as the shards"):
        shards.split(inputs, tmp_path / "out", count, choices)


def test_other_lines_are_refused(tmp_path, inputs):
    shards.split(inputs, tmp_path / "out")
    inputs[0].write_text("\n".join(["other", *LINES[1:11]]) + "\n\n")
    with pytest.raises(ValueError, match="Expected checksum="):
        shards.split(inputs, tmp_path / "out")


def test_lines_that_are_too_long_are_numbered_through(tmp_path, inputs):
    def second_is_long(lines):
        return lines, {2: (9, 5)}

    split = shards.split(inputs, tmp_path / "out", 3)
    shards.work(split, second_is_long)
    assert split.lines_too_long() == [[2, 9, 5], [10, 9, 5], [18, 9, 5]]


def test_a_shard_that_another_works_on_is_left_to_it(tmp_path, inputs):
    """It waits for it, and takes it where the other one gives up."""
    split = shards.split(inputs, tmp_path / "out", 3)
    with split.lock(1):
        thread = threading.Thread(target=shards.work, args=(split, upper))
        thread.start()
        thread.join(0.8)
        assert thread.is_alive()
        assert split.missing() == [1]
    thread.join(30)
    assert not thread.is_alive()
    assert written(tmp_path / "out") == [line.upper() for line in EXPECTED]


KILLED = """
import os, pathlib, signal, sys
from keras_attention.serving import shards

def answer(lines):
    if "line 9" in lines:
        os.kill(os.getpid(), signal.SIGKILL)
    return [line.upper() for line in lines], {}

shards.work(shards.Shards(pathlib.Path(sys.argv[1]), 24, 6), answer)
"""


def test_a_killed_worker_costs_its_shard_alone(tmp_path, inputs, monkeypatch):
    split = shards.split(inputs, tmp_path / "out", 6)
    process = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path / "out"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.returncode == -signal.SIGKILL
    assert split.missing() == [2, 3, 4, 5]
    (tmp_path / "out" / ".00002-of-00006.txt.writing-x").write_text("half")
    shards.work(split, upper)
    assert written(tmp_path / "out") == [line.upper() for line in EXPECTED]
    assert not [*(tmp_path / "out").glob(".*writing*")]
