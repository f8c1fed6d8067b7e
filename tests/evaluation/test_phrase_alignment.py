"""The report on alignment, of translators that look where they are told."""

import json
import types

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import cli
from keras_attention.data.embedded import phrases
from keras_attention.evaluation import phrase_alignment
from keras_attention.training import restore

# Phrases as the file of links has them, which is faster than to draw them.
PAIRS = [
    phrases.Pair(*line.split("\t")[:2], "cardinal", None)
    for line in phrase_alignment.LINKS.read_text("utf-8").splitlines()[:240]
]
PAIRS = [
    pair._replace(category="date") if any(map(str.isdigit, pair[0])) else pair
    for pair in PAIRS
]
COUNTS = ["hidden Markov model", "IBM Model 1"]
PAIRS = {"train": PAIRS[40:], "test": PAIRS[:40]}
LINKS = dict(
    zip(
        PAIRS["test"], phrase_alignment._links(PAIRS["test"], "en"), strict=True
    )
)


class Characters:
    """Tokens are characters; attention is on the true ones, or moved.

    With `blind`, it is on END alone, as that of a model without attention.
    """

    def __init__(self, move=0, blind=False):
        self.move = move
        self.blind = blind
        self.graph = self.source_tokenizer = self.target_tokenizer = self

    def tokenize(self, texts):
        return tf.strings.unicode_decode(texts, "UTF-8")

    def align(self, texts, references):
        pairs = {pair.source: pair for pair in PAIRS["test"]}
        return [self._look(pairs[text]) for text in texts]

    def _look(self, pair):
        source, target = ([*text, "[END]"] for text in pair[:2])
        attention = np.zeros((len(target), len(source)))
        for sources, targets in LINKS[pair]:
            for start, end in targets:
                attention[start:end, sources[0][0]] = 1
        if self.blind:
            attention = np.eye(len(source))[[-1] * len(target)]
        return {
            "source_tokens": source,
            "target_tokens": target,
            "attention": np.roll(attention, self.move, axis=1),
        }


@pytest.fixture(autouse=True)
def fewer_phrases(monkeypatch):
    # Not in `phrases` itself, whose phrases are kept in a file.
    fewer = types.SimpleNamespace(generate=lambda source, target: PAIRS)
    monkeypatch.setattr(phrase_alignment, "phrases", fewer)


def test_rows_tell_a_right_alignment_from_a_wrong_one(tmp_path):
    picture = tmp_path / "aligned.png"
    models = {
        "right": Characters(),
        "wrong": Characters(7),
        "blind": Characters(blind=True),
    }
    rows = phrase_alignment.measure(models, picture=picture)
    right, wrong, blind, hmm, model_1 = rows
    assert picture.stat().st_size > 0
    assert [row["model"] for row in rows] == [*models, *COUNTS]
    # A character of a longer word is no sure link, so |S| is small.
    assert right["aer"] == pytest.approx(0, abs=1e-9)
    assert wrong["aer"] > 50
    assert blind["aer"] == 100
    assert 0 < hmm["aer"] < model_1["aer"] < 100
    for row in rows:
        assert row["best"] == pytest.approx(0, abs=1e-9)
        assert row["sentences"] == 40
        assert set(row["by_category"]) == {p.category for p in PAIRS["test"]}


def test_a_line_for_each_run_and_one_for_the_baseline(
    tmp_path, capsys, monkeypatch
):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text(
            "corpus: phrases\nsource: en\ntarget: de\n"
        )

    def load_run(directory, config, task):
        assert (config.data.corpus, task.name) == ("phrases", "translation")
        return Characters(7 if directory.path.name == "b" else 0)

    monkeypatch.setattr(restore, "load_run", load_run)
    # A run that is named twice has one line.
    names = [str(tmp_path / name) for name in "aba"]
    picture = tmp_path / "aligned.png"
    cli.main(["align", *names, "--picture", str(picture)])
    lines = capsys.readouterr().out.strip().splitlines()
    right, wrong, _, model_1 = rows = list(map(json.loads, lines))
    assert right["aer"] < model_1["aer"] < wrong["aer"]
    assert [row["model"] for row in rows] == [
        f"{tmp_path.name}/a",
        f"{tmp_path.name}/b",
        *COUNTS,
    ]
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_aligning_a_run(tmp_path, capsys):
    """From training to the lines of JSON, with real tokens."""
    run, picture = tmp_path / "run", tmp_path / "aligned.png"
    sizes = '{"embedding_dim": 8, "units": 8, "readout_dim": 8}'
    cli.main(
        ["train", "--model=rnnsearch", "--steps=2", f"--output={run}"]
        + ["--model_arguments", sizes, "--validation_sentences=2"]
    )
    capsys.readouterr()
    cli.main(["align", str(run), str(run), "--picture", str(picture)])
    lines = capsys.readouterr().out.strip().splitlines()
    model, _, model_1 = rows = list(map(json.loads, lines))
    assert [row["model"] for row in rows] == [f"{tmp_path.name}/run", *COUNTS]
    assert model["best"] == model_1["best"] < model_1["aer"] < model["aer"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_runs_on_another_corpus_are_refused(tmp_path):
    (tmp_path / "config.yaml").write_text("corpus: folder\n")
    with pytest.raises(SystemExit, match="align needs runs"):
        cli.main(["align", str(tmp_path)])


def test_a_savedmodel_is_no_run(tmp_path):
    with pytest.raises(SystemExit, match="is not the folder of a run"):
        cli.main(["align", str(tmp_path)])


@pytest.mark.parametrize("languages", [("fr", "de"), ("en", "en")])
def test_languages_without_links_are_refused_at_once(languages, monkeypatch):
    monkeypatch.delattr(phrase_alignment, "phrases")  # It takes long.
    with pytest.raises(ValueError, match="from English to German"):
        phrase_alignment.measure({}, *languages)


def test_links_turn_round_with_the_languages():
    pair = phrases.Pair("May 22, 2039", "22. Mai 2039", "date", None)
    (links,) = phrase_alignment._links([pair], "en")
    assert links == [[[(0, 3)], [(4, 7)]], [[(4, 6)], [(0, 2)]]] + [
        [[(8, 12)], [(8, 12)]]
    ]
    (turned,) = phrase_alignment._links(
        [pair._replace(source=pair.target, target=pair.source)], "de"
    )
    assert turned == [link[::-1] for link in links]


def test_phrases_without_links_are_refused():
    pair = phrases.Pair("May 22, 2039", "am 22. Mai 2039", "date", None)
    with pytest.raises(ValueError, match="write other phrases .*May 22, 2039"):
        phrase_alignment._links([pair], "en")
