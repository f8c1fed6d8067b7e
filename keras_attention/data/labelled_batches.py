"""The batches of labelled texts, as functions of the epoch."""

import dataclasses
import zlib
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from keras_attention.data import plans
from keras_attention.tokens import END, PAD

# The names of the inputs of a model, as in `models.classifier`.
INPUTS = ("source_ids", "pair_ids")


@dataclasses.dataclass(frozen=True)
class LabelledTexts:
    """Texts with a label each.

    Args:
        texts: one list of texts, or two of equal length.
        labels: as many labels.
    """

    texts: tuple[list[str], ...]
    labels: list[str]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, ...]]) -> "LabelledTexts":
        """From rows of a label and its texts, without blanks at their ends."""
        columns = list(zip(*rows, strict=True)) or [(), ()]
        labels, *texts = (list(map(str.strip, column)) for column in columns)
        return cls(tuple(texts), labels)

    def __len__(self) -> int:
        return len(self.labels)


@dataclasses.dataclass(frozen=True)
class LabelledCorpus:
    """A corpus of labelled texts.

    Args:
        name: of the corpus.
        splits: "train", "validation", "test", ... -> their texts.
        unlabelled: rows that were left out, as they have no label.
    """

    name: str
    splits: dict[str, LabelledTexts]
    unlabelled: int = 0

    @property
    def classes(self) -> list[str]:
        """The labels of the training texts, sorted."""
        return sorted(set(self.splits["train"].labels))


@dataclasses.dataclass(frozen=True)
class LabelReport:
    """What the batches keep of a corpus.

    Args:
        kept: training texts (or pairs) that are trained on.
        too_long, blank: those that are left out.
        classes: the number of labels.
        tokens: of all training texts, END included.
        batches: of an epoch.
        unlabelled: rows of all splits without a label, which are left out.
    """

    kept: int
    too_long: int
    blank: int
    classes: int
    tokens: int
    batches: int
    unlabelled: int = 0

    def __str__(self) -> str:
        unlabelled = (
            f", {self.unlabelled:,} without a label" if self.unlabelled else ""
        )
        return (
            f"{self.kept:,} texts of {self.classes:,} labels kept, "
            f"{self.too_long:,} too long, {self.blank:,} blank{unlabelled}; "
            f"{self.tokens:,} tokens in {self.batches:,} batches"
        )


