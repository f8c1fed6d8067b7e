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
model.fit(batches, shuffle=False)
```

The order is a function of seed, epoch and TensorFlow's global seed: training
that was stopped goes on at `batches.skip(step)` with the batches it would have
seen, after the same `keras.utils.set_random_seed`.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from keras_attention.data.plans import (
    count_batches,
    plan_batches,
    row_lengths,
)
from keras_attention.data.reports import Report, count_blank, report
from keras_attention.tokens import END, PAD, START

__all__ = [
    "POOL_SIZE",
    "Report",
    "Transform",
    "batch_by_tokens",
    "count_blank",
    "filter_by_length",
    "join",
    "plan_batches",
    "report",
    "shuffle",
    "to_examples",
    "tokenize",
    "tokenize_by_sampling",
]

# Separators, control and format characters: what shows nothing.
BLANK = r"[\p{Z}\p{Cc}\p{Cf}]*"
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


def _texts(pair: dict) -> list[tf.Tensor]:
    """Sources and targets; a text that shows nothing has no tokens.

    A target without a source is its own source.
    """
    sides = [pair[side] for side in ("source", "target") if side in pair]
    texts = [
        tf.where(tf.strings.regex_full_match(text, BLANK), "", text)
        for text in sides
    ]
    return texts if len(texts) == 2 else 2 * texts


def tokenize(
    source_tokenizer, target_tokenizer=None, block_size: int = 1000
) -> Transform:
    """Text to ids, many pairs at once.

    Args:
        source_tokenizer: a `data.Tokenizer`.
        target_tokenizer: that of the target; by default the same.
        block_size: pairs in a block.

    Returns:
        A transform of {"source", "target"} string scalars to blocks:
        {"source_ids", "target_ids"} ragged int32 [block, None], the source
        with END, the target from START to END. {"target"} alone, as of a
        language model, is its own source, and is tokenized once.
    """
    target_tokenizer = target_tokenizer or source_tokenizer

    def tokenize_block(pair):
        source, target = _texts(pair)
        target_ids = target_tokenizer.tokenize(target)
        if source is target:
            return _block(target_ids, target_ids)
        return _block(source_tokenizer.tokenize(source), target_ids)

    def transform(pairs):
        return pairs.batch(block_size).map(
            tokenize_block,
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
        values = tf.numpy_function(draw, (index, *_texts(pair)), types)
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
    """Drops pairs of which one side is blank or over `max_length` tokens.

    Control tokens count. A pair is dropped whole, never cut. A model that
    trained on blank targets would answer with nothing. `count_blank` counts
    the blank ones beforehand.
    """

    def keep(block):
        source, target = row_lengths(block)
        # One token at least, and END; START, one token and END.
        mask = (source > 1) & (target > 2)
        mask &= (source <= max_length) & (target <= max_length)
        return {
            name: tf.ragged.boolean_mask(ids, mask)
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
        # One order for both sides, another one in each pool.
        size = block["target_ids"].nrows()
        order = tf.random.experimental.stateless_shuffle(
            tf.range(size),
            seed=tf.stack([tf.constant(int(second), tf.int64), index]),
        )
        return {name: tf.gather(ids, order) for name, ids in block.items()}

    def transform(blocks):
        # Blocks first: those that make a pool come from here and there.
        blocks = blocks.shuffle(
            blocks_in_pool, seed=int(first), reshuffle_each_iteration=False
        )
        # Then the rows of each pool.
        pools = blocks.apply(join(pool_size, block_size))
        return pools.enumerate().map(shuffle_rows)

    return transform


def batch_by_tokens(
    max_tokens: int,
    multiple_of: int = 1,
    seed: int | None = None,
    epoch: int = 0,
    num_batches: int | None = None,
) -> Transform:
    """Batches rows of like length, and shuffles the batches.

    Keras wants to know how many batches an epoch has. Unless it is told,
    the transform reads the blocks once to count them: cache them before.

    Args:
        max_tokens, multiple_of: see `plan_batches`.
        seed, epoch: give the order of the batches; shortest first if the
            seed is None.
        num_batches: how many there are, if that is known, as from `report`;
            `tf.data.UNKNOWN_CARDINALITY` leaves them uncounted.

    Returns:
        A transform of blocks to batches {"source_ids", "target_ids"} int32
        [B, S] and [B, T], padded with PAD. Where B is no multiple of
        `multiple_of`, rows are added whose target is padding alone. Their
        cardinality is known, unless the blocks never end.
    """

    def cut(source_lengths, target_lengths, pool):
        # The rows in their order, and each batch's part of it.
        order, ends = plan_batches(
            source_lengths, target_lengths, max_tokens, multiple_of
        )
        starts = np.array([0, *ends], "int64")[:-1]
        # The batches in their order.
        if seed is not None:
            generator = np.random.default_rng((seed, epoch, int(pool)))
            shuffled = generator.permutation(len(ends))
            starts, ends = starts[shuffled], ends[shuffled]
        return order, starts, ends

    def batches_of(pool, block):
        order, starts, ends = tf.numpy_function(
            cut, (*row_lengths(block), pool), (tf.int64, tf.int64, tf.int64)
        )
        for tensor in (order, starts, ends):
            tensor.set_shape([None])

        def batch(start, end):
            rows = order[start:end]
            # As many rows more as make a multiple.
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

    def transform(blocks):
        batches = blocks.enumerate().flat_map(batches_of)
        count = num_batches
        if (
            count is None
            and blocks.cardinality() != tf.data.INFINITE_CARDINALITY
        ):
            count = count_batches(blocks, max_tokens, multiple_of)
        if count is None or count < 0:
            return batches
        # An epoch of so many batches: had the pairs another order in each
        # pass, several pools could make one batch more or less.
        return batches.repeat().take(count)

    return transform


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
        # long, and at END's place the input is padding. An END before it is
        # that of a line, and an input.
        inputs = tf.where(labels == PAD, PAD, ids[:, :-1])
        real = tf.cast(labels != PAD, tf.float32)
        weights = real / tf.maximum(tf.reduce_sum(real), 1.0)
        return (
            {"source_ids": batch["source_ids"], "target_ids": inputs},
            labels,
            weights,
        )

    return lambda batches: batches.map(example)
