"""Self-distillation: what a student starts from, trains on and goes on with."""

import shutil

import numpy as np
import pytest
import small_runs

from keras_attention import config, runs
from keras_attention.data import corpora
from keras_attention.tasks import distillation, translation
from keras_attention.training import (
    checkpoints,
    loop,
    parts,
    run_directory,
    trainer,
)

ODD = ["", "zwei\r\ndrei", "vier\u2028fünf  sechs"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Digits and their names: a block of pairs and a half."""
    path = tmp_path_factory.mktemp("digits")
    small_runs.write_digits(path, train=45, validation=6)
    return path


class Unscored(translation.Translation):
    """Translation whose validation translates nothing."""

    def validation(self, choices, corpus, servable):
        return lambda epoch, logs: logs.update(val_bleu=0.0)


class Unsearched(Unscored):
    """Its teacher translates without a search.

    Attributes:
        calls: sizes of the blocks that the teacher gets.
    """

    def __init__(self):
        self.calls = []

    def servable(self, config, model, tokenizers, stored_precision="float32"):
        def translate(texts, truncate):
            assert truncate
            self.calls.append(len(texts))
            return [*(text[::-1] for text in texts[:-3]), *ODD]

        return translate


@pytest.fixture
def choose(folder, tmp_path, monkeypatch):
    """The choices of a run of two epochs and two more."""
    monkeypatch.setattr(distillation, "BLOCK_SIZE", 30)

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
            "replicas": 1,
            **choices,
        }
        return config.resolve(config.make(**values))

    return choose


@pytest.fixture
def task():
    return Unsearched()


def translations(run):
    paths = sorted((teacher_of(run).path / "translations").iterdir())
    return [path.read_text("utf-8").split("\n")[:-1] for path in paths]


def teacher_of(run):
    return run_directory.at(run.path / "teacher")


def load(folder):
    return corpora.load(str(folder), "en", "de")


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
def test_a_teacher_translates_with_its_own_search(choose, folder):
    choices = choose(epochs=1, distillation_epochs=1)
    run = loop.train(choices, Unscored()).directory
    translate = runs.load(teacher_of(run).path)
    assert translate.num_beams == 2
    sources = [source for source, _ in texts(load(folder))]
    expected = [
        translate(block, truncate=True)
        for block in (sources[:30], sources[30:])
    ]
    assert translations(run) == expected
    assert len({*expected[0]}) > 1


@pytest.mark.slow
def test_the_student_goes_on_from_its_teacher(choose, task, folder):
    choices = choose(joint_vocabulary=False)
    trained = loop.train(choices, task)
    # A card says how the run was trained, not its last stage.
    assert trained.config.training == choices.training
    assert trained.config.optimizer == choices.optimizer
    run = trained.directory
    assert task.calls == [30, 15]
    own = [line for block in translations(run) for line in block]
    assert own[27:30] == ["", "zwei drei", "vier fünf sechs"]
    corpus = load(folder)
    both = distillation.with_translations(corpus, teacher_of(run))
    assert both.sizes == {"train": 90, "validation": 6}
    assert texts(both) == [
        (source, target)
        for (source, theirs), ours in zip(texts(corpus), own, strict=True)
        for target in (theirs, ours or theirs)
    ]
    for side in ("source", "target"):
        expected = teacher_of(run).vocabulary(side).read_bytes()
        assert run.vocabulary(side).read_bytes() == expected
    rate = choices.optimizer.learning_rate
    assert run_directory.read_config(run).optimizer.learning_rate == rate
    for one in (teacher_of(run), run):
        assert len(run_directory.read_history(one)) == 2

    # As if nothing had been trained since: it has its teacher's weights.
    run.checkpoint.unlink()
    stage = distillation.stages(choices, task)[1]
    student = parts.build(stage.config, task, run, both)
    loop.begin(student, stage.begin_from)
    assert student.pipeline.report.kept == 90
    assert student.config.training.epochs == 2
    optimizer = student.trainer.optimizer
    optimizer.iterations.assign(choices.optimizer.warmup_steps - 1)
    assert float(optimizer.learning_rate) == pytest.approx(rate / 2)
    taught, _ = checkpoints.load(teacher_of(run).weights)
    weights = student.model.trainable_variables
    for expected, weight in zip(taught.values(), weights, strict=True):
        np.testing.assert_array_equal(expected, weight.numpy())


TEACHER, STUDENT = "teacher/checkpoint.npz", "broken/checkpoint.npz"
SECOND_BLOCK = "translations/000001.txt"


@pytest.fixture
def fitted(monkeypatch):
    """Of each call of `fit`: the updates before it, and its batches."""
    calls, fit = [], trainer.Trainer.fit

    def recorded(self, batches, **options):
        updates = int(self.optimizer.iterations.numpy())
        calls.append((updates, int(batches.cardinality())))
        return fit(self, batches, **options)

    monkeypatch.setattr(trainer.Trainer, "fit", recorded)
    return calls


@pytest.mark.slow
def test_a_stopped_distillation_goes_on_exactly(choose, task, fitted):
    """Killed while the teacher trains, while it translates, after that."""
    choices = {"dropout": 0.2, "distillation_epochs": 3}
    whole = loop.train(choose("whole", **choices), task).directory
    assert task.calls == [30, 15]
    (_, teacher), _, (_, student), *_ = fitted
    assert fitted == [
        *[(0, teacher), (teacher, teacher)],
        *[(0, student), (student, student), (2 * student, student)],
    ]
    fitted.clear()
    task.calls.clear()
    for stop in (
        # An epoch saves after each batch and once more: this is the second
        # batch of the second epoch.
        (TEACHER, teacher + 3),
        (SECOND_BLOCK, 1),
        (STUDENT, student + 3),
    ):
        with small_runs.killed(*stop):
            loop.train(choose("broken", **choices), task, resume=True)
    run = loop.train(choose("broken", **choices), task, resume=True).directory
    # Nothing is done twice but what was not saved.
    assert fitted == [
        *[(0, teacher), (teacher, teacher), (teacher + 1, teacher - 1)],
        *[(0, student), (student, student), (student + 1, student - 1)],
        (2 * student, student),
    ]
    assert task.calls == [30, 15, 15]
    assert translations(run) == translations(whole)
    same_arrays(run.weights, whole.weights)
    same_arrays(run.checkpoint, whole.checkpoint)


@pytest.mark.slow
def test_what_may_change_and_what_may_not(choose, task, fitted):
    def train(resume=False, **choices):
        return loop.train(choose(**choices), task, resume).directory

    with small_runs.killed("teacher/history.json", 2):
        train()
    with pytest.raises(ValueError, match="holds a run already"):
        train()
    with pytest.raises(ValueError, match="Expected distillation_epochs=2"):
        train(resume=True, distillation_epochs=0)
    # While the teacher trains, the epochs may change.
    with small_runs.killed(SECOND_BLOCK):
        train(resume=True, epochs=1)
    run = run_directory.at(choose().run.output)
    assert run_directory.read_config(run).training.epochs == 1
    with pytest.raises(ValueError, match="Expected epochs=1, as the run began"):
        train(resume=True)
    # The teacher's search stays what it was; the exported one may change.
    train(resume=True, epochs=1, num_beams=5)
    assert run_directory.read_config(run).search.num_beams == 5
    assert run_directory.read_config(teacher_of(run)).search.num_beams == 2
    done = len(fitted)
    train(resume=True, epochs=1)
    assert len(fitted) == done
    assert task.calls == [30, 15, 15]


@pytest.fixture
def moving(folder, tmp_path):
    """A corpus of its own, which may be moved and changed."""
    return shutil.copytree(folder, tmp_path / "corpus")


@pytest.mark.slow
def test_other_texts_are_not_paired_with_its_translations(
    choose, task, moving, tmp_path
):
    """Nor does the refusal change what the run is; it may have moved."""
    choices = {"epochs": 1, "distillation_epochs": 1}
    with small_runs.killed(SECOND_BLOCK):
        loop.train(choose(corpus=str(moving), **choices), task)
    moved = moving.rename(tmp_path / "elsewhere")
    choices = choose(corpus=str(moved), **choices)
    run = run_directory.at(choices.run.output)
    teacher = teacher_of(run)
    kept = run.config.read_bytes(), teacher.config.read_bytes()
    turned = [moved / "train.en", moved / "train.de"]
    contents = [path.read_text("utf-8") for path in turned]
    for path, content in zip(turned, contents, strict=True):
        lines = content.splitlines()
        path.write_text("\n".join(lines[::-1]) + "\n", "utf-8")
    with pytest.raises(ValueError, match="no longer gives the examples"):
        loop.train(choices, task, resume=True)
    assert (
        run.config.read_bytes(),
        teacher_of(run).config.read_bytes(),
    ) == kept
    for path, content in zip(turned, contents, strict=True):
        path.write_text(content, "utf-8")
    loop.train(choices, task, resume=True)
    assert task.calls == [30, 15, 15]
    for directory in (run, teacher_of(run)):
        place = run_directory.read_config(directory).data.corpus
        assert place == str(moved)


def test_a_student_without_translations_is_refused(choose, folder):
    run = run_directory.start(choose())
    with pytest.raises(ValueError, match="0 files .* for 45 texts"):
        distillation.with_translations(load(folder), teacher_of(run))
