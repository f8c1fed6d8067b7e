"""What the rows of a corpus hold, and how each column becomes ids.

A task declares its columns, such as `{"source": Text(), "target":
Text(start=True)}`. Blocks are many rows at once: a dict of ragged tensors
[rows, None], each named as a model names it (see `input_name`).
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from keras_attention.data.vocabularies import line_tokenizer
from keras_attention.tokens import END, PAD, START

# Nothing here is Python that AutoGraph has to read, which takes a while.
do_not_convert = tf.autograph.experimental.do_not_convert
Transform = Callable[[tf.data.Dataset], tf.data.Dataset]
Block = Mapping[str, tf.RaggedTensor]
# Separators, control and format characters: what shows nothing.
BLANK = r"[\p{Z}\p{Cc}\p{Cf}]*"
# The place of a label that is none of the classes.
UNKNOWN = -1
# Pads the places of links.
NO_LINK = -1


@dataclasses.dataclass(frozen=True)
class Text:
    """A text, as the ids of its tokens and END.

    Args:
        sentences: whether each line of the text is a sentence. An END stands
            behind each, which no text can produce.
        start: whether the model writes the text. START stands before it, and
            its ids are the input `target_ids` as well as the labels.
        keep: which end of a text over the limit is kept. By default its row
            is dropped.

    Raises:
        ValueError: If a text that the model writes would be cut.
    """

    sentences: bool = False
    start: bool = False
    keep: Literal["start", "end"] | None = None

    def __post_init__(self):
        if self.start and self.keep:
            raise ValueError(
                "A text that the model writes cannot be cut, as the model "
                "would learn to stop there. Leave `keep` out."
            )


@dataclasses.dataclass(frozen=True)
class Class:
    """One of the classes: the label that the model gives a row."""


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Numbers that the model reads, as many in each row.

    Args:
        shape: of a row's numbers, such as [height, width]. A model gets them
            in one row.
    """

    shape: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Links:
    """Which words of two texts say the same, such as "0-0 1-2".

    A row has two numbers for each link, in turn: the place in the source, and
    the place in the target. A model gets them as int [B, 2 M], padded with
    `NO_LINK`.
    """


Columns = Mapping[str, Text | Class | Numbers | Links]
PAIR: Columns = {"source": Text(), "target": Text(start=True)}


def input_name(name: str, column) -> str:
    """The name of a column in blocks, and of the model's input.

    It is "target_ids" for the text that the model writes, "label" for the
    class, NAME for numbers, "links" for links and "NAME_ids" for a text that
    the model reads.
    """
    if isinstance(column, Class):
        return "label"
    if isinstance(column, Links):
        return "links"
    if isinstance(column, Numbers):
        return name
    return "target_ids" if column.start else f"{name}_ids"


def encode(
    columns: Columns, encoders: Mapping[str, Any], block_size: int = 1000
) -> Transform:
    """Rows to ids, many at once.

    Args:
        columns: those to read. Others in the rows are ignored.
        encoders: name of a column -> its `data.Tokenizer`, or its classes in
            the order of a model's logits. Numbers have none.
        block_size: rows in a block.

    Returns:
        A transform of rows (string scalars, or numbers of one shape, by the
        names of their columns) to blocks.
    """
    encoders = _of_lines(columns, encoders)

    @do_not_convert
    def encode_block(rows):
        def tokenize(place, tokenizer, texts):
            return tokenizer.tokenize(texts)

        return _block(columns, encoders, rows, tokenize)

    return lambda rows: rows.batch(block_size).map(
        encode_block, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
    )


