"""The batches of a run that carries its state: a stream in parallel rows."""

import math
import zlib

import tensorflow as tf

from keras_attention.data import columns, reports
from keras_attention.data.readers import counted_pairs
from keras_attention.tokens import PAD

_COLUMNS = {"target": columns.Text(start=True)}


class CarriedPipeline:
    """The batches of a stream. All epochs have the same ones, in one order.

    A line is read as START and its tokens; its labels are its tokens and END.
    All lines of a split follow each other in one stream. It is cut into rows
    of one length, and a batch is the next tokens of all rows. So each row of a
    batch goes on where the same row of the batch before has ended
    (Zaremba et al. 2014, section 4.1: 20 rows, 20 or 35 tokens of each).

    Args:
        corpus: a `corpora.Corpus` with the column "target".
        tokenizer: a `data.Tokenizer`.
        num_rows: rows of a batch, those of the whole stream.
        context_length: tokens of each row in a batch. The last batch is
            shorter, and the last rows may end in padding.

    Attributes:
        report, checksums: as those of `pipeline.Pipeline`.

    Raises:
        ValueError: If the split of training or of validation has no text.
    """

    def __init__(self, corpus, tokenizer, num_rows: int, context_length: int):
        self._context_length = context_length
        self._streams, of_splits = {}, {}
        for split in ("train", "validation"):
            lines, num_blank = _lines(corpus.splits[split], tokenizer)
            if not lines.nrows():
                raise ValueError(f"All lines of {split} are blank.")
            self._streams[split] = _in_rows(lines, num_rows)
            of_splits[split] = self._report(split, lines, num_blank)
        self.report = of_splits["train"]
        self.checksums = [one.checksum for one in of_splits.values()]

    def _report(self, split, lines, num_blank):
        _, labels = self._streams[split]
        num_lines, num_places = int(lines.nrows()), int(tf.size(labels))
        # START has no label.
        num_tokens = int(tf.size(lines.flat_values)) - num_lines
        checksum = zlib.crc32(lines.flat_values.numpy())
        return reports.Report(
            kept=num_lines,
            dropped=num_blank,
            batches=self._num_batches(split),
            tokens=num_tokens,
            padding_share=(num_places - num_tokens) / num_places,
            checksum=zlib.crc32(lines.row_splits.numpy(), checksum),
            blank=num_blank,
        )

    def _num_batches(self, split) -> int:
        _, labels = self._streams[split]
        return math.ceil(labels.shape[1] / self._context_length)

    def training(
        self, epoch: int, start: int = 0, limit: int | None = None
    ) -> tf.data.Dataset:
        """The examples of an epoch, from batch `start` on.

        Args:
            epoch: has no influence.
            start: batches that are left out.
            limit: the most batches; all by default.

        Returns:
            `(inputs, labels, weights)`: the inputs are those that
            `training.objectives.CarriedObjective` takes.
        """
        examples = self._examples("train", start)
        return examples if limit is None else examples.take(limit)

    def validation(self) -> tf.data.Dataset:
        """The validation examples, in the order of the stream."""
        return self._examples("validation")

    def _examples(self, split, start=0):
        inputs, labels = self._streams[split]

        @columns.do_not_convert
        def example(index):
            first = index * self._context_length
            part = slice(first, first + self._context_length)
            rows = tf.range(labels.shape[0])
            real = tf.cast(labels[:, part] != PAD, tf.float32)
            return (
                {
                    "target_ids": inputs[:, part],
                    "rows": rows,
                    "goes_on": tf.fill(tf.shape(rows), index > 0),
                },
                labels[:, part],
                real / tf.maximum(tf.reduce_sum(real), 1.0),
            )

        count = self._num_batches(split)
        batches = tf.data.Dataset.range(min(start, count), count)
        return batches.map(example).prefetch(2)


def _lines(rows, tokenizer):
    """Ids of the lines that are not blank, and how many are blank.

    Returns:
        `(lines, num_blank)`: ragged [n, None] from START to END, and a count.
    """
    blocks = rows.apply(columns.encode(_COLUMNS, {"target": tokenizer}))
    kept, num_blank = [], 0
    with counted_pairs.clear_errors():
        for block in blocks:
            is_blank = columns.blank_rows(block)
            kept.append(tf.ragged.boolean_mask(block["target_ids"], ~is_blank))
            num_blank += int(tf.math.count_nonzero(is_blank))
    return tf.concat(kept, axis=0), num_blank


def _in_rows(lines, num_rows):
    """Inputs and labels of a stream: int [num_rows, N], PAD at the end."""
    streams = lines[:, :-1].flat_values, lines[:, 1:].flat_values
    missing = -tf.size(streams[0]) % num_rows
    return tuple(
        tf.reshape(
            tf.pad(stream, [[0, missing]], constant_values=PAD),
            [num_rows, -1],
        )
        for stream in streams
    )
