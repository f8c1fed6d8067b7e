"""From pairs of strings to batches of a token budget, in `tf.data`.

Each stage is a function that makes a transform, for `dataset.apply`:

```
batches = (
    pairs                                    # {"source", "target"}: text
    .apply(tokenize(tokenizer))              # blocks of rows of ids
    .apply(filter_by_length(max_length=100))
    .cache()
    .apply(shuffle(seed=1, epoch=0))
    .apply(batch_by_tokens(max_tokens=4096))
    .apply(to_examples())                    # (inputs, labels, weights)
    .prefetch(tf.data.AUTOTUNE)
)
```

The order is a function of seed, epoch and TensorFlow's global seed: training
that was stopped goes on at `batches.skip(step)` with the batches it would have
seen, after the same `keras.utils.set_random_seed`.
"""

import dataclasses
import zlib
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from keras_attention.tokens import END, PAD, START

POOL_SIZE = 100_000
Transform = Callable[[tf.data.Dataset], tf.data.Dataset]


def _block(source: tf.RaggedTensor, target: tf.RaggedTensor) -> dict:
    """Ids with END after the source, START and END around the target."""

    def constant(value, ids):
        return tf.fill([ids.nrows(), 1], value)

    return {
        "source_ids": tf.concat([source, constant(END, source)], axis=1),
        "target_ids": tf.concat(
            [constant(START, target), target, constant(END, target)], axis=1
        ),
    }


def tokenize(
    source_tokenizer, target_tokenizer=None, block_size: int = 1000
) -> Transform:
    """Text to ids, many pairs at once.

    Args:
        source_tokenizer: a `text.Tokenizer`.
        target_tokenizer: that of the target; by default the same.
        block_size: pairs in a block.

    Returns:
        A transform of {"source", "target"} string scalars to blocks:
        {"source_ids", "target_ids"} ragged int32 [block, None], the source
        with END, the target from START to END.
    """
    target_tokenizer = target_tokenizer or source_tokenizer

    def transform(pairs):
        return pairs.batch(block_size).map(
            lambda pair: _block(
                source_tokenizer.tokenize(pair["source"]),
                target_tokenizer.tokenize(pair["target"]),
            ),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )

    return transform


def tokenize_by_sampling(
    source_tokenizer,
    target_tokenizer=None,
    *,
    seed: int,
    epoch: int,
    alpha: float = 0.1,
    block_size: int = 1000,
) -> Transform:
    """Like `tokenize`, with another segmentation in each epoch.

    Subword regularisation (Kudo 2018): segmentations are drawn, as a
    function of seed, epoch and block.

    Reference: https://arxiv.org/abs/1804.10959
    """
    target_tokenizer = target_tokenizer or source_tokenizer

    def draw(index, source, target):
        rows = []
        for side, (tokenizer, texts) in enumerate(
            ((source_tokenizer, source), (target_tokenizer, target))
        ):
            texts = [text.decode("utf-8", "replace") for text in texts]
            block_seed = np.random.SeedSequence(
                (seed, epoch, int(index), side)
            ).generate_state(1)[0]
            ids = tokenizer.sample(texts, int(block_seed), alpha)
            rows.append(np.concatenate(ids))
            rows.append(np.array([len(row) for row in ids], "int64"))
        return rows

    def sample_block(index, pair):
        types = (tf.int32, tf.int64, tf.int32, tf.int64)
        values = tf.numpy_function(
            draw, (index, pair["source"], pair["target"]), types
        )
        for value in values:
            value.set_shape([None])
        return _block(
            tf.RaggedTensor.from_row_lengths(*values[:2]),
            tf.RaggedTensor.from_row_lengths(*values[2:]),
        )

    def transform(pairs):
        return pairs.batch(block_size).enumerate().map(sample_block)

    return transform


def filter_by_length(max_length: int) -> Transform:
    """Drops pairs of which one side has more than `max_length` tokens.

    Control tokens count. A pair is dropped whole, never cut.
    """

    def keep(block):
        source, target = block["source_ids"], block["target_ids"]
        kept = (source.row_lengths() <= max_length) & (
            target.row_lengths() <= max_length
        )
        return {
            name: tf.ragged.boolean_mask(ids, kept)
            for name, ids in block.items()
        }

    return lambda blocks: blocks.map(keep)


