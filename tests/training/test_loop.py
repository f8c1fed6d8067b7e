"""Runs: limits, selection, averages, and going on after any stop."""

import contextlib
import json
import shutil

import numpy as np
import pytest

from keras_attention import config, files
from keras_attention.training import checkpoints, loop

WORDS = "null ein zwei drei vier fünf sechs sieben acht neun".split()
SIZES = {
    "num_layers": 1,
    "hidden_dim": 16,
    "intermediate_dim": 32,
    "num_heads": 2,
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Digits and their names; one validation text is over the limit."""
    folder = tmp_path_factory.mktemp("corpus")
    generator = np.random.default_rng(0)
    for split, size in (("train", 100), ("validation", 6)):
        rows = [
            generator.integers(0, 10, generator.integers(1, 6))
            for _ in range(size)
        ]
        if split == "validation":
            rows.append(generator.integers(0, 10, 300))
        for language, names in (("en", range(10)), ("de", WORDS)):
            lines = [" ".join(str(names[d]) for d in row) for row in rows]
            path = folder / f"{split}.{language}"
            path.write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def upside_down(config, model, tokenizers):
    """A translator that need not be traced."""
    return lambda texts, **options: [text[::-1] for text in texts]


@pytest.fixture
def make_run(corpus, tmp_path, monkeypatch):
    """Makes runs that do not translate in earnest."""
    monkeypatch.setattr(loop.runs, "make_translator", upside_down)

    def make(name="run", **choices):
        choices = {
            "corpus": str(corpus),
            "output": str(tmp_path / name),
            "model_arguments": dict(SIZES),
            "vocabulary_size": 320,
            "max_tokens": 64,
            "epochs": 3,
            "warmup_steps": 5,
            "checkpoint_steps": 0,
            **choices,
        }
        return loop.Run(config.resolve(config.TrainingConfig(**choices)))

    return make


def trained(run):
    run.fit()
    return checkpoints.load(run.directory.weights)


def same_bytes(first, second):
    assert first.keys() == second.keys()
    return all(
        first[name].tobytes() == second[name].tobytes() for name in first
    )


def contents(folder):
    """The bytes of each file."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in paths}


class Stop(Exception):
    """Stands for a kill."""


@contextlib.contextmanager
def killed(run, method, call=1):
    """Lets a run die when it calls one of its methods for the n-th time."""
    original, calls = getattr(run, method), []

    def dies(*args):
        calls.append(args)
        if len(calls) == call:
            raise Stop
        return original(*args)

    setattr(run, method, dies)
    with pytest.raises(Stop):
        yield


KILLS = [("save", 2), ("_validate", 1), ("_write_logs", 1), ("_validate", 2)]
PATIENCE = {"select": "loss", "patience": 1, "epochs": 9}
SAMPLED = {"average_last": 2, "subword_sampling": 0.2}


@pytest.mark.parametrize(
    "choices, kills",
    [
        ({"ema": 0.9, "epochs": 2}, [("save", 3)]),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ({"ema": 0.9, "steps": 25, "epochs": None}, KILLS),
                (SAMPLED, [*KILLS, ("_average_last", 1)]),
                ({**PATIENCE, "learning_rate": 0.3}, KILLS),
                ({"replicas": 2, "micro_batches": 2}, KILLS),
                ({"joint_vocabulary": False, "precision": "bfloat16"}, KILLS),
            )
        ),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else len(case),
)
def test_a_stopped_run_goes_on_exactly(make_run, choices, kills):
    """Killed where it saves; slow: at every seam of an epoch."""
    # Each step is saved: the last checkpoint of an epoch lies at its end.
    choices = {"checkpoint_steps": 1, "dropout": 0.2, **choices}
    whole = make_run("whole", **choices)
    expected, _ = trained(whole)
    if "patience" in choices:
        assert 3 <= whole.progress.epoch < 9
    for method, call in kills:
        run = make_run("broken", resume=True, **choices)
        with killed(run, method, call):
            run.fit()
    resumed, _ = trained(make_run("broken", resume=True, **choices))
    assert same_bytes(expected, resumed)
    histories = [
        json.loads((run.directory.path / "history.json").read_text())
        for run in (whole, run)
    ]
    if choices.get("replicas", 1) == 1:
        assert histories[0] == histories[1]
    for ours, theirs in zip(*histories, strict=True):
        # Restored sums are spread over the replicas, and rounded.
        assert ours == pytest.approx(theirs, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("less", [{"epochs": 2}, {"steps": 10}])
def test_a_run_stopped_in_an_epoch_may_end_there(make_run, less):
    """No epoch is half trained and called done."""
    run = make_run(checkpoint_steps=1)
    batches = run.pipeline.report.batches
    with killed(run, "save", 2 * batches + 7):
        run.fit()
    done = run.trainer.optimizer.iterations.numpy()
    assert 2 * batches < done < 3 * batches
    shorter = make_run(resume=True, **less)
    shorter.fit()
    updates = shorter.trainer.optimizer.iterations.numpy()
    assert updates == (3 * batches if "epochs" in less else done - 1)
    assert len(shorter.progress.history) == 3


def test_another_corpus_is_not_trained_on(make_run, corpus, tmp_path):
    copied = shutil.copytree(corpus, tmp_path / "corpus")
    choices = {"corpus": str(copied), "resume": True}
    make_run(**choices).save()
    make_run(**choices)
    lines = (copied / "train.de").read_text("utf-8").splitlines()
    (copied / "train.de").write_text("\n".join(lines[::-1]) + "\n", "utf-8")
    settings = (tmp_path / "run" / "config.yaml").read_bytes()
    with pytest.raises(ValueError, match="Expected the pairs that the run"):
        make_run(**choices, epochs=5)
    # A refusal changes nothing: with the pairs put back, the run goes on.
    assert (tmp_path / "run" / "config.yaml").read_bytes() == settings
    (copied / "train.de").write_text("\n".join(lines) + "\n", "utf-8")
    make_run(**choices)
    (copied / "validation.de").write_text("null\n" * 7, "utf-8")
    with pytest.raises(ValueError, match="Expected the pairs that the run"):
        make_run(**choices)


@pytest.mark.slow
def test_the_average_is_kept_and_the_training_goes_on_without_it(make_run):
    plain = make_run("plain", select="last")
    averaged = make_run("averaged", select="last", ema=0.9)
    kept, _ = trained(plain)
    mean, _ = trained(averaged)
    assert not same_bytes(kept, mean)
    for ours, theirs in zip(
        averaged.model.trainable_variables,
        plain.model.trainable_variables,
        strict=True,
    ):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    optimizer = averaged.trainer.optimizer
    for expected, average in zip(
        optimizer._model_variables_moving_average, mean.values(), strict=True
    ):
        np.testing.assert_array_equal(expected.numpy(), average)


def test_the_last_epochs_are_averaged(make_run):
    run = make_run(average_last=2)
    generator, seen = np.random.default_rng(0), []

    def fit_epoch():
        values = [
            generator.normal(size=variable.shape).astype("float32")
            for variable in run.model.trainable_variables
        ]
        for variable, value in zip(
            run.model.trainable_variables, values, strict=True
        ):
            variable.assign(value)
        seen.append(values)
        return {}

    run._fit_epoch = fit_epoch
    run._validate = lambda logs: logs.update(val_bleu=0, val_loss=1.0)
    kept, _ = trained(run)
    assert len(seen) == 3
    for mean, *values in zip(kept.values(), *seen[-2:], strict=True):
        np.testing.assert_allclose(mean, np.mean(values, axis=0), atol=1e-6)


@pytest.mark.slow
def test_steps_alone_are_the_limit(make_run):
    run = make_run(steps=70, epochs=None)
    assert run.pipeline.report.batches * 3 < 70
    run.fit()
    assert run.trainer.optimizer.iterations.numpy() == 70
    assert float(run.trainer.optimizer.learning_rate) < 1e-5


@pytest.mark.slow
def test_a_finished_run_goes_on_with_more_epochs(make_run):
    make_run().fit()
    again = make_run(resume=True)
    again._fit_epoch = None  # It would be called.
    again.fit()
    longer = make_run(resume=True, epochs=4)
    longer.fit()
    assert longer.progress.epoch == 4
    assert len(longer.progress.history) == 4
    shorter = make_run(resume=True, epochs=2)
    shorter.fit()
    assert len(shorter.progress.history) == 4


@pytest.mark.parametrize(
    "select, logs, best",
    [
        ("bleu", [(0, 3.0), (0, 2.0), (0, 2.5)], 1),
        ("bleu", [(1, 3.0), (7, 4.0), (7, 4.0)], 1),
        ("loss", [(9, 3.0), (1, 2.0), (9, 2.5)], 1),
        ("last", [(9, 3.0), (1, 2.0), (0, 9.0)], 2),
    ],
)
def test_the_best_epoch_is_kept(make_run, select, logs, best):
    run = make_run(select=select)
    run._fit_epoch = dict
    values = iter(logs)

    def validate(logs):
        logs["val_bleu"], logs["val_loss"] = next(values)

    run._validate = validate
    run.fit()
    assert run.progress.best_epoch == best
    assert checkpoints.load(run.directory.weights)[1]["epoch"] == best


def test_patience_ends_the_run(make_run):
    run = make_run(epochs=20, patience=2)
    run._fit_epoch = dict
    values = iter([5, 9, 8, 9, 7])

    def validate(logs):
        logs["val_bleu"], logs["val_loss"] = next(values), 1.0

    run._validate = validate
    run.fit()
    assert run.progress.epoch == 4


def test_a_loss_that_is_not_finite_ends_the_run(make_run):
    run = make_run(learning_rate=1e30, schedule="constant", clip_norm=0.0)
    with pytest.raises(ValueError, match="lower learning_rate"):
        run.fit()


def test_a_mistake_does_not_lock_the_folder(make_run):
    with pytest.raises(ValueError, match="size='huge'"):
        make_run(size="huge", vocabulary_size=300)
    run = make_run()
    assert run.pipeline.report.pairs_kept == 100
    run.save()
    with pytest.raises(ValueError, match="add --resume"):
        make_run()
    with pytest.raises(ValueError, match="Expected max_tokens=64"):
        make_run(resume=True, max_tokens=65)


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("lost", ["checkpoint.npz", "weights.npz"])
def test_a_run_without_its_checkpoint_is_not_overwritten(
    make_run, lost, resume
):
    run = make_run(epochs=2)
    run.fit()
    run.directory.checkpoint.unlink()
    (run.directory.path / lost).unlink(missing_ok=True)
    kept = contents(run.directory.path)
    with pytest.raises(ValueError, match="without its checkpoint.npz"):
        make_run(seed=2, resume=resume)
    assert contents(run.directory.path) == kept


@pytest.mark.parametrize("resume", [False, True])
def test_scores_without_a_checkpoint_are_those_of_a_run(make_run, resume):
    run = make_run()
    run.directory.scores.write_text("{}")
    # The second stage of a distillation has lost its own.
    run.directory.teacher.path.mkdir()
    run.directory.teacher.checkpoint.touch()
    kept = contents(run.directory.path)
    with pytest.raises(ValueError, match="without its checkpoint.npz"):
        make_run(seed=2, resume=resume)
    assert contents(run.directory.path) == kept


@pytest.mark.parametrize("folder", ["run", "run/teacher"])
def test_weights_of_a_first_epoch_need_a_resume(make_run, tmp_path, folder):
    """A stop between its weights and its checkpoint leaves these."""
    make_run()
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / folder / "weights.npz").touch()
    kept = contents(tmp_path / "run")
    with pytest.raises(ValueError, match="without its checkpoint.npz"):
        make_run(seed=2)
    assert contents(tmp_path / "run") == kept
    make_run(resume=True)


