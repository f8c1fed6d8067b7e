"""The batches of a run: the rows of its corpus as ids, epoch by epoch."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from keras_attention.data import batches, columns, reports
from keras_attention.data.readers import labels

# The ids of a larger corpus are not kept in memory. Each epoch makes them
# twice: to count them and to train on them.
MOST_ROWS_IN_MEMORY = 2_000_000


class Pipeline:
    """The batches of a run, as functions of the epoch.

    The ids of up to `MOST_ROWS_IN_MEMORY` rows are kept. Memory does not grow
    with a larger corpus, if its rows have a text that is written. Rows of a
    class are shuffled whole, and need far less memory.

    Args:
        corpus: a `corpora.Corpus`.
        of_rows: its columns, see `columns`.
        encoders: name of a column -> its tokenizer, or its classes.
        max_length: the most tokens of a text; longer ones are cut if their
            column keeps an end, and their rows dropped otherwise.
        max_tokens: of a batch, see `plan_batches`.
        seed: of the order of the batches.
        subword_sampling: alpha of subword regularisation; 0 for none.
        replicas: rows of a batch come in multiples of this.
        inputs: a function of a block that makes the model's inputs of it, if
            they are not the columns themselves.

    Attributes:
        report: what is kept of the training rows, a `Report`.
        checksums: of training and validation rows: others mean another
            corpus.

    Raises:
        ValueError: If no training row or no validation row fits. If a row has
            another label than the classes.
    """

    def __init__(
        self,
        corpus,
        of_rows: columns.Columns,
        encoders: Mapping[str, Any],
        max_length: int,
        max_tokens: int,
        seed: int,
        subword_sampling: float = 0.0,
        replicas: int = 1,
        inputs: Callable[[columns.Block], columns.Block] | None = None,
    ):
        self._columns, self._encoders = of_rows, encoders
        self._max_length = max_length
        self._max_tokens = max_tokens
        self._seed = seed
        self._subword_sampling = subword_sampling
        self._replicas = replicas
        self._inputs = inputs
        self._rows, self._sizes = corpus.splits, corpus.sizes
        self._keep = {
            columns.input_name(name, column): column.keep
            for name, column in of_rows.items()
            if getattr(column, "keep", None)
        }
        # Rows of a class have always been shuffled whole, and a run that goes
        # on needs its own order.
        self._whole = not any(
            getattr(column, "start", False) for column in of_rows.values()
        )
        _check_classes(corpus, of_rows, encoders)
        self._counts: dict[str, tuple[int, int]] = {}
        self._blocks = self._encoded("train")
        self._validation = self._pooled(self._encoded("validation"))
        self.report = dataclasses.replace(
            self._report_on(self._ordered(epoch=0), "train"),
            unlabelled=corpus.unlabelled,
        )
        # One pool without sampling has as many batches in every epoch.
        self._reports_are_equal = not subword_sampling and (
            self._whole or self._sizes["train"] <= batches.POOL_SIZE
        )
        validated = self._report_on(self._validation, "validation")
        self._validation_batches = validated.batches
        self.checksums = [self.report.checksum, validated.checksum]
        for split, report in (
            ("train", self.report),
            ("validation", validated),
        ):
            if not report.kept:
                raise ValueError(
                    f"No row of {split} fits max_length={max_length}: "
                    f"{report.too_long:,} are too long, {report.blank:,} blank."
                )

    def _encoded(self, split):
        """Filtered blocks of a split, whose blank and cut rows are counted."""
        encode = columns.encode(self._columns, self._encoders)
        blocks = self._in_memory(self._rows[split].apply(encode), split)
        num_cut = 0
        if self._keep:
            is_cut = columns.cut_rows(self._max_length, self._keep)
            num_cut = reports.count(blocks, is_cut)
        self._counts[split] = reports.count_blank(blocks), num_cut
        return self._kept(blocks)

    def _in_memory(self, blocks, split="train"):
        """The blocks, kept for the passes that follow if there is room."""
        is_small = self._sizes[split] <= MOST_ROWS_IN_MEMORY
        return blocks.cache() if is_small else blocks

    def _kept(self, blocks):
        blocks = blocks.apply(
            columns.filter_by_length(self._max_length, self._keep)
        )
        return blocks.map(self._inputs) if self._inputs else blocks

    def _sampled(self, epoch):
        sample = columns.encode_by_sampling(
            self._columns,
            self._encoders,
            seed=self._seed,
            epoch=epoch,
            alpha=self._subword_sampling,
        )
        # Read twice: counted, then trained on.
        return self._in_memory(self._kept(self._rows["train"].apply(sample)))

    def _ordered(self, epoch):
        """The pools of an epoch; rows of a class are not yet shuffled."""
        sampled = self._subword_sampling > 0
        blocks = self._sampled(epoch) if sampled else self._blocks
        if self._whole:
            return self._pooled(blocks)
        return blocks.apply(batches.shuffle(self._seed, epoch))

    def _pooled(self, blocks):
        """Blocks as pools, in the order of the corpus."""
        size = max(self._sizes.values()) + 1000 if self._whole else None
        return blocks.apply(batches.join(size or batches.POOL_SIZE))

    def _report_on(self, pools, split):
        return reports.report(
            pools,
            self._sizes[split],
            self._max_tokens,
            self._replicas,
            *self._counts[split],
        )

    def training(
        self, epoch: int, start: int = 0, limit: int | None = None
    ) -> tf.data.Dataset:
        """The examples of an epoch, from batch `start` on.

        Args:
            epoch: gives the order.
            start: batches that are left out.
            limit: the most batches; all by default.
        """
        pools, report = self._ordered(epoch), self.report
        if not self._reports_are_equal:
            report = self._report_on(pools, "train")
        examples = pools.apply(
            batches.batch_by_tokens(
                self._max_tokens,
                self._replicas,
                self._seed,
                epoch,
                num_batches=report.batches,
                shuffle_rows=self._whole,
            )
        )
        left = max(0, report.batches - start)
        examples = examples.skip(start).apply(
            tf.data.experimental.assert_cardinality(left)
        )
        if limit is not None:
            examples = examples.take(limit)
        return examples.apply(batches.to_examples()).prefetch(2)

    def validation(self) -> tf.data.Dataset:
        """The validation examples, shortest first."""
        examples = self._validation.apply(
            batches.batch_by_tokens(
                self._max_tokens,
                self._replicas,
                num_batches=self._validation_batches,
            )
        )
        return examples.apply(batches.to_examples()).apply(
            tf.data.experimental.assert_cardinality(self._validation_batches)
        )


def _check_classes(corpus, of_rows, encoders) -> None:
    for name, column in of_rows.items():
        if not isinstance(column, columns.Class):
            continue
        for split in ("train", "validation"):
            unknown = set(corpus.texts(split, name)) - set(encoders[name])
            if unknown:
                raise ValueError(
                    f"{split} has labels that the run did not begin with: "
                    f"{labels.listed(unknown)}. The run's labels: "
                    f"{labels.listed(encoders[name])}."
                )
