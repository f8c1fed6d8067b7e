"""`benchmarks/word_alignment.py` prints a row for each way to align."""

import pathlib
import runpy
import sys

import numpy as np
import pytest

from keras_attention import runs

PROGRAM = pathlib.Path(__file__).parents[2] / "benchmarks/word_alignment.py"
NAMES = "null eins zwei drei vier fünf sechs sieben acht neun".split()


def write(folder, name, rows):
    """Digits and their names, in the order of the digits."""
    for side, words in (("en", list("0123456789")), ("de", NAMES)):
        texts = [" ".join(words[digit] for digit in row) for row in rows]
        path = folder / f"{name}.{side}"
        path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
        yield texts


@pytest.mark.slow
def test_the_rows(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    rows = [rng.permutation(10)[: rng.integers(2, 7)] for _ in range(400)]
    list(write(tmp_path, "train", rows[:300]))
    list(write(tmp_path, "validation", rows[300:320]))
    pairs = zip(*write(tmp_path, "gold", rows[320:]), strict=True)
    lines = "".join(f"{source} |||  {target}  \n" for source, target in pairs)
    (tmp_path / "set.src-tgt").write_text(lines, "utf-8")
    lines = "".join(
        " ".join(f"{i}-{i}" for i in range(1, 1 + len(row))) + "\n"
        for row in rows[320:]
    )
    (tmp_path / "set.gold").write_text(lines)
    arguments = [tmp_path / "set", tmp_path, "--source=en", "--target=de"]
    arguments += ["--size=mini", "--epochs=1", "--pairs=250"]
    # The first 250 pairs, then the 80 of the set.
    lines = [
        " ".join(f"{i}-{i}" for i in range(len(row)))
        for row in [*rows[:250], *rows[320:]]
    ]
    (tmp_path / "links").write_text("\n".join(lines) + "\n")
    arguments += ["--guides", "none", "hmm", tmp_path / "links"]
    guides, train = [], runs.train

    def trained(config):
        guides.append(config.optimizer.guided_alignment)
        return train(config)

    monkeypatch.setattr(runs, "train", trained)
    monkeypatch.setattr(sys, "argv", [str(PROGRAM), *map(str, arguments)])
    runpy.run_path(str(PROGRAM), run_name="__main__")
    printed = capsys.readouterr().out
    table = printed[printed.index("| | alignment error rate") :].splitlines()
    cells = [line.strip("| ").split(" | ") for line in table[2:7]]
    assert [row[0] for row in cells] == [
        *("IBM Model 1", "hidden Markov model"),
        *("rnnsearch", "rnnsearch, guided by hmm"),
        "rnnsearch, guided by links",
    ]
    assert guides == [None, "hmm", str(tmp_path / "links")]
    model_1, hmm, *translators = (float(row[1]) for row in cells)
    assert model_1 < 5 and hmm < 5
    # An epoch of three batches teaches them nothing yet.
    assert all(5 < rate <= 100 for rate in translators)
    assert "All learned from 330 pairs" in table[-1]
