"""A training is a list of stages: choices, a corpus, and first weights."""

import dataclasses
from collections.abc import Callable
from typing import Any

from keras_attention import config as configuration
from keras_attention.training import run_directory


@dataclasses.dataclass(frozen=True)
class Stage:
    """One of the trainings that make a run, one after the other.

    Args:
        config: every choice. `run.output` is the stage's folder. The last
            stage has the run's own, the others have folders in it whose names
            sort as the stages go.
        corpus: a function from the run's corpus to the stage's. When it is
            called, the stages before have ended.
        begin_from: where the weights begin: the folder of a run or of a stage
            before, or a file of weights. By default they are fresh.
    """

    config: configuration.TrainingConfig
    corpus: Callable[[Any], Any] = lambda corpus: corpus
    begin_from: str | None = None

    @property
    def directory(self) -> run_directory.RunDirectory:
        """The stage's folder."""
        return run_directory.at(self.config.run.output)


def remaining(stages: list[Stage]) -> list[Stage]:
    """The stages to go on with: the last one that has begun, and those after.

    The checkpoints tell. A stage before has ended, and its files may be gone.
    """
    begun = [
        index
        for index, stage in enumerate(stages)
        if stage.directory.checkpoint.is_file()
    ]
    return stages[max(begun, default=0) :]