def test_a_config_of_something_else_is_not_overwritten(make_run, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.yaml").write_text("port: 8080\n")
    with pytest.raises(ValueError, match="Expected the choices of a run"):
        make_run()
    assert (tmp_path / "run/config.yaml").read_text() == "port: 8080\n"


def test_one_process_at_a_time_trains_in_a_folder(make_run, tmp_path):
    run = make_run()
    with files.lock(run.directory.path):
        with pytest.raises(ValueError, match="nobody else writes in now"):
            loop.train(run.config)


@pytest.mark.parametrize(
    "choices",
    [
        {"epochs": 0},
        {"steps": 0},
        {"patience": -1},
        {"replicas": 0},
        {"num_beams": 0},
        {"length_penalty": -1.0},
        {"label_smoothing": 1.0},
        {"ema": -0.1},
        {"learning_rate": 0.0},
        {"seed": -1},
        {"max_piece_length": 0},
        {"patience": 1, "select": "last"},
        {"model_arguments": {"num_layers": 0}},
        {"model_arguments": {"num_layers": "two"}},
        {"model_arguments": {"vocabulary_size": 5}},
    ],
    ids=lambda choices: next(iter(choices)),
)
def test_choices_that_cannot_be_meant(make_run, choices):
    name = (
        "num_layers|model_arguments"
        if "model_arguments" in choices
        else next(iter(choices))
    )
    with pytest.raises(ValueError, match=f"Received: ({name})="):
        make_run(**choices)


@pytest.mark.parametrize(
    "choice, expected",
    [
        ({"clip_norm": float("nan")}, "a finite number"),
        ({"learning_rate": float("inf")}, "a finite number"),
        ({"dropout": "0.1"}, "of type float"),
        ({"epochs": 2.5}, "of type int"),
        ({"seed": True}, "of type int"),
        ({"precision": "bf16"}, "one of float32, bfloat16"),
        ({"schedule": "cosin"}, "one of cosine, inverse_sqrt, constant"),
        ({"select": "blue"}, "one of bleu, loss, last"),
    ],
    ids=lambda value: next(iter(value)),
)
def test_choices_of_another_type_or_name(choice, expected):
    ((name, value),) = choice.items()
    message = f"{name} to be {expected}. Received: {name}={value!r}"
    with pytest.raises(ValueError, match=message):
        config.resolve(config.TrainingConfig(**choice))


def test_no_pair_fits(make_run):
    with pytest.raises(ValueError, match="pairs that fit `max_length`=2"):
        make_run(max_length=2)