class LabelledBatches:
    """The batches of a run; all ids are kept in memory.

    A batch holds texts of like length. Its inputs are {"source_ids" [B, S]},
    of pairs also {"pair_ids" [B, T]}, its labels int [B], and its weights
    1 / (texts of the whole batch). Rows that are added for a replica have the
    weight 0.

    Args:
        corpus: a `LabelledCorpus`.
        tokenizer: of all texts.
        classes: the labels, in the order of the model's logits.
        max_length: the most tokens of a text; longer ones are left out.
        max_tokens: of a batch, padding included; of the longer side of pairs.
        seed: of the order of the batches.
        replicas: rows of a batch come in multiples of this.

    Attributes:
        report: what is kept, a `LabelReport`.
        checksums: of training and validation: others mean another corpus.

    Raises:
        ValueError: If no text of a split fits.
    """

    def __init__(
        self,
        corpus: LabelledCorpus,
        tokenizer,
        classes: list[str],
        max_length: int,
        max_tokens: int,
        seed: int,
        replicas: int = 1,
    ):
        self._max_tokens, self._seed, self._replicas = (
            max_tokens,
            seed,
            replicas,
        )
        self._train, too_long, blank = _encoded(
            corpus.splits["train"], tokenizer, classes, max_length
        )
        self._validation, _, _ = _encoded(
            corpus.splits["validation"], tokenizer, classes, max_length
        )
        for columns in (self._train, self._validation):
            if not len(columns["labels"]):
                raise ValueError(
                    "Expected training and validation texts that fit "
                    f"`max_length`={max_length}. Received: {too_long} too "
                    f"long, {blank} blank"
                )
        self.checksums = [
            _checksum(columns) for columns in (self._train, self._validation)
        ]
        num_texts = len(self._train["labels"])
        # Rows of equal length change places: every epoch has as many batches.
        _, ends = self._plan(self._train, np.arange(num_texts))
        self.report = LabelReport(
            kept=num_texts,
            too_long=too_long,
            blank=blank,
            classes=len(classes),
            tokens=int(
                sum(
                    ids.row_lengths().numpy().sum()
                    for name, ids in self._train.items()
                    if name != "labels"
                )
            ),
            batches=len(ends),
            unlabelled=corpus.unlabelled,
        )

    def training(
        self, epoch: int, start: int = 0, limit: int | None = None
    ) -> tf.data.Dataset:
        """The batches of an epoch.

        Args:
            epoch: gives the order.
            start: batches that are left out.
            limit: the most batches; all by default.
        """
        generator = np.random.default_rng((self._seed, epoch))
        order = generator.permutation(len(self._train["labels"]))
        rows, ends = self._plan(self._train, order)
        starts = np.array([0, *ends[:-1]], "int64")
        places = generator.permutation(len(ends))[start:]
        places = places if limit is None else places[:limit]
        return self._batches(self._train, rows, starts[places], ends[places])

    def validation(self) -> tf.data.Dataset:
        """The validation batches, shortest first."""
        order = np.arange(len(self._validation["labels"]))
        rows, ends = self._plan(self._validation, order)
        starts = np.array([0, *ends[:-1]], "int64")
        return self._batches(self._validation, rows, starts, ends)

    def _plan(self, columns, order):
        """Rows sorted by length, those alike in this order, and the ends."""
        lengths = np.max(
            [
                ids.row_lengths().numpy()
                for name, ids in columns.items()
                if name != "labels"
            ],
            axis=0,
        )[order]
        rows, ends = plans.plan_batches(
            lengths, lengths, self._max_tokens, self._replicas
        )
        return order[rows], ends

    def _batches(self, columns, rows, starts, ends):
        rows = tf.constant(rows)

        def batch(start, end):
            chosen = rows[start:end]
            count = tf.size(chosen)
            missing = -count % self._replicas

            def padded(ids):
                # An added row is END alone: no kernel sees an empty one.
                added = tf.fill([missing, 1], END)
                ids = tf.concat([tf.gather(ids, chosen), added], axis=0)
                return ids.to_tensor(PAD)

            inputs = {
                name: padded(ids)
                for name, ids in columns.items()
                if name != "labels"
            }
            labels = tf.pad(
                tf.gather(columns["labels"], chosen), [[0, missing]]
            )
            weight = 1.0 / tf.cast(count, tf.float32)
            weights = tf.pad(tf.fill([count], weight), [[0, missing]])
            return inputs, labels, weights

        batches = tf.data.Dataset.from_tensor_slices((starts, ends))
        return batches.map(batch).prefetch(2)


def _encoded(examples, tokenizer, classes, max_length):
    """Columns of ids and labels, and how many texts are too long or blank."""
    places = {label: place for place, label in enumerate(classes)}
    columns = {}
    for name, texts in zip(INPUTS, examples.texts, strict=False):
        ids = tokenizer.tokenize(tf.constant(texts, tf.string))
        ends = tf.fill([ids.nrows(), 1], END)
        columns[name] = tf.concat([ids, ends], axis=1)
    lengths = np.array([ids.row_lengths() for ids in columns.values()])
    blank = (lengths <= 1).any(axis=0)
    too_long = (lengths > max_length).any(axis=0) & ~blank
    mask = ~blank & ~too_long
    unknown = set(examples.labels) - set(places)
    if unknown:
        raise ValueError(
            "Expected the labels that the run began with, "
            f"{', '.join(places)}. "
            f"Received: {min(unknown)!r}"
        )
    labels = np.array([places[label] for label in examples.labels], "int32")
    columns = {
        name: tf.ragged.boolean_mask(ids, mask) for name, ids in columns.items()
    }
    columns["labels"] = tf.constant(labels[mask])
    return columns, int(too_long.sum()), int(blank.sum())


def _checksum(columns) -> int:
    checksum = zlib.crc32(columns["labels"].numpy())
    for name, ids in columns.items():
        if name != "labels":
            checksum = zlib.crc32(ids.flat_values.numpy(), checksum)
            checksum = zlib.crc32(ids.row_splits.numpy(), checksum)
    return checksum