def join(pool_size: int = POOL_SIZE, block_size: int = 1000) -> Transform:
    """Joins blocks to pools, in which rows of like length find each other.

    Args:
        pool_size: pairs held at a time.
        block_size: that of `tokenize`.

    Returns:
        A transform of blocks to larger ones.
    """
    return lambda blocks: blocks.batch(max(1, pool_size // block_size)).map(
        lambda pool: {name: ids.merge_dims(0, 1) for name, ids in pool.items()}
    )


def shuffle(
    seed: int,
    epoch: int = 0,
    pool_size: int = POOL_SIZE,
    block_size: int = 1000,
) -> Transform:
    """Shuffles blocks, and joins them to pools of shuffled rows.

    Args:
        seed, epoch: give the order, with TensorFlow's global seed.
        pool_size: pairs held at a time; a corpus that fits in is shuffled
            whole.
        block_size: that of `tokenize`.

    Returns:
        A transform of blocks to larger ones.
    """
    blocks_in_pool = max(1, pool_size // block_size)
    first, second = np.random.SeedSequence((seed, epoch)).generate_state(2)

    def shuffle_rows(index, block):
        size = block["target_ids"].nrows()
        order = tf.random.experimental.stateless_shuffle(
            tf.range(size),
            seed=tf.stack([tf.constant(int(second), tf.int64), index]),
        )
        return {name: tf.gather(ids, order) for name, ids in block.items()}

    def transform(blocks):
        return (
            blocks.shuffle(
                blocks_in_pool, seed=int(first), reshuffle_each_iteration=False
            )
            .apply(join(pool_size, block_size))
            .enumerate()
            .map(shuffle_rows)
        )

    return transform


def plan_batches(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    max_tokens: int,
    multiple_of: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Cuts rows, sorted by length, into batches of a token budget.

    Args:
        source_lengths, target_lengths: int [n], tokens of each row.
        max_tokens: the most target tokens of a batch, START and padding
            included, and half of the most source tokens; a longer row is a
            batch of its own.
        multiple_of: rows of a batch come in multiples of this (the number
            of replicas), where the budget allows.

    Returns:
        `(order, ends)`: int64 [n], rows by target length, then source
        length, ties as they come; int64 [batches], where each batch ends.

    Errors: `ValueError` unless both limits are at least 1.
    """
    if max_tokens < 1 or multiple_of < 1:
        raise ValueError(
            "Expected max_tokens >= 1 and multiple_of >= 1. Received: "
            f"max_tokens={max_tokens}, multiple_of={multiple_of}"
        )
    order = np.lexsort((source_lengths, target_lengths))
    # What a row costs, were all rows of its batch like it.
    costs = np.maximum((source_lengths + 1) // 2, target_lengths)[order]
    ends, start = [], 0
    while start < len(costs):
        # Sources do not grow steadily: take the running maximum.
        window = np.maximum.accumulate(costs[start : start + max_tokens])
        sizes = np.arange(1, len(window) + 1)
        fits = int(np.searchsorted(window * sizes > max_tokens, True))
        size = max(1, fits)
        if start + size < len(costs) and size > multiple_of:
            size -= size % multiple_of
        start += size
        ends.append(start)
    return order.astype("int64"), np.array(ends, "int64")


def batch_by_tokens(
    max_tokens: int,
    multiple_of: int = 1,
    seed: int | None = None,
    epoch: int = 0,
) -> Transform:
    """Batches rows of like length, and shuffles the batches.

    Args:
        max_tokens, multiple_of: see `plan_batches`.
        seed, epoch: give the order of the batches; shortest first if the
            seed is None.

    Returns:
        A transform of blocks to batches {"source_ids", "target_ids"} int32
        [B, S] and [B, T], padded with PAD. Where B is no multiple of
        `multiple_of`, rows are added whose target is padding alone.
    """

    def cut(source_lengths, target_lengths, pool):
        order, ends = plan_batches(
            source_lengths, target_lengths, max_tokens, multiple_of
        )
        starts = np.array([0, *ends], "int64")[:-1]
        if seed is not None:
            generator = np.random.default_rng((seed, epoch, int(pool)))
            shuffled = generator.permutation(len(ends))
            starts, ends = starts[shuffled], ends[shuffled]
        return order, starts, ends

    def batches_of(pool, block):
        lengths = [block[name].row_lengths() for name in sorted(block)]
        order, starts, ends = tf.numpy_function(
            cut, (*lengths, pool), (tf.int64, tf.int64, tf.int64)
        )
        for tensor in (order, starts, ends):
            tensor.set_shape([None])

        def batch(start, end):
            rows = order[start:end]
            missing = -tf.size(rows) % multiple_of
            # A recurrent kernel must not see a row without any real token:
            # the source of an added row is END alone.
            added = {"source_ids": END, "target_ids": PAD}
            return {
                name: tf.concat(
                    [tf.gather(ids, rows), tf.fill([missing, 1], added[name])],
                    axis=0,
                ).to_tensor(PAD)
                for name, ids in block.items()
            }

        return tf.data.Dataset.from_tensor_slices((starts, ends)).map(batch)

    return lambda blocks: blocks.enumerate().flat_map(batches_of)


def to_examples() -> Transform:
    """Batches to what `fit` takes.

    Returns:
        A transform of batches to `(inputs, labels, sample_weight)`: inputs
        {"source_ids" [B, S], "target_ids" [B, T]}, labels [B, T], and
        float32 [B, T]: 1 / (real labels of the whole batch) at real labels,
        0 at padding. Summed losses so weighted are means over the real
        tokens, also after replicas have split the batch.
    """

    def example(batch):
        ids = batch["target_ids"]
        labels = ids[:, 1:]
        # The last real token is no input: START ... and ... END are equally
        # long, and at END's place the input is padding.
        inputs = tf.where(ids[:, :-1] == END, PAD, ids[:, :-1])
        real = tf.cast(labels != PAD, tf.float32)
        weights = real / tf.maximum(tf.reduce_sum(real), 1.0)
        return (
            {"source_ids": batch["source_ids"], "target_ids": inputs},
            labels,
            weights,
        )

    return lambda batches: batches.map(example)


@dataclasses.dataclass(frozen=True)
class Report:
    """What the pipeline keeps of a corpus.

    `tokens` are real labels (END counts, START does not); `padding_share`
    is the share of label positions that are padding; `checksum` is that of
    all ids in their order: another one means other pairs.
    """

    pairs_kept: int
    pairs_dropped: int
    batches: int
    tokens: int
    padding_share: float
    checksum: int

    def __str__(self) -> str:
        return (
            f"{self.pairs_kept:,} pairs kept, {self.pairs_dropped:,} "
            f"dropped; {self.tokens:,} target tokens in {self.batches:,} "
            f"batches, {100 * self.padding_share:.1f} % padding"
        )


def report(
    blocks: tf.data.Dataset,
    num_pairs: int,
    max_tokens: int,
    multiple_of: int = 1,
) -> Report:
    """Reads the blocks once and reports what `batch_by_tokens` makes of them.

    Args:
        blocks: tokenised and filtered, as `batch_by_tokens` gets them.
        num_pairs: pairs before the filter.
        max_tokens, multiple_of: see `batch_by_tokens`.

    Returns:
        `Report`. Where blocks are shuffled into several pools, the number
        of batches and the padding differ a little from epoch to epoch.
    """
    kept = batches = places = real = checksum = 0
    for block in blocks:
        for name in sorted(block):
            checksum = zlib.crc32(block[name].flat_values.numpy(), checksum)
            checksum = zlib.crc32(block[name].row_splits.numpy(), checksum)
        source, target = (
            block[name].row_lengths().numpy() for name in sorted(block)
        )
        order, ends = plan_batches(source, target, max_tokens, multiple_of)
        starts = np.array([0, *ends], "int64")[:-1]
        if not len(target):
            continue
        longest = np.maximum.reduceat(target[order] - 1, starts)
        kept += len(target)
        batches += len(ends)
        places += int(np.sum(longest * (ends - starts)))
        real += int(np.sum(target - 1))
    return Report(
        pairs_kept=kept,
        pairs_dropped=num_pairs - kept,
        batches=batches,
        tokens=real,
        padding_share=1 - real / max(places, 1),
        checksum=checksum,
    )