def encode_by_sampling(
    columns: Columns,
    encoders: Mapping[str, Any],
    *,
    seed: int,
    epoch: int,
    alpha: float = 0.1,
    block_size: int = 1000,
) -> Transform:
    """Like `encode`, with another segmentation of texts in each epoch.

    Subword regularisation (Kudo 2018): segmentations are drawn, as a
    function of seed, epoch, block and column.

    Reference: https://arxiv.org/abs/1804.10959
    """
    encoders = _of_lines(columns, encoders)

    def sample(index, place, tokenizer, texts):
        def draw(index, texts):
            texts = [text.decode("utf-8", "replace") for text in texts]
            block_seed = np.random.SeedSequence(
                (seed, epoch, int(index), place)
            ).generate_state(1)[0]
            ids = tokenizer.sample(texts, int(block_seed), alpha)
            lengths = np.array([len(row) for row in ids], "int64")
            return np.concatenate(ids), lengths

        ids, lengths = tf.numpy_function(
            draw, (index, texts), (tf.int32, tf.int64)
        )
        ids.set_shape([None])
        lengths.set_shape([None])
        return tf.RaggedTensor.from_row_lengths(ids, lengths)

    @do_not_convert
    def sample_block(index, rows):
        return _block(columns, encoders, rows, functools.partial(sample, index))

    return lambda rows: rows.batch(block_size).enumerate().map(sample_block)


def _of_lines(columns, encoders):
    """The encoders. The encoder of a column of sentences reads lines."""

    def of_lines(name, encoder):
        column = columns.get(name)
        if not (isinstance(column, Text) and column.sentences):
            return encoder
        return line_tokenizer.LineTokenizer(encoder.model, encoder.name)

    return {name: of_lines(name, one) for name, one in encoders.items()}


def _block(columns, encoders, rows, ids_of) -> Block:
    """The block of some rows; a class is a row of one place."""
    block = {}
    for place, (name, column) in enumerate(columns.items()):
        values = rows[name]
        if isinstance(column, Text):
            # A text that shows nothing has no tokens, and no sentences.
            is_blank = tf.strings.regex_full_match(values, BLANK)
            shown = tf.where(is_blank, "", values)
            ids = ids_of(place, encoders[name], shown)
            ragged = _ended(ids, column.start)
        elif isinstance(column, Class):
            found = values[:, None] == tf.constant(encoders[name])[None]
            label = tf.argmax(found, axis=1, output_type=tf.int32)  # [rows]
            label = tf.where(tf.reduce_any(found, axis=1), label, UNKNOWN)
            ragged = tf.RaggedTensor.from_tensor(label[:, None])
        elif isinstance(column, Links):
            places = tf.strings.split(
                tf.strings.regex_replace(values, "-", " ")
            )
            ragged = tf.strings.to_number(places, tf.int32)
        else:
            numbers = tf.cast(values, tf.float32)
            numbers = tf.reshape(numbers, [tf.shape(numbers)[0], -1])
            ragged = tf.RaggedTensor.from_tensor(numbers)
        block[input_name(name, column)] = ragged
    return block


def _ended(ids, start: bool) -> tf.RaggedTensor:
    """Ids with END behind, and with START before what the model writes."""

    def constant(value):
        return tf.fill([ids.nrows(), 1], value)

    parts = [ids, constant(END)]
    return tf.concat([constant(START), *parts] if start else parts, axis=1)


def is_text(name: str) -> bool:
    """Whether a block's rows of this name are ids of tokens."""
    return name.endswith("_ids")


def row_lengths(block: Block) -> tuple:
    """Tokens or numbers of each row: what is read, and what is written.

    The longest of several columns that are read counts. Where nothing is
    written, or nothing read, both are the same.
    """
    lengths = {
        name: ids.row_lengths()
        for name, ids in block.items()
        if name not in ("label", "links")
    }
    written = lengths.pop("target_ids", None)
    if not lengths:
        return written, written
    read = tf.reduce_max(tf.stack(list(lengths.values())), axis=0)
    return read, read if written is None else written


def blank_rows(block: Block):
    """Bool [rows]: whether a text of the row has no token but START and END."""
    return _any_text(
        block, lambda name, n: n <= (2 if name == "target_ids" else 1)
    )


