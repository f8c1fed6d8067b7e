"""Texts with labels: which label a text has, by accuracy and macro-F1."""

import itertools
import textwrap
import time

from keras_attention import files, plotting
from keras_attention.data import columns, corpora
from keras_attention.data.embedded import colours, referents
from keras_attention.data.readers import labelled_texts, labels, lines
from keras_attention.serving import kinds, labeller
from keras_attention.tasks import models, run_cards, vocabularies
from keras_attention.tasks.task import Evaluation, Task, TestSet
from keras_attention.training import objectives

NUM_SAMPLES = 5


class Classification(Task):
    """Gives a text its label.

    Attributes:
        embedded: the name of a corpus -> the module that draws it.
        kind: what answers.
    """

    name = "classification"
    columns = {"label": columns.Class(), "source": columns.Text()}
    headings = ("text", "label", "right label")
    cross_entropy = objectives.LabelObjective
    embedded = {"referents": referents, "colours": colours}
    kind = kinds.CLASSIFICATION

    def load(self, choices):
        return corpora.Corpus.of_rows(
            choices.corpus, self.columns, *self.rows(choices)
        )

    def rows(self, choices) -> tuple[dict[str, list[tuple]], int]:
        """Split -> its rows, and how many were left out without a label.

        Args:
            choices: the group `data` of a configuration.
        """
        if choices.corpus in self.embedded:
            return self.embedded[choices.corpus].generate(), 0
        names = (choices.columns or "").split(",")
        return labelled_texts.load(
            choices.corpus,
            len(self.texts),
            [name.strip() for name in names] if choices.columns else (),
            any(self.columns[name].sentences for name in self.texts),
        )

    @property
    def texts(self) -> list[str]:
        """The names of the columns that a model reads."""
        return [
            name
            for name, column in self.columns.items()
            if isinstance(column, columns.Text)
        ]

    @property
    def counted(self) -> str:
        """What a test set has many of."""
        return "texts" if len(self.texts) == 1 else "pairs"

    @property
    def label(self) -> str:
        """The name of the column of labels."""
        (label,) = [
            name
            for name, column in self.columns.items()
            if isinstance(column, columns.Class)
        ]
        return label

    def tokenizers(self, choices, directory, corpus):
        def joint():
            texts = (corpus.texts("train", name) for name in self.texts)
            return itertools.chain.from_iterable(texts)

        vocabularies.learn(directory, {"joint": joint}, choices)
        self.write_classes(directory, corpus)
        return self.load_tokenizers(directory)

    def write_classes(self, directory, corpus) -> None:
        """Writes the labels of a run, once."""
        # The labels of a run that goes on are those that it began with.
        if not directory.checkpoint.is_file():
            known = sorted(set(corpus.texts("train", self.label)))
            classes = "".join(f"{label}\n" for label in known)
            files.write_atomically(directory.classes, classes.encode())

    def load_tokenizers(self, directory):
        """The tokenizer, and the labels."""
        classes = self.load_classes(directory)
        return vocabularies.load(directory, "joint"), classes

    def load_classes(self, directory) -> list[str]:
        """The labels of a run.

        Raises:
            ValueError: If they are missing.
        """
        if not directory.classes.is_file():
            raise ValueError(
                f"{directory.classes} is missing. `keras-attention train` "
                "writes the labels of a run into it."
            )
        return list(lines.read_lines(directory.classes))

    def encoders(self, tokenizers):
        tokenizer, classes = tokenizers
        return {self.label: classes, **dict.fromkeys(self.texts, tokenizer)}

    def create_model(self, config, tokenizers):
        tokenizer, classes = tokenizers
        return models.create(
            config.architecture,
            vocabulary_size=tokenizer.vocabulary_size,
            num_classes=len(classes),
        )

    def servable(self, config, model, tokenizers, stored_precision="float32"):
        return labeller.Labeller(
            model,
            *tokenizers,
            max_length=config.data.max_length,
            kind=self.kind,
            stored_precision=stored_precision,
        )

    def rank(self, logs):
        return logs["val_accuracy"], -logs["val_loss"]

    def validation(self, choices, corpus, servable):
        count = min(NUM_SAMPLES, choices.validation_sentences)
        shown = self.test_set(corpus, "validation", count)

        def validate(epoch, logs):
            print(
                f"\nepoch {epoch + 1}: validation accuracy "
                f"{100 * logs['val_accuracy']:.2f} %"
            )
            answers = servable(shown.sources, truncate=True)
            for text, label, right in self.shown(shown, answers):
                print(textwrap.indent(f"{text} | {label} | {right}", "  "))

        return validate

    def held_out(self, corpus):
        return self.test_set(corpus, corpus.held_out_split)

    def test_set(self, corpus, split, limit=None) -> TestSet:
        """A text, or a tuple of texts, for each right label.

        Args:
            corpus: what `load` returned.
            split: its name.
            limit: the most rows; all by default.
        """
        texts = [corpus.texts(split, name, limit) for name in self.texts]
        sources = texts[0] if len(texts) == 1 else zip(*texts, strict=True)
        references = corpus.texts(split, self.label, limit)
        return TestSet(split, list(sources), list(references))

    def read_test_set(self, source, reference, target_language=None):
        if not source or not reference:
            raise ValueError(
                "Give both --source, a file of texts, and --reference, a file "
                "of their labels."
            )
        texts = self.sources_of(source)
        references = list(map(labels.written, lines.read_lines(reference)))
        if len(texts) != len(references) or not texts:
            raise ValueError(
                f"There are {len(texts)} texts in {source}, {len(references)} "
                f"labels in {reference}. Each text needs a label."
            )
        return TestSet(source.name, texts, references)

    def sources_of(self, path) -> list:
        """The texts of a file's lines, or a tuple of texts for each line."""
        found = lines.read_lines(path)
        if len(self.texts) == 1:
            return list(found)
        rows = []
        for number, line in enumerate(found, 1):
            try:
                rows.append(lines.row(line, self.kind.inputs))
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}.") from None
        return rows

    def evaluate(self, servable, test_set, truncate=False):
        _check_labels(servable.labels, test_set.references)
        start = time.monotonic()
        answers = servable(test_set.sources, truncate=truncate)
        seconds = time.monotonic() - start
        scores = _scores(answers, test_set.references)
        if truncate:
            scores["truncated"] = servable.num_truncated(test_set.sources)
        return Evaluation(test_set, answers, scores, seconds)

    def samples(self, servable, evaluation):
        test_set, answers = evaluation.test_set, evaluation.hypotheses
        return self.shown(test_set, answers)[:NUM_SAMPLES]

    def shown(self, test_set, answers) -> list[tuple[str, str, str]]:
        """Texts, their labels and the right ones, with a bar in a pair."""
        return [
            (text if isinstance(text, str) else " | ".join(text), label, right)
            for text, label, right in zip(
                test_set.sources, answers, test_set.references, strict=True
            )
        ]

    def draw(self, folder, servable, evaluation):
        path = folder / "attention.png"
        drawn = draw_attention(servable, evaluation.test_set.sources[0], path)
        return {"attention": path} if drawn else {}

    def summary(self, evaluation):
        scores = evaluation.scores
        return (
            f"accuracy {scores['accuracy']:.2f} %, macro-F1 "
            f"{scores['macro_f1']:.2f} % of {scores['sentences']:,} held-out "
            f"{self.counted}"
        )

    def card(self, config, scores, servable):
        rows = [
            (name.replace("_", " "), f"{scores[name]:.2f} %", "")
            for name in ("accuracy", "error", "macro_f1")
        ]
        title = self.name.replace("_", " ").capitalize()
        return run_cards.card(title, "", config, scores, rows, servable)


