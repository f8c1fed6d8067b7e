"""A run of two stages goes on where it was stopped, within and between them."""

import dataclasses

import pytest
import small_runs

from keras_attention import config
from keras_attention.tasks import translation
from keras_attention.training import (
    checkpoints,
    loop,
    run_directory,
    trainer,
)
from keras_attention.training.stages import Stage, remaining


class CopiesFirst(translation.Translation):
    """Copies its sources for two epochs, and then translates them.

    Attributes:
        corpora: how often a stage has asked for its corpus.
    """

    corpora = 0

    def stages(self, config_):
        folder = f"{config_.run.output}/copying"
        return [
            Stage(
                config.replace(config_, output=folder, epochs=2),
                corpus=self.copies,
            ),
            Stage(config_, begin_from=folder),
        ]

    def copies(self, corpus):
        self.corpora += 1
        splits = {
            name: pairs.map(lambda pair: pair | {"target": pair["source"]})
            for name, pairs in corpus.splits.items()
        }
        source, _ = corpus.languages
        return dataclasses.replace(
            corpus, splits=splits, languages=(source, source)
        )

    def validation(self, choices, corpus, servable):
        return lambda epoch, logs: logs.update(val_bleu=0.0)


@pytest.fixture
def choose(tmp_path):
    small_runs.write_digits(tmp_path, train=60, validation=6)

    def choose(name, **choices):
        choices = {
            "corpus": str(tmp_path),
            "output": str(tmp_path / name),
            "model_arguments": small_runs.SIZES,
            "vocabulary_size": 320,
            "max_tokens": 64,
            "epochs": 2,
            "dropout": 0.2,
            "warmup_steps": 5,
            "checkpoint_steps": 1,
            "replicas": 1,
            **choices,
        }
        return config.resolve(config.make(**choices))

    return choose


@pytest.mark.slow
def test_a_run_of_two_stages_goes_on_exactly(choose, capsys):
    """Stopped within and behind the first stage, and within the second."""
    whole = loop.train(choose("whole"), CopiesFirst()).directory
    printed = capsys.readouterr().out
    assert "begins with" in printed and "whole/copying/weights.npz" in printed
    task, choices = CopiesFirst(), choose("broken")
    for stop in (
        ("copying/checkpoint.npz", 3),
        ("broken/config.yaml", 2),
        ("broken/checkpoint.npz", 3),
    ):
        with small_runs.killed(*stop):
            loop.train(choices, task, resume=True)
    run = loop.train(choices, task, resume=True).directory
    # The first stage was entered until the second one had a checkpoint.
    assert task.corpora == 3
    folders = [
        [run_directory.at(one.path / "copying"), one] for one in (run, whole)
    ]
    for stage, other in zip(*folders, strict=True):
        for name in ("weights", "checkpoint"):
            arrays, meta = checkpoints.load(getattr(stage, name))
            expected, expected_meta = checkpoints.load(getattr(other, name))
            assert meta == expected_meta
            pairs = zip(arrays.items(), expected.items(), strict=True)
            for (key, array), (_, same) in pairs:
                assert array.tobytes() == same.tobytes(), key
        assert len(run_directory.read_history(stage)) == 2
    # The folder of the run keeps its choices, that of a stage its own.
    assert run_directory.read_config(run) == choices
    assert run_directory.read_config(folders[0][0]).training.epochs == 2


def test_a_run_that_stops_in_its_first_stage_keeps_its_new_epochs(
    choose, monkeypatch
):
    """Its first step is saved; no step is traced."""

    def step(self, batches, callbacks, **options):
        callbacks[-1].function(1)
        raise small_runs.Stop

    monkeypatch.setattr(trainer.Trainer, "fit", step)
    for epochs in (2, 5):
        choices = choose("run", epochs=epochs)
        with pytest.raises(small_runs.Stop):
            loop.train(choices, CopiesFirst(), resume=True)
        directory = run_directory.at(choices.run.output)
        assert (directory.path / "copying" / "checkpoint.npz").is_file()
        assert run_directory.read_config(directory) == choices


def test_a_stage_with_a_checkpoint_ends_those_before(choose):
    choices = choose("run")
    stages = CopiesFirst().stages(choices)
    assert remaining(stages) == stages
    for stage, left in zip(stages, (2, 1), strict=True):
        stage.directory.path.mkdir(parents=True, exist_ok=True)
        stage.directory.checkpoint.touch()
        assert remaining(stages) == stages[-left:]


@pytest.mark.parametrize(
    "resume, problem", [(False, "Add --resume"), (True, "seed=1, as the run")]
)
def test_another_run_does_not_overwrite_a_first_stage(choose, resume, problem):
    """Its checkpoint is the only one, as the second stage has not begun."""
    choices = choose("run")
    run_directory.start(choices)
    first = CopiesFirst().stages(choices)[0]
    run_directory.start(first.config).checkpoint.touch()
    with pytest.raises(ValueError, match=problem):
        loop.train(choose("run", seed=2), CopiesFirst(), resume)
    assert first.directory.checkpoint.is_file()
