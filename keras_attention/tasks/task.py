"""The contract of a task: what training, evaluation and export need."""

import abc
import dataclasses
from collections.abc import Callable, Sequence

from keras_attention.data import columns, corpora, pipeline
from keras_attention.training import objectives
from keras_attention.training.stages import Stage

# Of these, a card shows the first ones that are short.
_NUM_EXAMPLES = 10


@dataclasses.dataclass(frozen=True)
class TestSet:
    """Examples to be scored on.

    Args:
        name: that of the split or of the file.
        sources: the rows that a model gets: texts, tuples of texts, or lists
            of numbers.
        references: the right answers, one for each source. For a language
            model, they are the sources themselves.
        target_language: the code of the references' language, if it is known.
        embedded: the name of the embedded corpus that the set is from, if
            scores depend on it. Only language modelling sets it, as it knows
            the entropy of its sentences.
    """

    name: str
    sources: Sequence[str] | Sequence[tuple[str, ...]] | Sequence[list]
    references: Sequence[str]
    target_language: str | None = None
    embedded: str | None = None

    @property
    def examples(self) -> list:
        """The first rows, without those of numbers, which nobody reads."""
        rows = self.sources[:_NUM_EXAMPLES]
        return [row for row in rows if not isinstance(row, list)]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The answers of a model to a test set, and its scores.

    Args:
        test_set: the questions.
        hypotheses: the answers, one for each source.
        scores: what was measured. `evaluate` prints it beside the speed, and
            `scores.json` holds it beside the split and the search.
        seconds: how long the answers took.
    """

    test_set: TestSet
    hypotheses: Sequence[str]
    scores: dict
    seconds: float


class Task(abc.ABC):
    """What is learned: its examples, its loss, its scores and its report.

    `training` gets a task as an argument and never asks which one it is.

    A *servable* answers texts and is exported: a `serving.text_model.TextModel`
    with a `graph`. `Translator` is the servable of translation. What
    `serving.loading.load` returns answers alike.

    The methods stand in the order in which they are called. A training calls
    all of them but `read_test_set` and `difference`, which are for
    `keras-attention evaluate`.

    Attributes:
        name: the name by which the catalogue of models knows the task.
        columns: those of its corpora's rows, in the order of the tokenizers.
        headings: the titles of the table of `samples`.
        compares: whether there are `difference` and `by_length`.

    `cross_entropy` is the class of the objective of a model that has none of
    its own.
    """

    name: str
    columns: columns.Columns
    headings: tuple[str, ...]
    compares: bool = False
    cross_entropy: type = objectives.TokenObjective

    def stages(self, config) -> list[Stage]:
        """The trainings that make a run, one after the other."""
        return [Stage(config, begin_from=config.run.init)]

    # Building: for `training.parts`, and for a run that is loaded.
    @abc.abstractmethod
    def load(self, choices) -> corpora.Corpus:
        """The corpus that the group `data` of a configuration names.

        Raises:
            ValueError: If the corpus is not there, or not sound.
        """

    @abc.abstractmethod
    def tokenizers(self, choices, directory, corpus) -> tuple:
        """Learns the vocabularies from the training examples, once for a run.

        The first of several workers calls it. The others then call
        `load_tokenizers`.

        Args:
            choices: the group `vocabulary` of a configuration.
            directory: the run's folder, in which they are kept.
            corpus: what `load` returned.
        """

    @abc.abstractmethod
    def load_tokenizers(self, directory) -> tuple:
        """The tokenizers of a run.

        Raises:
            ValueError: If a vocabulary is missing or damaged.
        """

    def encoders(self, tokenizers) -> dict:
        """The tokenizer of each text column, and the classes of a class."""
        return dict(zip(self.columns, tokenizers, strict=True))

    def inputs(self, model: str) -> Callable | None:
        """A function of a block that makes a model's inputs of its columns.

        By default they are the columns, see `data.pipeline.Pipeline`.

        Args:
            model: its name.
        """
        return None

    def pipeline(self, config, corpus, tokenizers, replicas: int):
        """The batches of each epoch, a `data.pipeline.Pipeline`."""
        return pipeline.Pipeline(
            corpus,
            self.columns,
            self.encoders(tokenizers),
            max_length=config.data.max_length,
            max_tokens=config.data.max_tokens,
            seed=config.run.seed,
            subword_sampling=config.vocabulary.subword_sampling,
            replicas=replicas,
            inputs=self.inputs(config.architecture.model),
        )

    @abc.abstractmethod
    def create_model(self, config, tokenizers):
        """The model that a configuration names, with fresh weights.

        Raises:
            ValueError: If the model does not take its `model_arguments`.
        """

    def objective(self, config, model):
        """What training lowers, see `training.objectives`.

        A model whose paper trains it otherwise has an `objective`. All others
        learn by cross-entropy, with the configuration's label smoothing. The
        logs must have what `rank` and `validation` read.

        Args:
            config: every choice.
            model: what `create_model` returned.
        """
        # Read from the class: a method then takes the model as first argument.
        own = type(model).objective
        return own or self.cross_entropy(config.optimizer.label_smoothing)

    @abc.abstractmethod
    def servable(
        self, config, model, tokenizers, stored_precision: str = "float32"
    ):
        """The servable of a model: it answers texts, and is exported."""

    # Training: for `training.loop`, after each epoch.
    @abc.abstractmethod
    def rank(self, logs: dict) -> tuple:
        """The rank of an epoch by its logs. The best epoch has the greatest."""

    @abc.abstractmethod
    def validation(
        self, choices, corpus, servable
    ) -> Callable[[int, dict], None]:
        """A function of an epoch and its logs.

        It may add scores to the logs, and prints samples.

        Args:
            choices: the group `data` of a configuration.
            corpus: what `load` returned.
            servable: of this task.
        """

    # Scoring: for the report, and for `keras-attention evaluate`.
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
            options: `truncate`, as for a call of the servable. Translation
                also takes those of the search, `tokenize` for BLEU, and
                `rouge`.

        Returns:
            `Evaluation` whose scores hold `sentences`, their number, and
            `truncated` if texts were cut.

        Raises:
            ValueError: If a text is too long and not cut.
        """

    def difference(
        self, baseline: Evaluation, evaluation: Evaluation, **options
    ) -> dict:
        """How much the scores are above a baseline's, and whether by chance.

        It is asked for where `compares` is True.

        Args:
            baseline, evaluation: of two models, on the same test set.
            options: `tokenize`, as for `evaluate`.
        """
        raise NotImplementedError

    def by_length(self, servable, evaluation: Evaluation, **options) -> list:
        """The scores of short and of long sources.

        It is asked for where `compares` is True.

        Args:
            servable: of this task, whose tokens are counted.
            evaluation: of any model of this task.
            options: `tokenize`, as for `evaluate`, and `num_samples`, the draws
                for the interval of each score.

        Returns:
            The rows that `plotting.scores_by_length` draws.
        """
        raise NotImplementedError

    # Report: for `training.report`.
    @abc.abstractmethod
    def samples(self, servable, evaluation: Evaluation) -> list[tuple]:
        """A few rows under `headings`, to look at."""

    @abc.abstractmethod
    def draw(self, folder, servable, evaluation: Evaluation) -> dict:
        """Draws a run's pictures into its folder: name -> path."""

    @abc.abstractmethod
    def summary(self, evaluation: Evaluation) -> str:
        """The scores in one line."""

    # Export: for the report, and for `keras-attention export`.
    @abc.abstractmethod
    def card(self, config, scores: dict, servable) -> str:
        """The README that stands beside an exported model's versions."""
