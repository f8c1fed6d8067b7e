"""From rows of texts to batches of a token budget, in `tf.data`.

Each stage is a function that makes a transform, for `dataset.apply`. Pairs of
texts become batches so:

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

import numpy as np
import tensorflow as tf

from keras_attention.data import columns
from keras_attention.data.columns import Transform, do_not_convert
from keras_attention.data.plans import plan_batches
from keras_attention.data.reports import report
from keras_attention.tokens import PAD

POOL_SIZE = 100_000


def tokenize(
    source_tokenizer, target_tokenizer=None, block_size: int = 1000
) -> Transform:
    """Pairs of texts to ids, many at once; see `columns.encode` for others.

    Args:
        source_tokenizer: a `data.Tokenizer`.
        target_tokenizer: that of the target; by default the same.
        block_size: pairs in a block.

    Returns:
        A transform of {"source", "target"} string scalars to blocks:
        {"source_ids", "target_ids"} ragged int32 [block, None], the source
        with END, the target from START to END.
    """
    encoders = {
        "source": source_tokenizer,
        "target": target_tokenizer or source_tokenizer,
    }
    return columns.encode(columns.PAIR, encoders, block_size)


def join(pool_size: int = POOL_SIZE, block_size: int = 1000) -> Transform:
    """Joins blocks to pools, in which rows of like length find each other.

    Args:
        pool_size: pairs held at a time.
        block_size: that of `tokenize`.

    Returns:
        A transform of blocks to larger ones.
    """

    @do_not_convert
    def merge(pool):
        return {name: ids.merge_dims(0, 1) for name, ids in pool.items()}

    return lambda blocks: blocks.batch(max(1, pool_size // block_size)).map(
        merge
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

    @do_not_convert
    def shuffle_rows(index, block):
        # One order for all columns, another one in each pool.
        size = next(iter(block.values())).nrows()
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
    shuffle_rows: bool = False,
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
        shuffle_rows: whether rows of one length change places too, where
            `shuffle` has not done so. It takes a seed.

    Returns:
        A transform of blocks to batches, such as {"source_ids", "target_ids"}
        int32 [B, S] and [B, T], padded with PAD. Where B is no multiple of
        `multiple_of`, rows are added that have no label. Their cardinality is
        known, unless the blocks never end.
    """

    def cut(read, written, pool):
        key = (epoch,) if shuffle_rows else (epoch, int(pool))
        generator = (
            seed if seed is None else np.random.default_rng((seed, *key))
        )
        plan = (max_tokens, multiple_of)
        return _cut(read, written, plan, generator, shuffle_rows)

    @do_not_convert
    def batches_of(pool, block):
        order, starts, ends = tf.numpy_function(
            cut,
            (*columns.row_lengths(block), pool),
            (tf.int64, tf.int64, tf.int64),
        )
        for tensor in (order, starts, ends):
            tensor.set_shape([None])

        @do_not_convert
        def batch(start, end):
            rows = order[start:end]
            # As many rows more as make a multiple.
            missing = -tf.size(rows) % multiple_of
            return {
                name: columns.padded(name, tf.gather(ids, rows), missing)
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
            count = report(blocks, 0, max_tokens, multiple_of).batches
        if count is None or count < 0:
            return batches
        # An epoch of so many batches: had the pairs another order in each
        # pass, several pools could make one batch more or less.
        return batches.repeat().take(count)

    return transform


def _cut(read, written, plan, generator, shuffle_rows):
    """The rows of a block in their order, and each batch's part of it."""
    rows = np.arange(len(read))
    if shuffle_rows:
        rows = generator.permutation(rows)
    order, ends = plan_batches(read[rows], written[rows], *plan)
    starts = np.array([0, *ends], "int64")[:-1]
    # The batches in their order.
    if generator is not None:
        shuffled = generator.permutation(len(ends))
        starts, ends = starts[shuffled], ends[shuffled]
    return rows[order], starts, ends


def to_examples() -> Transform:
    """Batches to what `fit` takes.

    Returns:
        A transform of batches to `(inputs, labels, sample_weight)`. Inputs
        are a dict of all columns but the label. A text that the model writes
        is the input "target_ids" [B, T] without its END, and the labels [B,
        T] without its START. Alone, it is the only input, and no dict.
        Otherwise the labels are the classes [B]. The weights, float32, are 1
        / (real labels of the whole batch) at real labels, and 0 at padding
        and at added rows. Summed losses so weighted are means over the real
        labels, also after replicas have split the batch.
    """

    @do_not_convert
    def example(batch):
        inputs = dict(batch)
        if "target_ids" in inputs:
            ids = inputs.pop("target_ids")
            labels = ids[:, 1:]
            is_real = labels != PAD
            # The last real token is no input: START ... and ... END are
            # equally long, and at END's place the input is padding. An END
            # before it is that of a line, and an input.
            inputs["target_ids"] = tf.where(is_real, ids[:, :-1], PAD)
        else:
            labels = inputs.pop("label")[:, 0]
            is_real = labels != columns.UNKNOWN
            labels = tf.where(is_real, labels, 0)
        real = tf.cast(is_real, tf.float32)
        weights = real / tf.maximum(tf.reduce_sum(real), 1.0)
        if list(inputs) == ["target_ids"]:
            inputs = inputs["target_ids"]
        return inputs, labels, weights

    return lambda batches: batches.map(example)
