"""The contract of a task: what a training needs to know, and no more."""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class TestSet:
    """Examples to be scored on.

    Args:
        name: that of the split or of the file.
        sources: the texts that a model gets.
        references: the right answers, one for each source. For a language
            model, they are the sources themselves.
        target_language: the code of the references' language, if it is known.
        embedded: the name of the embedded corpus, if the set is from one.
    """

    name: str
    sources: Sequence[str]
    references: Sequence[str]
    target_language: str | None = None
    embedded: str | None = None


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The answers of a model to a test set, and its scores.

    Args:
        test_set: the questions.
        hypotheses: the answers, one for each source.
        scores: what `evaluate` prints and `scores.json` holds.
        seconds: how long the answers took.
    """

    test_set: TestSet
    hypotheses: Sequence[str]
    scores: dict
    seconds: float


class Task(abc.ABC):
    """What is learned: its examples, its loss, its scores and its report.

    `training` gets a task as an argument and never asks which one it is. A
    *servable* answers texts and is exported. The translator of a translation
    model is one.

    Attributes:
        name: the name by which the catalogue of models knows the task.
        columns: the titles of the columns of `samples`.
        compares: whether there are `difference` and `by_length`.
    """

    name: str
    columns: tuple[str, ...]
    compares: bool = False

    @abc.abstractmethod
    def load(self, choices) -> Any:
        """The corpus that the group `data` of a configuration names.

        Raises:
            ValueError: If the corpus is not there, or not sound.
        """

    @abc.abstractmethod
    def tokenizers(self, config, directory, corpus) -> tuple:
        """Learns the vocabularies from the training examples, once for a run.

        Args:
            config: every choice.
            directory: the run's folder, in which they are kept.
            corpus: what `load` returned.
        """

    @abc.abstractmethod
    def load_tokenizers(self, directory) -> tuple:
        """The tokenizers of a run.

        Raises:
            ValueError: If a vocabulary is missing or damaged.
        """

    @abc.abstractmethod
    def pipeline(self, config, corpus, tokenizers, replicas: int):
        """The batches: `training(epoch, start, limit)`, `validation()`,
        `report` and `checksums`, see `data.pipeline.Pipeline`."""

    @abc.abstractmethod
    def create_model(self, config, tokenizers):
        """The model that a configuration names, with fresh weights.

        Raises:
            ValueError: If the model does not take its `model_arguments`.
        """

    @abc.abstractmethod
    def measures(self, config):
        """The loss of each label, see `training.losses.TokenMeasures`."""

    @abc.abstractmethod
    def rank(self, logs: dict) -> tuple:
        """The rank of an epoch by its logs. The best epoch has the greatest."""

    @abc.abstractmethod
    def servable(
        self, config, model, tokenizers, stored_precision: str = "float32"
    ):
        """The servable of a model: it answers texts, and is exported."""

    @abc.abstractmethod
    def validation(
        self, config, corpus, servable
    ) -> Callable[[int, dict], None]:
        """A function of an epoch and its logs.

        It adds scores to the logs, and prints samples.
        """

    @abc.abstractmethod
    def held_out(self, corpus) -> TestSet:
        """The first test split of a corpus, or its validation split."""

    @abc.abstractmethod
    def read_test_set(
        self, source, reference, target_language: str | None = None
    ) -> TestSet:
        """A test set in files, one of which may be None.

        Args:
            source, reference: their paths.
            target_language: of the references, where it is known.

        Raises:
            ValueError: If a file that the task needs is missing, or if the
                files do not belong together.
        """

    @abc.abstractmethod
    def evaluate(self, servable, test_set: TestSet, **options) -> Evaluation:
        """Scores the answers of a servable.

        Args:
            servable: of this task.
            test_set: the questions.
            options: as for a call of the servable, and `tokenize` for BLEU.

        Returns:
            `Evaluation` whose scores hold `sentences`, their number.
        """

    def difference(
        self, baseline: Evaluation, evaluation: Evaluation, **options
    ) -> dict:
        """How much the scores are above a baseline's, and whether by chance.

        It is asked for where `compares` is True.
        """
        raise NotImplementedError

    def by_length(self, servable, evaluation: Evaluation, **options) -> list:
        """The scores of short and of long sources, for `scores_by_length`.

        It is asked for where `compares` is True.
        """
        raise NotImplementedError

    @abc.abstractmethod
    def samples(self, servable, evaluation: Evaluation) -> list[tuple]:
        """A few rows of `columns`, to look at."""

    @abc.abstractmethod
    def draw(self, folder, servable, evaluation: Evaluation) -> dict:
        """Draws a run's pictures into its folder: name -> path."""

    @abc.abstractmethod
    def card(self, config, scores: dict, servable) -> str:
        """The README that stands beside an exported model's versions."""

    @abc.abstractmethod
    def summary(self, evaluation: Evaluation) -> str:
        """The scores in one line."""
