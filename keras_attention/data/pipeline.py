"""The batches of a run: its examples as ids, epoch by epoch."""

from collections.abc import Iterator

import tensorflow as tf

from keras_attention import data
from keras_attention.data.readers import counted_pairs


def texts(pairs: tf.data.Dataset, side: str) -> Iterator[str]:
    """The texts of one side ("source" or "target"), one by one."""
    with counted_pairs.clear_errors():
        for block in pairs.batch(1000):
            for line in block[side].numpy():
                yield line.decode("utf-8", "replace")


# Of a larger corpus the ids are not kept in memory, but made in each epoch
# twice: to be counted and to be trained on.
MOST_PAIRS_IN_MEMORY = 2_000_000


class Pipeline:
    """The batches of a run, as functions of the epoch.

    Of a corpus of up to `MOST_PAIRS_IN_MEMORY` pairs the ids are kept; of a
    larger one, memory does not grow with it.

    Args:
        corpus: a `corpora.Corpus`.
        tokenizers: of source and target.
        max_length: the most tokens of a side; longer pairs are dropped.
        max_tokens: of a batch, see `plan_batches`.
        seed: of the order of the batches.
        subword_sampling: alpha of subword regularisation; 0 for none.
        replicas: rows of a batch come in multiples of this.

    Raises:
        ValueError: If no training pair or no validation pair fits.
    """

    def __init__(
        self,
        corpus,
        tokenizers,
        max_length: int,
        max_tokens: int,
        seed: int,
        subword_sampling: float = 0.0,
        replicas: int = 1,
    ):
        self._tokenizers = tokenizers
        self._max_length = max_length
        self._max_tokens = max_tokens
        self._seed = seed
        self._subword_sampling = subword_sampling
        self._replicas = replicas
        self._train = corpus.splits["train"]
        self._num_pairs = corpus.sizes["train"]
        self._blocks, self._num_blank = self._tokenized(
            self._train, self._num_pairs
        )
        validation, num_blank = self._tokenized(
            corpus.splits["validation"], corpus.sizes["validation"]
        )
        self._validation = validation.apply(data.join())
        self.report = self._report_on(
            self._shuffled(epoch=0), self._num_pairs, self._num_blank
        )
        # Of one pool without sampling, every epoch has as many batches.
        self._reports_are_equal = (
            not subword_sampling and self._num_pairs <= data.POOL_SIZE
        )
        self.validation_report = self._report_on(
            self._validation, corpus.sizes["validation"], num_blank
        )
        for report in (self.report, self.validation_report):
            if not report.pairs_kept:
                raise ValueError(
                    "Expected training and validation pairs that fit "
                    f"`max_length`={max_length}. Received: {report}"
                )

    def _tokenized(self, pairs, size):
        """Filtered blocks, and how many pairs were blank."""
        blocks = pairs.apply(data.tokenize(*self._tokenizers))
        if size <= MOST_PAIRS_IN_MEMORY:
            blocks = blocks.cache()
        kept = blocks.apply(data.filter_by_length(self._max_length))
        return kept, data.count_blank(blocks)

    def _sampled(self, epoch):
        sample = data.tokenize_by_sampling(
            *self._tokenizers,
            seed=self._seed,
            epoch=epoch,
            alpha=self._subword_sampling,
        )
        blocks = self._train.apply(sample).apply(
            data.filter_by_length(self._max_length)
        )
        # Read twice: counted, then trained on.
        in_memory = self._num_pairs <= MOST_PAIRS_IN_MEMORY
        return blocks.cache() if in_memory else blocks

    def _shuffled(self, epoch):
        """The blocks of an epoch in their order."""
        sampled = self._subword_sampling > 0
        blocks = self._sampled(epoch) if sampled else self._blocks
        return blocks.apply(data.shuffle(self._seed, epoch))

    def _report_on(self, blocks, num_pairs, num_blank):
        return data.report(
            blocks,
            num_pairs,
            self._max_tokens,
            self._replicas,
            num_blank,
        )

    @property
    def checksums(self) -> list[int]:
        """Of training and validation pairs: others mean another corpus."""
        return [self.report.checksum, self.validation_report.checksum]

    def training(
        self, epoch: int, start: int = 0, limit: int | None = None
    ) -> tf.data.Dataset:
        """The examples of an epoch, from batch `start` on.

        Args:
            epoch: gives the order.
            start: batches that are left out.
            limit: the most batches; all by default.
        """
        blocks, report = self._shuffled(epoch), self.report
        if not self._reports_are_equal:
            report = self._report_on(blocks, self._num_pairs, self._num_blank)
        batches = blocks.apply(
            data.batch_by_tokens(
                self._max_tokens,
                self._replicas,
                self._seed,
                epoch,
                num_batches=report.batches,
            )
        )
        left = max(0, report.batches - start)
        batches = batches.skip(start).apply(
            tf.data.experimental.assert_cardinality(left)
        )
        if limit is not None:
            batches = batches.take(limit)
        return batches.apply(data.to_examples()).prefetch(2)

    def validation(self) -> tf.data.Dataset:
        """The validation examples, shortest first."""
        batches = self._validation.apply(
            data.batch_by_tokens(
                self._max_tokens,
                self._replicas,
                num_batches=self.validation_report.batches,
            )
        )
        return batches.apply(data.to_examples()).apply(
            tf.data.experimental.assert_cardinality(
                self.validation_report.batches
            )
        )
