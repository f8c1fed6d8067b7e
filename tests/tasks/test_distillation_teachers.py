"""Several runs translate the texts that a student learns from."""

import json
import shutil

import numpy as np
import pytest
import small_runs

from keras_attention import cli, config, runs, tasks
from keras_attention.data import corpora
from keras_attention.tasks import distillation, translation
from keras_attention.training import checkpoints, loop, parts, run_directory

SIZES = {"embedding_dim": 16, "units": 16}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Digits and their names: a block of pairs and a half."""
    path = tmp_path_factory.mktemp("digits")
    small_runs.write_digits(path, train=45, validation=6)
    return path


@pytest.fixture
def choose(folder, tmp_path, monkeypatch):
    """The choices of a run of one epoch."""
    monkeypatch.setattr(distillation, "BLOCK_SIZE", 30)

    def choose(name, **choices):
        values = {
            "model": "rnn_encoder_decoder",
            "model_arguments": SIZES,
            "corpus": str(folder),
            "output": str(tmp_path / name),
            "vocabulary_size": 320,
            "max_tokens": 64,
            "max_length": 16,
            "epochs": 1,
            "warmup_steps": 2,
            "num_beams": 2,
            "replicas": 1,
            **choices,
        }
        return config.resolve(config.make(**values))

    return choose


class Unscored(translation.Translation):
    """Translation whose validation translates nothing."""

    def validation(self, choices, corpus, servable):
        return lambda epoch, logs: logs.update(val_bleu=0.0)


def blocks(run):
    paths = sorted((run.path / "translations").glob("*.txt"))
    return [path.read_text("utf-8").split("\n")[:-1] for path in paths]


def with_random_weights(run, seed):
    """They write texts, where a short training has learned to write none."""
    generator = np.random.default_rng(seed)
    with np.load(run.weights) as arrays:
        values = dict(arrays)
    for name, value in values.items():
        if value.dtype == "float32":
            drawn = generator.normal(scale=0.5, size=value.shape)
            values[name] = drawn.astype("float32")
    np.savez(run.weights, **values)
    return run


@pytest.mark.slow
def test_runs_translate_together(choose, folder):
    task = Unscored()
    teachers = [
        with_random_weights(
            loop.train(choose(f"seed_{seed}", seed=seed), task).directory, seed
        )
        for seed in (1, 2)
    ]
    names = ", ".join(str(teacher.path) for teacher in teachers)
    choices = {
        "init": str(teachers[0].path),
        "distillation_epochs": 2,
        "distillation_teachers": names,
    }
    with small_runs.killed("translations/000001.txt"):
        loop.train(choose("student", **choices), task)
    run = loop.train(choose("student", **choices), task, True).directory

    # The ensemble wrote the second stage's targets. Neither did so alone.
    corpus = corpora.load(str(folder), "en", "de")
    sources = list(corpus.texts("train", "source"))
    together = runs.load_ensemble([one.path for one in teachers])
    halves = sources[:30], sources[30:]
    expected = [together(half, truncate=True) for half in halves]
    assert blocks(run) == expected
    for teacher in teachers:
        alone = runs.load(teacher.path)
        assert [alone(half, truncate=True) for half in halves] != expected

    # There is no other stage, and this one has begun with the weights of init.
    assert not (run.path / "teacher").exists()
    assert len(run_directory.read_history(run)) == 2
    (stage,) = distillation.stages(choose("student", **choices), task)
    both = stage.corpus(corpus)
    assert both.sizes["train"] == 90
    run.checkpoint.unlink()
    student = parts.build(stage.config, task, run, both)
    loop.begin(student, stage.begin_from)
    taught, _ = checkpoints.load(teachers[0].weights)
    weights = student.model.trainable_variables
    for one, weight in zip(taught.values(), weights, strict=True):
        np.testing.assert_array_equal(one, weight.numpy())

    # What others wrote is not taken for theirs.
    choices["distillation_teachers"] = str(teachers[1].path)
    (stage,) = distillation.stages(choose("student", **choices), task)
    with pytest.raises(ValueError, match="by other distillation_teachers"):
        stage.corpus(corpus)
    choices.pop("init")
    first, second = distillation.stages(choose("other", **choices), task)
    assert first.config.training.distillation_teachers is None
    assert second.begin_from == str(first.directory.path)


@pytest.fixture
def teacher(choose, tmp_path):
    """The folder of a run, as far as its files are looked at."""
    run = run_directory.start(choose("seed_1"))
    run.weights.write_bytes(b"")
    run.vocabulary("joint").write_bytes(b"pieces")
    return run.path


def stages(choose, *teachers, **choices):
    names = ",".join(str(teacher) for teacher in teachers)
    choices = {"distillation_epochs": 1} | choices
    chosen = choose("student", distillation_teachers=names, **choices)
    return tasks.get("translation").stages(chosen)


def test_teachers_are_finished_runs_of_one_vocabulary(choose, teacher):
    assert len(stages(choose, teacher)) == 2
    assert len(stages(choose, teacher, init=str(teacher))) == 1
    other = teacher.with_name("seed_2")
    with pytest.raises(ValueError, match="seed_2 holds neither a run"):
        stages(choose, teacher, other)
    shutil.copytree(teacher, other)
    assert len(stages(choose, teacher, other)) == 2
    (other / "vocabulary.joint.model").write_bytes(b"other pieces")
    with pytest.raises(ValueError, match="seed_2 has another vocabulary"):
        stages(choose, teacher, other)
    (other / "weights.npz").unlink()
    with pytest.raises(ValueError, match="seed_2 has no weights.npz"):
        stages(choose, teacher, other)


def test_teachers_translate_this_direction(choose, teacher):
    with pytest.raises(ValueError, match="en to de, and this run de to en"):
        stages(choose, teacher, source="de", target="en")


def test_teachers_need_epochs(choose, teacher):
    with pytest.raises(ValueError, match="Give distillation_epochs, too"):
        stages(choose, teacher, distillation_epochs=0)


def test_other_texts_are_not_theirs(choose, teacher, folder, tmp_path):
    """Translations of a run that has no checkpoint yet."""
    *_, stage = stages(choose, teacher, init=str(teacher))
    translations = tmp_path / "student" / "translations"
    translations.mkdir(parents=True)
    for number, count in enumerate([30, 15]):
        (translations / f"{number:06d}.txt").write_text("acht\n" * count)
    corpus = corpora.load(str(folder), "en", "de")
    with pytest.raises(ValueError, match="or of other texts"):
        stage.corpus(corpus)  # Nobody says whose they are.
    origin = {"teachers": [str(teacher)], "texts": 0}
    (translations / "origin.json").write_text(json.dumps(origin))
    with pytest.raises(ValueError, match="or of other texts"):
        stage.corpus(corpus)


def test_a_teacher_is_known_by_its_files(choose, teacher, folder, tmp_path):
    """They may have another path, and may be gone in the end."""

    def student_of(path):
        (stage,) = stages(choose, path, init=str(path))
        return stage.corpus(corpora.load(str(folder), "en", "de"))

    translations = tmp_path / "student" / "translations"
    translations.mkdir(parents=True)
    with pytest.raises(Exception):  # noqa: B017 It has no weights to load.
        student_of(teacher)
    assert (translations / "origin.json").is_file()
    for number, count in enumerate([30, 15]):
        (translations / f"{number:06d}.txt").write_text("acht\n" * count)
    elsewhere = teacher.with_name("elsewhere")
    shutil.copytree(teacher, elsewhere)
    assert student_of(elsewhere).sizes["train"] == 90
    (elsewhere / "weights.npz").write_bytes(b"others")
    with pytest.raises(ValueError, match="by other distillation_teachers"):
        student_of(elsewhere)
    (teacher / "weights.npz").unlink()
    assert student_of(teacher).sizes["train"] == 90
    (elsewhere / "weights.npz").unlink()
    with pytest.raises(ValueError, match="by other distillation_teachers"):
        student_of(elsewhere)


@pytest.mark.parametrize("names", [",", " , "])
def test_teachers_that_are_none_are_refused(choose, names):
    with pytest.raises(ValueError, match="names no run"):
        choose("student", distillation_epochs=1, distillation_teachers=names)


def test_the_command_says_at_once_that_a_teacher_is_not_there(tmp_path):
    flags = ["--model", "luong", "--distillation_epochs", "1"]
    teachers = f"--distillation_teachers={tmp_path / 'gone'}"
    with pytest.raises(SystemExit, match="gone has no config.yaml"):
        cli.main(["train", *flags, teachers, f"--output={tmp_path / 'run'}"])
    assert not (tmp_path / "run").exists()
