"""The command line from end to end, on a corpus of a few lines."""

import io
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml

from keras_attention import cli, files
from keras_attention.commands import parsing
from keras_attention.serving import translator
from keras_attention.training import checkpoints, report, runs

MODEL_ARGUMENTS = (
    '{"num_layers": 1, "hidden_dim": 16, "intermediate_dim": 32, '
    '"num_heads": 2}'
)
WORDS = "ein zwei drei vier fünf sechs sieben acht neun zehn".split()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Digits and their names; the last line of the test set is blank."""
    folder = tmp_path_factory.mktemp("corpus")
    generator = np.random.default_rng(0)
    for split, size in (("train", 150), ("validation", 7), ("test", 5)):
        rows = [
            generator.integers(0, 10, generator.integers(1, 6))
            for _ in range(size)
        ]
        if split == "test":
            rows.append([])
        source = "\n".join(" ".join(map(str, row)) for row in rows)
        target = "\n".join(" ".join(WORDS[d] for d in row) for row in rows)
        (folder / f"{split}.en").write_text(source + "\n", "utf-8")
        (folder / f"{split}.de").write_text(target + "\n", "utf-8")
    return folder


def train_arguments(corpus, output, *more):
    return [
        "train",
        f"--corpus={corpus}",
        f"--output={output}",
        "--model_arguments",
        MODEL_ARGUMENTS,
        "--vocabulary_size=320",
        "--max_tokens=64",
        "--epochs=2",
        "--warmup_steps=5",
        "--checkpoint_steps=3",
        *more,
    ]


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "digits"
    cli.main(train_arguments(corpus, output))
    return output


def command(arguments):
    return [sys.executable, "-m", "keras_attention", *arguments]


def environment():
    root = pathlib.Path(cli.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": str(root)}


def test_help_imports_neither_tensorflow_nor_keras():
    code = (
        "import sys; from keras_attention import cli, parsing; "
        "parsing.make_parser(); "
        "sys.exit(bool({'tensorflow', 'keras'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=environment())


def test_train_leaves_everything_behind(run):
    names = {path.name for path in run.iterdir()}
    assert names >= {
        "config.yaml",
        "history.json",
        "weights.npz",
        "scores.json",
        "attention.png",
        "learning_curve.png",
        "bleu_by_length.png",
        "savedmodel",
    }
    history = json.loads((run / "history.json").read_text())
    assert len(history) == 2
    assert history[1]["loss"] < history[0]["loss"]


def test_evaluate_ends_with_one_json_object(run, corpus, capsys):
    scores = []
    for model in (run, run / "savedmodel"):
        cli.main(
            [
                "evaluate",
                str(model),
                f"--source={corpus / 'test.en'}",
                f"--reference={corpus / 'test.de'}",
            ]
        )
        last = capsys.readouterr().out.strip().splitlines()[-1]
        scores.append(json.loads(last))
        for name in ("bleu", "bleu_lc", "chrf"):
            assert set(scores[-1][name]) == {"score", "signature"}
        assert scores[-1].pop("sentences_per_second") > 0
    assert scores[0] == scores[1]


def test_a_run_is_scored_on_its_held_out_pairs(run, capsys, tmp_path):
    """Beside another model; both are drawn."""
    picture = tmp_path / "by_length.png"
    other = run / "savedmodel"
    cli.main(
        ["evaluate", str(run), "--by_length", str(picture)]
        + ["--beside", str(other)]
    )
    lines = capsys.readouterr().out.strip().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["model"] for row in rows] == [str(other), str(run)]
    assert rows[0]["bleu"] == rows[1]["bleu"]
    same = {"difference": 0.0, "p_value": 1.0}
    assert rows[1]["compared_with"] == {
        "model": f"{run.name}/savedmodel",
        "bleu": same,
        "bleu_lc": same,
    }
    saved = json.loads((run / "scores.json").read_text())
    assert rows[1]["bleu"] == saved["bleu"]
    assert rows[0]["by_length"] == rows[1]["by_length"]
    _, sources, _ = report.held_out(runs.read_config(runs.RunDirectory(run)))
    lengths = runs.load(run).num_tokens(sources)
    for row in rows[0]["by_length"]:
        inside = [row["low"] <= n <= (row["high"] or n) for n in lengths]
        assert row["sentences"] == sum(inside) > 0
        assert row["interval"] >= 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_model_beside_itself_has_a_line_each_time(run, capsys):
    cli.main(["evaluate", str(run), "--beside", str(run)])
    lines = capsys.readouterr().out.strip().splitlines()
    first, second = (json.loads(line) for line in lines)
    assert "compared_with" not in first
    assert second["compared_with"]["bleu"]["difference"] == 0


@pytest.mark.parametrize(
    "models, labels",
    [
        (["runs/a"], ["runs/a"]),
        (["a", "runs/b"], ["a", "runs/b"]),
        (["runs/a/savedmodel/1", "runs/b"], ["savedmodel/1", "runs/b"]),
        (["x/a/s/1", "x/b/s/1"], ["a/s/1", "b/s/1"]),
        (["x/a/s/1", "x/a/s/1"], ["s/1", "s/1"]),
    ],
)
def test_models_are_told_apart_in_a_picture(models, labels):
    assert cli._labels(models) == labels


def test_translate_keeps_the_order_of_lines(run, monkeypatch, capsys, tmp_path):
    texts = ["1 2 3", "", "7", "1 2 3"]
    cli.main(["translate", str(run / "savedmodel"), *texts])
    from_arguments = capsys.readouterr().out.split("\n")[:-1]
    lines = io.BytesIO("\n".join([*texts, ""]).encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(lines))
    picture = tmp_path / "attention.png"
    cli.main(["translate", str(run), "--attention", str(picture)])
    from_lines = capsys.readouterr().out.split("\n")[:-1]
    assert from_arguments == from_lines
    assert len(from_lines) == 4
    assert from_lines[1] == "" and from_lines[0] == from_lines[3]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_n_best_with_scores_is_sorted(run, capsys):
    model = str(run / "savedmodel")
    cli.main(["translate", model, "--n_best", "3", "1 2", "3", "--scores"])
    lines = capsys.readouterr().out.splitlines()
    scores = [float(line.split("\t")[1]) for line in lines]
    assert len(scores) == 6
    for start in (0, 3):
        assert scores[start] >= scores[start + 1] >= scores[start + 2]


@pytest.mark.parametrize(
    "typed, ordered",
    [
        ("RUN a b", "RUN a b"),
        ("RUN --n_best 3 a --scores b", "--n_best 3 --scores RUN a b"),
        ("--num_beams 1 RUN a", "--num_beams 1 RUN a"),
        ("RUN a --length_penalty 0 b", "--length_penalty 0 RUN a b"),
        ("RUN --n_best=3 a", "--n_best=3 RUN a"),
        ("RUN a --attention file.png", "--attention file.png RUN a"),
        ("RUN a --scores -- --b --c", "--scores RUN a -- --b --c"),
    ],
)
def test_options_of_translate_may_stand_anywhere(typed, ordered):
    """Argparse finds no text behind MODEL and an option."""
    argv = parsing.reordered(["translate", *typed.split()])
    assert argv == ["translate", *ordered.split()]
    parsed = parsing.make_parser().parse_args(argv).translate
    assert parsed.model == "RUN" and parsed.texts[0] == "a"
    # No option, but a text.
    text = "-- Yes, I will."
    argv = parsing.reordered(["translate", "RUN", text])
    assert parsing.make_parser().parse_args(argv).translate.texts == [text]


def test_export_writes_the_next_version(run, tmp_path):
    digits = shutil.copytree(run / "savedmodel", tmp_path / "digits")
    # Of another search the scores have to be found.
    other = ["--num_beams=2", "--length_penalty=0.5"]
    cli.main(["export", str(run), "--to", str(digits), *other])
    assert (digits / "2" / "saved_model.pb").is_file()
    card = (digits / "README.md").read_text("utf-8")
    assert "Search: beam 2, length penalty 0.5" in card
    exported, same, without = (
        [score for _, score in translate.n_best(["1 2 3"])[0]]
        for translate in (
            runs.load(digits),
            runs.load(run, num_beams=2, length_penalty=0.5),
            runs.load(run, num_beams=2),
        )
    )
    np.testing.assert_allclose(exported, same, rtol=1e-5)
    assert same != without
    # Exported with two beams, it has no other search.
    runs.load(digits, num_beams=2)
    for search in ({"num_beams": 1}, {"length_penalty": 0.5}):
        with pytest.raises(ValueError, match="exported with, this one 2 beams"):
            runs.load(digits, **search)


def test_a_savedmodel_searches_greedily_too(run, capsys):
    cli.main(["translate", str(run / "savedmodel"), "1 2", "--num_beams=1"])
    (line,) = capsys.readouterr().out.splitlines()
    assert [line] == runs.load(run)(["1 2"], num_beams=1)


def test_what_is_cut_is_counted(run, capsys):
    """By the name of the corpus; a file with such a text is refused."""
    cli.main(
        ["evaluate", str(run), "--num_beams=1"]
        + ["--beside", str(run / "savedmodel")]
    )
    lines = capsys.readouterr().out.strip().splitlines()
    assert [json.loads(line)["truncated"] for line in lines] == [0, 0]
    translate = runs.load(run)
    texts = ["1 2", "1 " * 500]
    assert translate.num_truncated(texts) == 1
    assert translate.num_truncated([]) == 0
    alone, beside = (
        [text for text, _ in hypotheses[0]]
        for hypotheses in (
            translate.n_best(texts[:1]),
            translate.n_best(texts, truncate=True),
        )
    )
    assert alone == beside
    result = report.evaluate(translate, "test", texts, texts, truncate=True)
    assert result.scores["truncated"] == 1


def test_a_card_needs_no_corpus(run, capsys, monkeypatch):
    def fail(*arguments):
        pytest.fail("the corpus may be gone: the run has its scores")

    monkeypatch.setattr(report, "held_out", fail)
    monkeypatch.setattr(
        translator.Translator, "export", lambda self, to, card: card
    )
    cli.main(["export", str(run), "--to=nowhere"])
    card = capsys.readouterr().out
    scores = json.loads((run / "scores.json").read_text())
    assert f"| bleu | {scores['bleu']['score']:.2f} | " in card
    assert str(run.parent) not in card
    choices = card.partition("```yaml\n")[2].partition("```")[0]
    assert yaml.safe_load(choices)["vocabulary_size"] == 320


def test_scores_on_a_card_are_those_of_the_rounded_weights(
    run, capsys, monkeypatch
):
    scores = json.loads((run / "scores.json").read_text())
    others = scores | {"exact_match": 12.34}

    def evaluate(translate, config):
        assert translate.stored_precision == "float16"
        return report.Evaluation("test", [], [], [], others, 0.0)

    monkeypatch.setattr(report, "evaluate_held_out", evaluate)
    monkeypatch.setattr(
        translator.Translator, "export", lambda self, to, card: card
    )
    export = ["export", str(run), "--to=nowhere"]
    cli.main(export)
    card = capsys.readouterr().out
    assert "(in float32)" in card and "| 12.34 % |" not in card
    cli.main([*export, "--stored_precision=float16"])
    card = capsys.readouterr().out
    assert "(in float16)" in card and "| 12.34 % |" in card


@pytest.mark.slow
def test_an_export_may_take_half_the_room(run, tmp_path):
    to = ["export", str(run), "--to", str(tmp_path)]
    cli.main(to)
    cli.main([*to, "--stored_precision=float16"])
    weights = "variables/variables.data-00000-of-00001"
    first, second = ((tmp_path / n / weights).stat().st_size for n in "12")
    assert second < 0.6 * first
    card = (tmp_path / "README.md").read_text("utf-8")
    parameters = runs.load(run).model.count_params()
    megabytes = f"{2 * parameters / 1e6:.2f}"
    assert f"{parameters:,}, {megabytes} MB as stored (in float16)" in card


def test_the_program_on_a_card_runs(run):
    (version,) = (run / "savedmodel").glob("1")
    card = (version.parent / "README.md").read_text("utf-8")
    program = card.partition("```python\n")[2].partition("```")[0]
    names = {}
    exec(program.replace("VERSION", str(version)), names)
    outputs = names["model"](text=names["tf"].constant(["1 2"]))
    expected = runs.load(run)(["1 2"])
    assert outputs["translation"].numpy()[0].decode() == expected[0]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["translate", "{tmp}", "a"], "Expected a SavedModel's folder"),
        (["translate", "{run}", "1 " * 500], "tokens in line 1"),
        (
            ["translate", "{run}/savedmodel", "a", "--num_beams=7"],
            "num_beams=7",
        ),
        (["translate", "{run}", "a", "--n_best=0"], "n_best=0"),
        (
            ["translate", "{run}/savedmodel", "a", "--length_penalty=0"],
            "length_penalty=0.0",
        ),
        (["evaluate", "{tmp}"], "Expected --source and --reference"),
        (["evaluate", "{run}", "--source", "a"], "reference=None"),
        (["export", "{tmp}", "--to", "{tmp}/x"], "Expected a run's folder"),
        (["train", "--corpus", "{tmp}/nothing"], "line-aligned files"),
        (["train", "--output", "{run}"], "add --resume"),
        (
            ["train", "--output", "{run}", "--resume", "--seed", "7"],
            "Expected seed=1",
        ),
    ],
)
def test_mistakes_are_one_clear_line(
    arguments, message, run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    filled = [text.format(tmp=tmp_path, run=run) for text in arguments]
    with pytest.raises(SystemExit) as error:
        cli.main(filled)
    assert message in str(error.value)
    assert "Received" in str(error.value)


def test_two_processes_do_not_train_in_one_folder(corpus, tmp_path):
    with files.lock(tmp_path / "run"):
        with pytest.raises(SystemExit, match="nobody else writes in now"):
            cli.main(train_arguments(corpus, tmp_path / "run"))


# Training that kills itself when half of a checkpoint is written; not of the
# first one, so that there is one to go on from.
KILLS_ITSELF = """
import os, pathlib, signal, sys
from keras_attention import cli

