"""Runs: limits, selection, averages, and going on after any stop."""

import contextlib
import dataclasses
import json
import os
import shutil
import types

import numpy as np
import pytest
import small_runs

from keras_attention import config, files
from keras_attention.tasks import translation
from keras_attention.training import (
    checkpoints,
    loop,
    parts,
    progress,
    run_directory,
    trainer,
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Digits and their names; one validation text is over the limit."""
    folder = tmp_path_factory.mktemp("corpus")
    small_runs.write_digits(folder, train=100, validation=6)
    for language in ("en", "de"):
        with open(folder / f"validation.{language}", "a") as file:
            file.write("1 " * 300 + "\n")
    return folder


def small_choices(corpus, **choices):
    """The choices of a small run."""
    choices = {
        "corpus": str(corpus),
        "model_arguments": small_runs.SIZES,
        "vocabulary_size": 320,
        "max_tokens": 64,
        "epochs": 3,
        "warmup_steps": 5,
        "checkpoint_steps": 0,
        "replicas": 1,
        **choices,
    }
    return config.resolve(config.make(**choices))


@pytest.fixture
def choose(corpus, tmp_path):
    """A function: the choices of a small run in a folder of this name."""

    def choose(name="run", **choices):
        own = {"corpus": corpus, "output": str(tmp_path / name)}
        return small_choices(**{**own, **choices})

    return choose


class UpsideDown(translation.Translation):
    """Translation by what need not be traced."""

    def servable(self, config, model, tokenizers, stored_precision="float32"):
        return lambda texts, **options: [text[::-1] for text in texts]


class StandsStill(trainer.Trainer):
    """Goes through epochs and leaves the weights as they are."""

    def fit(self, *args, **options):
        pass

    def evaluate(self, *args, **options):
        return {"loss": 1.0}


def begin(choices, resume=False):
    """The parts of a run and its progress, before it trains."""
    task = UpsideDown()
    directory = run_directory.start(choices, resume)
    built = parts.build(choices, task, directory, task.load(choices.data))
    return built, loop.begin(built)


@pytest.fixture(scope="module")
def built(corpus, tmp_path_factory):
    """The parts of a small run, which several tests give other folders."""
    output = str(tmp_path_factory.mktemp("built") / "run")
    return begin(small_choices(corpus, output=output))[0]


@pytest.fixture
def standing(built, choose):
    """A function: parts in a folder of their own that train nothing."""

    def standing(task=None, still=StandsStill, **choices):
        choices = choose(**choices)
        fitted = still(built.model)
        fitted.compile(built.trainer.optimizer)
        run = dataclasses.replace(
            built,
            config=choices,
            task=task or UpsideDown(),
            directory=run_directory.start(choices),
            trainer=fitted,
        )
        return run, loop.begin(run)

    return standing


def train(choices, resume=False):
    """Trains a run to its end: its parts, and the weights that are kept."""
    trained = loop.train(choices, UpsideDown(), resume)
    return trained, checkpoints.load(trained.directory.weights)[0]


def same_bytes(first, second):
    assert first.keys() == second.keys()
    return all(
        first[name].tobytes() == second[name].tobytes() for name in first
    )


def contents(folder):
    """The bytes of each file."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in paths}


def updates(trained):
    return int(trained.trainer.optimizer.iterations.numpy())


@contextlib.contextmanager
def dies_in_validation(call=1):
    """At the n-th time."""
    evaluate, calls = trainer.Trainer.evaluate, []

    def dies(*args, **options):
        calls.append(args)
        if len(calls) == call:
            raise small_runs.Stop
        return evaluate(*args, **options)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(small_runs.Stop):
        patch.setattr(trainer.Trainer, "evaluate", dies)
        yield


def has_three_epochs(path):
    return len(run_directory.read_history(run_directory.at(path.parent))) > 2


KILLS = [
    lambda: small_runs.killed("checkpoint.npz", call=2),
    dies_in_validation,
    lambda: small_runs.killed("history.json"),
    lambda: dies_in_validation(call=2),
]
AVERAGE = [lambda: small_runs.killed("weights.npz", counts=has_three_epochs)]
SAMPLED = {"average_last": 2, "subword_sampling": 0.2}


def test_a_run_goes_on_exactly_from_what_it_has_saved(
    choose, tmp_path, monkeypatch
):
    """From a copy of its folder, made at a checkpoint amid an epoch."""
    write, calls = files.write_atomically, []

    def copies(path, data):
        write(path, data)
        if path.name == "checkpoint.npz":
            calls.append(path)
            if len(calls) == 2:
                shutil.copytree(path.parent, tmp_path / "broken")

    choices = {"checkpoint_steps": 1, "dropout": 0.2, "epochs": 2}
    with monkeypatch.context() as patch:
        patch.setattr(files, "write_atomically", copies)
        whole, expected = train(choose("whole", **choices))
    assert len(calls) > 3
    broken, resumed = train(choose("broken", **choices), resume=True)
    assert same_bytes(expected, resumed)
    histories = [
        run_directory.read_history(one.directory) for one in (whole, broken)
    ]
    assert histories[0] == histories[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "choices, kills",
    [
        ({"epochs": 2}, [lambda: small_runs.killed("checkpoint.npz", call=3)]),
        ({"steps": 25, "epochs": None}, KILLS),
        (SAMPLED, [*KILLS, *AVERAGE]),
        ({"replicas": 2, "micro_batches": 2}, KILLS),
        ({"joint_vocabulary": False, "precision": "bfloat16"}, KILLS),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else len(case),
)
def test_a_stopped_run_goes_on_exactly(choose, choices, kills, capsys):
    """Killed where it saves, and at every seam of an epoch."""
    # Each step is saved: the last checkpoint of an epoch lies at its end.
    choices = {"checkpoint_steps": 1, "dropout": 0.2, **choices}
    whole, expected = train(choose("whole", **choices))
    for kill in kills:
        with kill():
            train(choose("broken", **choices), resume=True)
    broken, resumed = train(choose("broken", **choices), resume=True)
    # Nobody looks at a bar here: it has no colours and no backspaces.
    assert not {"\x1b", "\b"} & {*capsys.readouterr().out}
    histories = [
        run_directory.read_history(one.directory) for one in (whole, broken)
    ]
    if choices.get("replicas", 1) == 1:
        assert same_bytes(expected, resumed)
        assert histories[0] == histories[1]
    # Over replicas, not even two whole runs are always the same to the bit. The
    # gradient of a key's bias is 0 but for rounding. Adam moves such a weight
    # as far as any.
    assert resumed.keys() == expected.keys()
    for name in expected:
        if "key_bias" not in name:
            np.testing.assert_allclose(resumed[name], expected[name], atol=1e-5)
    for ours, theirs in zip(*histories, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("less", [{"epochs": 2}, {"steps": 10}])
def test_a_run_stopped_in_an_epoch_may_end_there(choose, less):
    """No epoch is half trained and called done."""
    run, start = begin(choose(checkpoint_steps=1))
    batches = run.pipeline.report.batches
    with small_runs.killed("checkpoint.npz", call=2 * batches + 7):
        loop.fit(run, start)
    done = updates(run)
    assert 2 * batches < done < 3 * batches
    shorter, _ = train(choose(**less), resume=True)
    assert updates(shorter) == (3 * batches if "epochs" in less else done - 1)
    assert len(run_directory.read_history(shorter.directory)) == 3


@pytest.fixture
def moving(corpus, tmp_path):
    """A corpus of its own, which may be moved and changed."""
    return shutil.copytree(corpus, tmp_path / "corpus")


def reverse(path):
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join(lines[::-1]) + "\n", "utf-8")


@pytest.mark.slow
def test_another_corpus_is_not_trained_on(choose, moving, tmp_path):
    choices = choose(corpus=str(moving))
    progress.save(*begin(choices))
    begin(choices, resume=True)
    reverse(moving / "train.de")
    settings = (tmp_path / "run" / "config.yaml").read_bytes()
    with pytest.raises(ValueError, match="no longer gives the examples"):
        train(choose(corpus=str(moving), epochs=5), resume=True)
    # A refusal changes nothing: with the pairs put back, the run goes on.
    assert (tmp_path / "run" / "config.yaml").read_bytes() == settings
    reverse(moving / "train.de")
    begin(choices, resume=True)
    (moving / "validation.de").write_text("null\n" * 7, "utf-8")
    with pytest.raises(ValueError, match="no longer gives the examples"):
        begin(choices, resume=True)


def test_other_pieces_of_the_same_texts_are_told(choose):
    """A language model of version 0.1.0 drew them otherwise."""
    run, start = begin(choose(subword_sampling=0.1))
    training, validation = start.corpus
    start.corpus = [training + 1, validation]
    progress.save(run, start)
    with pytest.raises(ValueError, match="version 0.1.0 drew other pieces"):
        progress.load(run)
    start.corpus = [training + 1, validation + 1]
    progress.save(run, start)
    with pytest.raises(ValueError, match="its files have changed"):
        progress.load(run)


def test_the_last_epochs_are_averaged(standing):
    run, start = standing(average_last=2)
    generator, seen = np.random.default_rng(0), []

    def validate(epoch, logs):
        variables = run.model.trainable_variables
        seen.append([generator.normal(size=one.shape) for one in variables])
        for variable, value in zip(variables, seen[-1], strict=True):
            variable.assign(value)
        logs["val_bleu"] = 0.0

    run = dataclasses.replace(run, validate=validate)
    loop.fit(run, start)
    kept, _ = checkpoints.load(run.directory.weights)
    assert len(seen) == 3
    for mean, *values in zip(kept.values(), *seen[-2:], strict=True):
        np.testing.assert_allclose(mean, np.mean(values, axis=0), atol=1e-6)


@pytest.mark.slow
def test_steps_alone_are_the_limit(choose):
    run, start = begin(choose(steps=70, epochs=None))
    assert run.pipeline.report.batches * 3 < 70
    loop.fit(run, start)
    assert updates(run) == 70
    assert float(run.trainer.optimizer.learning_rate) < 1e-5


@pytest.mark.slow
def test_a_finished_run_goes_on_with_more_epochs(choose):
    train(choose())
    again, come = begin(choose(), resume=True)
    # It would be called.
    loop.fit(dataclasses.replace(again, validate=None), come)
    assert come.epoch == 3
    longer, come = begin(choose(epochs=4), resume=True)
    loop.fit(longer, come)
    assert come.epoch == len(come.history) == 4
    shorter, come = begin(choose(epochs=2), resume=True)
    loop.fit(shorter, come)
    assert len(come.history) == 4


class ByLoss(UpsideDown):
    """A task that ranks its epochs in another way."""

    def rank(self, logs):
        return (-logs["val_loss"],)


@pytest.mark.parametrize(
    "task, logs, best",
    [
        (UpsideDown, [(1, 3.0), (7, 4.0), (7, 4.0)], 1),
        (ByLoss, [(9, 3.0), (1, 2.0), (9, 2.5)], 1),
        pytest.param(
            *(UpsideDown, [(0, 3.0), (0, 2.0), (0, 2.5)], 1),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_best_epoch_is_kept(standing, task, logs, best):
    run, start = standing(task())

    def validate(epoch, measured):
        measured["val_bleu"], measured["val_loss"] = logs[epoch]

    run = dataclasses.replace(run, validate=validate)
    loop.fit(run, start)
    assert start.best_epoch == best
    assert checkpoints.load(run.directory.weights)[1]["epoch"] == best


@pytest.mark.slow
def test_a_loss_that_is_not_finite_ends_the_run(choose):
    choices = choose(learning_rate=1e30, schedule="constant", clip_norm=0.0)
    with pytest.raises(ValueError, match="lower learning_rate"):
        train(choices)


def test_a_validation_loss_that_is_not_finite_ends_the_run(standing):
    """Before its weights are kept: no later epoch would replace them."""

    class Diverges(StandsStill):
        def evaluate(self, *args, **options):
            return {"loss": float("nan")}

    run, start = standing(still=Diverges)
    with pytest.raises(ValueError, match="val_loss of epoch 1 is nan"):
        loop.fit(run, start)
    assert not run.directory.weights.exists()


def test_a_mistake_does_not_lock_the_folder(choose):
    wrong = choose(model_arguments={"num_layers": 0}, max_piece_length=1)
    with pytest.raises(ValueError, match="num_layers=0"):
        train(wrong)
    (vocabulary,) = run_directory.at(wrong.run.output).path.glob("*.model")
    letters = vocabulary.read_bytes()
    run, start = begin(choose())
    assert run.pipeline.report.kept == 100
    assert vocabulary.read_bytes() != letters
    progress.save(run, start)
    with pytest.raises(ValueError, match="Add --resume"):
        train(choose())
    with pytest.raises(ValueError, match="Expected max_tokens=64"):
        train(choose(max_tokens=65), resume=True)


@pytest.fixture
def finished(standing):
    """A run of two epochs that was not trained in earnest."""
    run, start = standing(epochs=2)
    run = dataclasses.replace(
        run, validate=lambda _, logs: logs.update(val_bleu=0.0)
    )
    loop.fit(run, start)
    return run.directory


@pytest.mark.fast_for("checkpoint.npz")
@pytest.mark.parametrize(
    "lost, resume", [("checkpoint.npz", True), ("weights.npz", False)]
)
def test_a_run_without_its_checkpoint_is_not_overwritten(
    choose, finished, lost, resume
):
    finished.checkpoint.unlink()
    (finished.path / lost).unlink(missing_ok=True)
    kept = contents(finished.path)
    with pytest.raises(ValueError, match="without its checkpoint.npz"):
        train(choose(seed=2), resume)
    assert contents(finished.path) == kept


@pytest.mark.parametrize("resume", [False, True])
def test_scores_without_a_checkpoint_are_those_of_a_run(choose, resume):
    run = run_directory.start(choose())
    run.scores.write_text("{}")
    # The second stage of a distillation has lost its own.
    teacher = run_directory.start(choose("run/teacher"))
    teacher.checkpoint.touch()
    kept = contents(run.path)
    with pytest.raises(ValueError, match="without its checkpoint.npz"):
        train(choose(seed=2), resume)
    assert contents(run.path) == kept


@pytest.mark.parametrize("folder", ["run", "run/teacher"])
def test_weights_of_a_first_epoch_need_a_resume(choose, tmp_path, folder):
    """A stop between its weights and its checkpoint leaves these."""
    run = run_directory.start(choose())
    run_directory.start(choose(folder))
    (tmp_path / folder / "weights.npz").touch()
    kept = contents(run.path)
    with pytest.raises(ValueError, match="without its checkpoint.npz"):
        train(choose(seed=2))
    assert contents(run.path) == kept
    run_directory.start(choose(), resume=True)


def test_a_config_of_something_else_is_not_overwritten(choose, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.yaml").write_text("port: 8080\n")
    with pytest.raises(ValueError, match="does not hold the choices of a run"):
        train(choose())
    assert (tmp_path / "run/config.yaml").read_text() == "port: 8080\n"


def test_one_process_at_a_time_trains_in_a_folder(choose, tmp_path):
    with files.lock(tmp_path / "run"):
        with pytest.raises(ValueError, match="Another process writes in"):
            train(choose())
    assert os.listdir(tmp_path / "run") == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_layers": 0},
        {"num_layers": "two"},
        {"vocabulary_size": 5},
        {"no_such": 5},
    ],
)
def test_arguments_that_the_model_does_not_take(choose, arguments):
    choices = choose(model_arguments=arguments)
    with pytest.raises(ValueError, match="take model_arguments={") as told:
        UpsideDown().create_model(
            choices, [types.SimpleNamespace(vocabulary_size=31)] * 2
        )
    assert next(iter(arguments)) in str(told.value)


@pytest.mark.slow
def test_the_logs_are_kept_for_people_and_for_tensorboard(finished):
    history = json.loads(finished.history.read_text())
    assert [sorted(logs) for logs in history] == 2 * [
        ["accuracy", "loss", "perplexity", "val_bleu", "val_loss"]
    ]
    assert any((finished.path / "tensorboard").iterdir())
