"""What is told at the end of a training."""

import json
import os
import pathlib
import subprocess
import types

import pytest

from keras_attention import config, plotting
from keras_attention.serving import kinds
from keras_attention.tasks import translation
from keras_attention.training import report, run_directory


@pytest.mark.parametrize(
    "kind, said",
    [
        (kinds.TRANSLATION, ["translate", "a b/savedmodel", "TEXT"]),
        (kinds.LANGUAGE_MODELLING, ["predict", "a b/savedmodel", "TEXT"]),
        (kinds.CLASSIFICATION, ["predict", "a b/savedmodel", "TEXT"]),
        (kinds.ENTAILMENT, ["predict", "a b/savedmodel", "TEXT\tTEXT_PAIR"]),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_command_of_each_kind_gives_its_texts(tmp_path, kind, said):
    """In any shell: `sh` knows no `$'\\t'`."""
    program = tmp_path / "keras-attention"
    program.write_text("#!/bin/sh\nprintf '%s|' \"$@\"\n[ -t 0 ] || cat\n")
    program.chmod(0o755)
    model = types.SimpleNamespace(kind=kind, task=kind.name)
    done = subprocess.run(
        ["sh", "-c", report.command(model, pathlib.Path("a b/savedmodel"))],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip().replace("|\n", "|").strip("|").split("|") == said


def test_the_learning_curve_is_that_of_the_stages(tmp_path, monkeypatch):
    """Another run that lies in the folder is none of them."""
    choices = config.resolve(
        config.make(output=str(tmp_path), distillation_epochs=1)
    )
    for name, loss in ((".", 1.0), ("another", 2.0), ("teacher", 3.0)):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "config.yaml").write_text(config.text(choices))
        (folder / "history.json").write_text(json.dumps([{"loss": loss}]))
    drawn = []
    monkeypatch.setattr(
        plotting, "learning_curve", lambda curves, path: drawn.append(curves)
    )
    path = report.draw_learning_curve(translation.Translation(), choices)
    assert path == tmp_path / "learning_curve.png"
    assert drawn == [{"loss": [3.0, 1.0]}]


@pytest.mark.parametrize("model", ["transformer", "rnn_language_model"])
def test_a_run_of_before_a_choice_of_the_search_goes_on(tmp_path, model):
    """It has its scores, and is scored anew for another choice."""
    now = config.resolve(config.make(model=model, output=str(tmp_path / "run")))
    directory = run_directory.start(now)
    assert now.search.no_repeat_ngram_size == 0
    text = directory.config.read_text()
    (line,) = [one for one in text.splitlines() if "no_repeat" in one]
    directory.config.write_text(text.replace(f"{line}\n", ""))
    directory.checkpoint.touch()
    found = types.SimpleNamespace(
        test_set=types.SimpleNamespace(name="test", examples=[]),
        scores={"sentences": 3},
    )
    before = run_directory.read_config(directory)
    assert before.search.no_repeat_ngram_size is None
    saved = report.saved_scores(found, before.search)
    directory.scores.write_text(json.dumps(saved))
    assert report.read_scores(directory, before.search) == saved
    other = config.replace(before, no_repeat_ngram_size=3)
    assert report.read_scores(directory, other.search) is None
    other = config.replace(before, constraints=True, minimum_risk=True)
    assert report.read_scores(directory, other.search) == saved
    assert run_directory.start(now, resume=True) == directory


def test_a_task_need_not_count_what_was_cut(tmp_path, monkeypatch, capsys):
    """`truncated` is for tasks that cut: without it, a training ends well."""
    directory = run_directory.start(config.make(output=str(tmp_path / "run")))
    found = types.SimpleNamespace(
        test_set=types.SimpleNamespace(
            name="test", sources=["a"], examples=["a"]
        ),
        scores={"sentences": 3},
    )
    task = types.SimpleNamespace(
        headings=("text", "number"),
        evaluate=lambda servable, test_set, truncate: found,
        held_out=lambda corpus: found.test_set,
        draw=lambda folder, servable, evaluation: {},
        card=lambda choices, scores, servable: "",
        samples=lambda servable, evaluation: [],
        summary=lambda evaluation: "3 of 3",
    )
    servable = types.SimpleNamespace(
        kind=kinds.CLASSIFICATION,
        task="classification",
        export=lambda folder, card: folder / "1",
    )
    monkeypatch.setattr(report.restore, "load_run", lambda *_: servable)
    monkeypatch.setattr(report, "draw_learning_curve", lambda *_: "")
    parts = types.SimpleNamespace(
        task=task,
        config=config.resolve(config.make()),
        directory=directory,
        corpus=None,
    )
    assert report.finish(parts) == {"sentences": 3}
    assert capsys.readouterr().out.endswith("test: 3 of 3\n")
