"""Self-distillation: what a student starts from, trains on and goes on with."""

import dataclasses
import pathlib

import numpy as np
import pytest

from keras_attention import config
from keras_attention.data import corpora
from keras_attention.training import checkpoints, distillation, loop, runs

NUMBERS = "null ein zwei drei vier fünf sechs sieben acht neun".split()
ODD = ["", "zwei\r\ndrei", "vier\u2028fünf  sechs"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Digits and their names: a block of pairs and a half."""
    path = tmp_path_factory.mktemp("digits")
    generator = np.random.default_rng(0)
    for split, size in (("train", 45), ("validation", 6)):
        rows = [
            generator.integers(0, 10, generator.integers(1, 6))
            for _ in range(size)
        ]
        for language, names in (("en", range(10)), ("de", NUMBERS)):
            lines = [" ".join(str(names[d]) for d in row) for row in rows]
            text = "\n".join(lines) + "\n"
            (path / f"{split}.{language}").write_text(text, "utf-8")
    return path


class NoScores:
    """Validation without a translation."""

    def __init__(self, *args):
        pass

    def on_epoch_end(self, epoch, logs):
        logs["val_bleu"] = 0.0


@pytest.fixture
def choose(folder, tmp_path, monkeypatch):
    """The choices of a run of two epochs and two more."""
    monkeypatch.setattr(distillation, "BLOCK_SIZE", 30)
    monkeypatch.setattr(loop.callbacks, "TranslationScores", NoScores)

    def choose(name="run", **choices):
        sizes = {"embedding_dim": 16, "units": 16, "num_layers": 1}
        values = {
            "model": "lstm_encoder_decoder",
            "model_arguments": sizes,
            "corpus": str(folder),
            "output": str(tmp_path / name),
            "vocabulary_size": 320,
            "max_tokens": 64,
            "max_length": 64,
            "epochs": 2,
            "distillation_epochs": 2,
            "average_last": 1,
            "warmup_steps": 2,
            "num_beams": 2,
            "checkpoint_steps": 1,
            **choices,
        }
        return config.resolve(config.TrainingConfig(**values))

    return choose


@pytest.fixture
def calls(monkeypatch):
    """Sizes of the blocks that a teacher gets, who does not search."""
    sizes = []

    def translate(texts, truncate):
        assert truncate
        sizes.append(len(texts))
        return [*(text[::-1] for text in texts[:-3]), *ODD]

    monkeypatch.setattr(distillation.runs, "load_run", lambda path: translate)
    return sizes


def translations(run):
    paths = sorted((run.teacher.path / "translations").iterdir())
    return [path.read_text("utf-8").split("\n")[:-1] for path in paths]


def texts(corpus):
    return [
        (pair["source"].decode(), pair["target"].decode())
        for pair in corpus.splits["train"].as_numpy_iterator()
    ]


def same_arrays(first, second):
    """By their places: Keras numbers the optimizers of a process."""
    first, second = checkpoints.load(first)[0], checkpoints.load(second)[0]
    for one, other in zip(first.items(), second.items(), strict=True):
        np.testing.assert_array_equal(one[1], other[1], one[0])


@pytest.mark.slow
def test_a_teacher_translates_with_its_own_search(choose):
    choices = choose(epochs=1, distillation_epochs=1)
    run = loop.train(choices)
    translate = runs.load_run(run.teacher.path)
    assert translate.num_beams == 2
    sources = [source for source, _ in texts(corpora.load(choices.corpus))]
    expected = [
        translate(block, truncate=True)
        for block in (sources[:30], sources[30:])
    ]
    assert translations(run) == expected
    assert len({*expected[0]}) > 1


def test_the_student_goes_on_from_its_teacher(choose, calls):
    choices = choose(joint_vocabulary=False)
    run = loop.train(choices)
    assert calls == [30, 15]
    own = [line for block in translations(run) for line in block]
    assert own[27:30] == ["", "zwei drei", "vier fünf sechs"]
    corpus = corpora.load(choices.corpus)
    both = distillation.with_translations(corpus, run.teacher)
    assert both.sizes == {"train": 90, "validation": 6}
    assert texts(both) == [
        (source, target)
        for (source, theirs), ours in zip(texts(corpus), own, strict=True)
        for target in (theirs, ours or theirs)
    ]
    for side in ("source", "target"):
        expected = run.teacher.vocabulary(side).read_bytes()
        assert run.vocabulary(side).read_bytes() == expected
    assert runs.read_config(run).learning_rate == choices.learning_rate
    assert len(runs.read_history(run)) == 4

    # As if nothing had been trained since: it has its teacher's weights.
    run.checkpoint.unlink()
    student = loop.Run(dataclasses.replace(choices, resume=True))
    assert student.pipeline.report.pairs_kept == 90
    assert student.config.epochs == 2
    rate = student.trainer.optimizer._learning_rate
    assert rate.peak_learning_rate == choices.learning_rate / 2
    taught, _ = checkpoints.load(run.teacher.weights)
    weights = student.model.trainable_variables
    for expected, weight in zip(taught.values(), weights, strict=True):
        np.testing.assert_array_equal(expected, weight.numpy())


class Stop(Exception):
    """Stands for a kill."""


def stops(patch, owner, method, when):
    """Lets a function die at its first call of a kind."""
    original = getattr(owner, method)

    def call(*args):
        if when(*args):
            raise Stop
        return original(*args)

    patch.setattr(owner, method, call)


WRITES_SECOND_BLOCK = (
    distillation.checkpoints,
    "write_atomically",
    lambda path, _: path.name == "000001.txt",
)


def stop_at_step(epochs, epoch, step):
    """When a run of so many epochs saves there."""
    return lambda run: (
        (run.config.epochs, run.progress.epoch, run.progress.step)
        == (epochs, epoch, step)
    )


@pytest.mark.slow
def test_a_stopped_distillation_goes_on_exactly(choose, calls, monkeypatch):
    """Killed while the teacher trains, while it translates, after that."""
    choices = {"dropout": 0.2, "distillation_epochs": 3, "resume": True}
    whole = loop.train(choose("whole", **choices))
    assert calls == [30, 15]
    calls.clear()
    fitted = []
    fit_epoch = loop.Run._fit_epoch

    def fit(run):
        progress = run.progress
        fitted.append((run.config.epochs, progress.epoch, progress.step))
        return fit_epoch(run)

    monkeypatch.setattr(loop.Run, "_fit_epoch", fit)
    for stop in (
        (loop.Run, "save", stop_at_step(2, 1, 2)),
        WRITES_SECOND_BLOCK,
        (loop.Run, "save", stop_at_step(3, 1, 2)),
    ):
        with monkeypatch.context() as patch, pytest.raises(Stop):
            stops(patch, *stop)
            loop.train(choose("broken", **choices))
    run = loop.train(choose("broken", **choices))
    # Nothing is done twice but what was not saved.
    assert fitted == [
        *[(2, 0, 0), (2, 1, 0), (2, 1, 1)],
        *[(3, 0, 0), (3, 1, 0), (3, 1, 1), (3, 2, 0)],
    ]
    assert calls == [30, 15, 15]
    assert translations(run) == translations(whole)
    same_arrays(run.weights, whole.weights)
    same_arrays(run.checkpoint, whole.checkpoint)


@pytest.mark.slow
def test_what_may_change_and_what_may_not(choose, calls, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Stop):
        stops(patch, loop.Run, "save", stop_at_step(2, 1, 0))
        loop.train(choose())
    with pytest.raises(ValueError, match="Expected a new folder"):
        loop.train(choose())
    with pytest.raises(ValueError, match="Expected distillation_epochs=2"):
        loop.train(choose(distillation_epochs=0, resume=True))
    # While the teacher trains, the epochs may change.
    shorter = {"epochs": 1, "resume": True}
    with monkeypatch.context() as patch, pytest.raises(Stop):
        stops(patch, *WRITES_SECOND_BLOCK)
        loop.train(choose(**shorter))
    run = runs.RunDirectory(pathlib.Path(choose().output))
    assert runs.read_config(run).epochs == 1
    with pytest.raises(ValueError, match="Expected epochs=1, as the run began"):
        loop.train(choose(resume=True))
    # The teacher's search stays what it was; the exported one may change.
    monkeypatch.setattr(loop.Run, "_fit_epoch", lambda run: {"loss": 1.0})
    loop.train(choose(num_beams=5, **shorter))
    assert runs.read_config(run).num_beams == 5
    assert runs.read_config(run.teacher).num_beams == 2
    monkeypatch.setattr(loop.Run, "_fit_epoch", None)
    loop.train(choose(**shorter))
    assert calls == [30, 15, 15]


def test_other_texts_are_not_paired_with_its_translations(
    choose, calls, folder, tmp_path, monkeypatch
):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for path in folder.iterdir():
        (corpus / path.name).write_bytes(path.read_bytes())
    choices = {"epochs": 1, "resume": True, "corpus": str(corpus)}
    with monkeypatch.context() as patch, pytest.raises(Stop):
        stops(patch, *WRITES_SECOND_BLOCK)
        loop.train(choose(**choices))
    for language in ("en", "de"):
        path = corpus / f"train.{language}"
        lines = path.read_text("utf-8").splitlines()
        path.write_text("\n".join(lines[::-1]) + "\n", "utf-8")
    with pytest.raises(ValueError, match="Expected the pairs that the run"):
        loop.train(choose(**choices))


def test_a_student_without_translations_is_refused(choose):
    with pytest.raises(ValueError, match="Expected translations of 45 texts"):
        loop.Run(choose())
