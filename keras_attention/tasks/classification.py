"""Texts with labels: which label a text has, by accuracy and macro-F1."""

import time

from keras_attention import files, plotting
from keras_attention.data import labelled_batches
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
        num_texts: of an example.
        embedded: the name of a corpus -> the module that draws it.
        kind: what answers.
    """

    name = "classification"
    columns = ("text", "label", "right label")
    cross_entropy = objectives.LabelObjective
    num_texts = 1
    embedded = {"referents": referents, "colours": colours}
    kind = kinds.CLASSIFICATION

    def load(self, choices):
        unlabelled = 0
        if choices.corpus in self.embedded:
            rows = self.embedded[choices.corpus].generate()
        else:
            names = [
                name.strip() for name in (choices.columns or "").split(",")
            ]
            rows, unlabelled = labelled_texts.load(
                choices.corpus, self.num_texts, names if choices.columns else ()
            )
        splits = {
            name: labelled_batches.LabelledTexts.of(one)
            for name, one in rows.items()
        }
        return labelled_batches.LabelledCorpus(
            choices.corpus, splits, unlabelled
        )

    def tokenizers(self, config, directory, corpus):
        texts = corpus.splits["train"].texts
        vocabularies.learn(
            directory,
            {"joint": lambda: (text for column in texts for text in column)},
            config.vocabulary,
        )
        # The labels of a run that goes on are those that it began with.
        if not directory.checkpoint.is_file():
            classes = "".join(f"{label}\n" for label in corpus.classes)
            files.write_atomically(directory.classes, classes.encode())
        return self.load_tokenizers(directory)

    def load_tokenizers(self, directory):
        """The tokenizer, and the labels."""
        if not directory.classes.is_file():
            raise ValueError(
                "Expected the labels that `keras-attention train` wrote. "
                f"Received: {directory.classes}, which is missing"
            )
        return (
            vocabularies.load(directory, "joint"),
            list(lines.read_lines(directory.classes)),
        )

    def pipeline(self, config, corpus, tokenizers, replicas):
        if config.vocabulary.subword_sampling:
            raise ValueError(
                f"Expected subword_sampling=0 for {self.name}. Received: "
                f"subword_sampling={config.vocabulary.subword_sampling}"
            )
        tokenizer, classes = tokenizers
        return labelled_batches.LabelledBatches(
            corpus,
            tokenizer,
            classes,
            max_length=config.data.max_length,
            max_tokens=config.data.max_tokens,
            seed=config.run.seed,
            replicas=replicas,
        )

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

    def validation(self, config, corpus, servable):
        examples = _test_set("validation", corpus.splits["validation"])
        count = min(NUM_SAMPLES, config.data.validation_sentences)
        shown = TestSet(
            examples.name, examples.sources[:count], examples.references[:count]
        )

        def validate(epoch, logs):
            print(
                f"\nepoch {epoch + 1}: validation accuracy "
                f"{100 * logs['val_accuracy']:.2f} %"
            )
            for text, label, right in _rows(
                shown, servable(shown.sources, truncate=True)
            ):
                print(f"  {text} | {label} | {right}")

        return validate

    def held_out(self, corpus):
        names = sorted(
            name
            for name, examples in corpus.splits.items()
            if name[:4] == "test" and len(examples)
        )
        split = names[0] if names else "validation"
        return _test_set(split, corpus.splits[split])

    def read_test_set(self, source, reference, target_language=None):
        if not source or not reference:
            raise ValueError(
                "Expected --source, a file of texts, and --reference, a file "
                f"of their labels. Received: source={source}, "
                f"reference={reference}"
            )
        texts = lines.rows(lines.read_lines(source), self.num_texts)
        references = list(map(labels.written, lines.read_lines(reference)))
        if len(texts) != len(references) or not texts:
            raise ValueError(
                "Expected a label for each text. Received: "
                f"{len(texts)} texts in {source}, {len(references)} labels in "
                f"{reference}"
            )
        return TestSet(source.name, texts, references)

    def evaluate(self, servable, test_set, truncate=False, **options):
        if options:
            raise ValueError(
                f"Expected no options of a search for {self.name}. "
                f"Received: {', '.join(options)}"
            )
        _check_labels(servable.kind.labels, test_set.references)
        start = time.monotonic()
        answers = servable(test_set.sources, truncate=truncate)
        seconds = time.monotonic() - start
        scores = _scores(answers, test_set.references)
        if truncate:
            scores["truncated"] = servable.num_truncated(test_set.sources)
        return Evaluation(test_set, answers, scores, seconds)

    def samples(self, servable, evaluation):
        return _rows(evaluation.test_set, evaluation.hypotheses)[:NUM_SAMPLES]

    def draw(self, folder, servable, evaluation):
        path = folder / "attention.png"
        drawn = draw_attention(servable, evaluation.test_set.sources[0], path)
        return {"attention": path} if drawn else {}

    def summary(self, evaluation):
        scores = evaluation.scores
        return (
            f"accuracy {scores['accuracy']:.2f} %, macro-F1 "
            f"{scores['macro_f1']:.2f} % of {scores['sentences']:,} held-out "
            f"{'texts' if self.num_texts == 1 else 'pairs'}"
        )

    def card(self, config, scores, servable):
        rows = [
            (name.replace("_", " "), f"{scores[name]:.2f} %", "")
            for name in ("accuracy", "error", "macro_f1")
        ]
        title = self.name.capitalize()
        return run_cards.card(title, "", config, scores, rows, servable)


def _test_set(name, examples) -> TestSet:
    """A pair of texts is a tuple."""
    texts = examples.texts
    sources = list(zip(*texts, strict=True)) if len(texts) > 1 else texts[0]
    return TestSet(name, sources, examples.labels)


def _rows(test_set, answers) -> list[tuple[str, str, str]]:
    """Texts, their labels and the right ones, with a bar in a pair."""
    return [
        (text if isinstance(text, str) else " | ".join(text), label, right)
        for text, label, right in zip(
            test_set.sources, answers, test_set.references, strict=True
        )
    ]


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

    Of several layers and heads, each is a panel. Of a pair, the rows are the
    first text's tokens.

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
        title=shown["label"],
        names=names,
        axis_names=axis_names,
    )
    return True