def _check_labels(known, references) -> None:
    """Refuses right answers that the model cannot give."""
    unknown = set(references) - set(known)
    if unknown:
        lowered = {label.lower() for label in known}
        hint = "; they differ in capital letters alone"
        hint *= all(label.lower() in lowered for label in unknown)
        raise ValueError(
            f"The model has no label {labels.listed(unknown)}. Its labels are "
            f"{labels.listed(known)}{hint}. Write the right answers as the "
            "model does."
        )


def _scores(answers, references) -> dict:
    """Percentages. macro-F1 is the mean of the F1 of each right label."""
    pairs = list(zip(answers, references, strict=True))
    accuracy = 100 * sum(a == b for a, b in pairs) / len(pairs)
    f1 = []
    for label in sorted(set(references)):
        both = sum(a == b == label for a, b in pairs)
        either = sum(a == label for a, _ in pairs) + references.count(label)
        f1.append(200 * both / either)
    return {
        "accuracy": accuracy,
        "error": 100 - accuracy,
        "macro_f1": sum(f1) / len(f1),
        "sentences": len(pairs),
    }


def draw_attention(servable, text, path) -> bool:
    """Draws what the label of a text looked at: a row for each hop.

    Several layers and heads have a panel each. The rows of a pair are the first
    text's tokens.

    Returns:
        Whether there are weights: a model without layers has none.
    """
    (shown,) = servable.with_attention([text], truncate=True)
    weights = shown["attention"]
    rows, columns = shown["source_tokens"], shown["source_tokens"]
    axis_names, names = ("read", "asking"), None
    if not weights.size:
        return False
    if "pair_tokens" in shown:
        columns, axis_names = shown["pair_tokens"], ("pair", "text")
    elif weights.ndim == 2:
        rows = [f"hop {row + 1}" for row in range(len(weights))]
    else:
        num_layers, num_heads = weights.shape[:2]
        names = [
            f"layer {layer + 1}, head {head + 1}"
            for layer in range(num_layers)
            for head in range(num_heads)
        ]
        weights = weights.reshape(-1, *weights.shape[2:])
    plotting.attention_heat_map(
        columns,
        rows,
        weights,
        path=path,
        title=shown[servable.kind.output],
        names=names,
        axis_names=axis_names,
    )
    return True