folder, *arguments = sys.argv[1:]
folder, fsync = pathlib.Path(folder), os.fsync

def killed(handle):
    if (folder / "checkpoint.npz").is_file() and [*folder.glob(".checkpoint*")]:
        os.ftruncate(handle, os.fstat(handle).st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
    fsync(handle)

os.fsync = killed
cli.main(arguments)
"""


def killed_run(arguments, folder, moment, wait):
    """Starts training, and kills it.

    Args:
        moment: "write": it kills itself in the next write of a checkpoint;
            "first" or "second": it is killed `wait` seconds after it began
            its first, or its second epoch.

    Returns:
        Whether a write was broken off, and how far the checkpoint is:
        epochs and batches.
    """
    checkpoint = folder / "checkpoint.npz"
    start = command(arguments)
    if moment == "write":
        start = [sys.executable, "-c", KILLS_ITSELF, str(folder), *arguments]
    with subprocess.Popen(
        start,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        try:
            if moment != "write":
                epochs = (line for line in process.stdout if b"Epoch " in line)
                for _ in range(1 if moment == "first" else 2):
                    next(epochs)
                time.sleep(wait)
                process.kill()
            process.communicate()
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL, "it ended by itself"
    progress = (0, 0)
    if checkpoint.is_file():
        _, meta = checkpoints.load(checkpoint)
        progress = (meta["epoch"], meta["step"])
    return any(folder.glob(".checkpoint*")), progress


def timed_run(arguments):
    """Trains to the end.

    Returns:
        Seconds of the first epoch, in which it traces, and of another.
    """
    words, times = (b"Epoch 1/", b"Epoch 2/", b"Epoch 12/"), {}
    with subprocess.Popen(
        command(arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        for line in process.stdout:
            for word in words:
                if word in line:
                    times.setdefault(word, time.perf_counter())
    assert process.returncode == 0
    first, second, last = (times[word] for word in words)
    return second - first, (last - second) / 10


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, kills", [("transformer", 10), ("rnnsearch", 3)]
)
def test_a_killed_run_resumes_to_the_same_bytes(corpus, tmp_path, model, kills):
    """In the middle of a write, while it traces, and while it trains."""
    more = ["--epochs=20", "--dropout=0.2", "--subword_sampling=0.1"]
    if model != "transformer":
        sizes = '{"embedding_dim": 16, "units": 16, "readout_dim": 16}'
        more += [f"--model={model}", "--model_arguments", sizes]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    first, epoch = timed_run(train_arguments(corpus, whole, *more))
    arguments = train_arguments(corpus, broken, *more, "--resume")
    longest = {"write": 0, "first": first, "second": epoch}
    moments = itertools.cycle(longest)
    generator = np.random.default_rng(kills)
    hits, progress = [], []
    for moment in itertools.islice(moments, kills):
        wait = generator.uniform(0, longest[moment])
        hit, reached = killed_run(arguments, broken, moment, wait)
        hits.append(hit)
        progress.append(reached)
    assert all(hits[::3])
    # None fell back; and a fresh start could be told from the last one.
    assert (0, 0) < progress[0] and progress == sorted(progress)
    assert progress[-1] >= (1, 0)
    options = {"check": True, "capture_output": True, "env": environment()}
    words = subprocess.run(command(arguments), **options).stdout
    started = int(re.search(rb"Epoch (\d+)/", words).group(1))
    # They count from 1. After an epoch's last batch it is the next one.
    assert started - 1 - progress[-1][0] in (0, 1)
    for name in ("weights.npz", "checkpoint.npz"):
        expected, expected_meta = checkpoints.load(whole / name)
        resumed, resumed_meta = checkpoints.load(broken / name)
        assert expected_meta == resumed_meta
        assert expected.keys() == resumed.keys()
        for key, array in expected.items():
            assert array.tobytes() == resumed[key].tobytes(), key