def cut_rows(max_length: int, keep: Mapping[str, str]) -> Callable:
    """A function of a block: whether a row is kept and a text of it cut."""

    def is_cut(block):
        return ~blank_rows(block) & _any_text(
            block, lambda name, n: (n > max_length) & (name in keep)
        )

    return is_cut


def _any_text(block, test):
    """Whether a test of name and lengths holds for any text of each row."""
    found = tf.zeros([next(iter(block.values())).nrows()], tf.bool)
    for name, ids in block.items():
        if is_text(name):
            found |= test(name, ids.row_lengths())
    return found


def cut(ids: tf.RaggedTensor, max_length: int, keep: str) -> tf.RaggedTensor:
    """Ids of texts, each with at most so many tokens and END as its last.

    A text that keeps its end loses whole sentences, if it has several. A
    single sentence over the limit loses its beginning.

    Args:
        ids: ragged [rows, None], each row ended by END.
        max_length: the most tokens of a row.
        keep: "start" or "end": which end is kept.
    """
    # In flat tensors: an operation on ragged ones is dozens in the graph, and
    # takes long to trace.
    values, rows = ids.values, ids.value_rowids()  # [tokens]
    lengths = ids.row_lengths()  # [rows]
    places = tf.ragged.range(lengths).values
    if keep == "start":
        last = tf.gather(tf.minimum(lengths, max_length) - 1, rows)
        values = tf.where(places == last, END, values)
        is_kept = places < max_length
    else:
        excess = tf.maximum(lengths - max_length, 0)
        # A sentence begins at the front of a row, or behind an END.
        begins = (places == 0) | tf.roll(values == END, 1, axis=0)
        fits = begins & (places >= tf.gather(excess, rows))
        start = tf.math.unsorted_segment_min(
            tf.where(fits, places, tf.int64.max), rows, ids.nrows()
        )
        start = tf.where(start == tf.int64.max, excess, start)
        is_kept = places >= tf.gather(start, rows)
    return tf.RaggedTensor.from_value_rowids(
        tf.boolean_mask(values, is_kept),
        tf.boolean_mask(rows, is_kept),
        ids.nrows(),
        validate=False,
    )


def filter_by_length(
    max_length: int, keep: Mapping[str, str] = MappingProxyType({})
) -> Transform:
    """Drops rows of which a text is blank or over `max_length` tokens.

    Control tokens count. A row is dropped whole. A model that trained on
    blank targets would answer with nothing. `count` counts the blank ones
    beforehand.

    Args:
        max_length: the most tokens of a text.
        keep: name in the block -> the end of the text that is kept. These
            texts are cut instead, see `cut`.
    """

    @do_not_convert
    def keep_rows(block):
        ends = {name: cut(block[name], max_length, keep[name]) for name in keep}
        block = {**block, **ends}
        too_long = _any_text(block, lambda name, n: n > max_length)
        rows = tf.where(~blank_rows(block) & ~too_long)[:, 0]
        return {name: tf.gather(ids, rows) for name, ids in block.items()}

    return lambda blocks: blocks.map(keep_rows)


def padded(name: str, rows: tf.RaggedTensor, missing) -> tf.Tensor:
    """Rows as one tensor [B, N], with rows that are no examples behind.

    Args:
        name: that of the rows in their block.
        rows: ragged [rows, None].
        missing: how many rows are added.
    """
    # A recurrent kernel must not see a row without any real token: a text
    # that is read is END alone. A text that is written is padding alone, and
    # a label none of the classes.
    added, padding = {
        "target_ids": (PAD, PAD),
        "label": (UNKNOWN, UNKNOWN),
        "links": (NO_LINK, NO_LINK),
    }.get(name, (END, PAD) if is_text(name) else (0.0, 0.0))
    # A link has two places.
    width = 2 if name == "links" else 1
    more = tf.fill([missing, width], tf.cast(added, rows.dtype))
    return tf.concat([rows, more], axis=0).to_tensor(padding)
