"""Links of the words of training pairs: where a translator should look.

They come from a file, as word aligners such as fast_align write it, or from a
hidden Markov model that reads the training pairs. `objectives.GuidedObjective`
lets the model's attention follow them (Chen et al. 2016).

Reference: https://arxiv.org/abs/1607.01628
"""

import collections
import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from keras_attention.config import checks
from keras_attention.data import columns, corpora
from keras_attention.data.readers import lines
from keras_attention.evaluation import alignment, hmm_alignment
from keras_attention.evaluation.gold_alignment import words
from keras_attention.tokens import END, START

LINK = re.compile(r"([0-9]+)-([0-9]+)")
BLOCK_SIZE = 1000
# The word of a token that belongs to none.
NO_WORD = -2


def with_links(corpus: corpora.Corpus, links: str, tokenizers: tuple):
    """A corpus whose training rows have links, in the column "links".

    A pair has no links if its vocabulary divides a text otherwise than its
    spaces do. How many these are is printed. Rows of validation have none.

    Args:
        corpus: pairs of texts.
        links: a file with a line for each training pair, or "hmm".
        tokenizers: of source and target.

    Raises:
        ValueError: If there is no file, if it has another number of lines, if
            something else than a link stands in a line, or if there is no such
            word.
    """
    checks.check_links(links)
    found, is_whole = [], []
    rows = _of_hmm(corpus) if links == "hmm" else _of_file(links, corpus)
    for pairs in _blocks(zip(rows, _pairs(corpus), strict=True)):
        of_block, texts = zip(*pairs, strict=True)
        found += of_block
        sides = zip(zip(*texts, strict=True), tokenizers, strict=True)
        counted = [_is_divided_at_spaces(*side) for side in sides]
        is_whole += np.logical_and(*counted).tolist()
    strange = len(is_whole) - sum(is_whole)
    if strange:
        print(
            f"{strange:,} of {len(is_whole):,} training pairs train without "
            "guided alignment: the vocabulary divides their words otherwise "
            "than spaces do."
        )
    column = tf.data.Dataset.from_tensor_slices(
        np.where(is_whole, np.array(found, object), "")
    )
    train = tf.data.Dataset.zip(corpus.splits["train"], column)
    splits = {
        "train": train.map(lambda pair, links: {**pair, "links": links}),
        "validation": corpus.splits["validation"].map(
            lambda pair: {**pair, "links": ""}
        ),
    }
    return dataclasses.replace(corpus, splits=corpus.splits | splits)


def links_of_tokens(
    source_tokenizer, target_tokenizer
) -> Callable[[columns.Block], columns.Block]:
    """A function of a block: links of words become links of their tokens.

    If two words are linked, each token of the one is linked to each token of
    the other. The place of a target token is that of its label, so that START
    has none.
    """
    begins = [
        tf.constant(tokenizer.begins_word)
        for tokenizer in (source_tokenizer, target_tokenizer)
    ]

    @columns.do_not_convert
    def of_tokens(block):
        links = block["links"].to_tensor(columns.NO_LINK)  # [rows, 2 N]
        labels = block["target_ids"][:, 1:]
        is_in = [
            tf.cast(
                links[:, side::2, None] == _words_of(ids, begin)[:, None],
                tf.float32,
            )
            for side, (ids, begin) in enumerate(
                zip((block["source_ids"], labels), begins, strict=True)
            )
        ]  # [rows, N, S], [rows, N, T]
        is_linked = tf.matmul(*is_in, transpose_a=True) > 0  # [rows, S, T]
        found = tf.where(is_linked)  # [links, 3]
        pairs = tf.RaggedTensor.from_value_rowids(
            tf.cast(found[:, 1:], tf.int32),
            found[:, 0],
            tf.cast(block["links"].nrows(), tf.int64),
            validate=False,
        )
        return {**block, "links": pairs.merge_dims(1, 2)}

    return of_tokens


def _words_of(ids: tf.RaggedTensor, begins: tf.Tensor) -> tf.Tensor:
    """The number of the word of each token: int32 [rows, T]."""
    is_begin = tf.cast(tf.gather(begins, ids.values), tf.int32)
    is_begin = ids.with_values(is_begin).to_tensor()  # [rows, T]
    numbers = tf.cumsum(is_begin, axis=1) - 1
    dense = ids.to_tensor(END)
    is_word = (dense != END) & (dense != START) & (numbers >= 0)
    return tf.where(is_word, numbers, NO_WORD)


def _is_divided_at_spaces(texts, tokenizer) -> np.ndarray:
    """Whether a vocabulary finds as many words in each text: bool [rows]."""
    ids = tokenizer.tokenize(tf.constant(texts))
    begins = tf.gather(tf.constant(tokenizer.begins_word), ids)
    counts = tf.reduce_sum(tf.cast(begins, tf.int32), axis=1)
    return counts.numpy() == [len(words(text)) for text in texts]


def _pairs(corpus) -> Iterator[tuple[str, str]]:
    sides = (corpus.texts("train", name) for name in ("source", "target"))
    return zip(*sides, strict=True)


def _blocks(rows) -> Iterator[list]:
    rows = iter(rows)
    while block := list(itertools.islice(rows, BLOCK_SIZE)):
        yield block


def _of_hmm(corpus) -> Iterator[str]:
    """The links that a hidden Markov model finds in all training pairs.

    Raises:
        ValueError: If spaces divide no text of a side.
    """
    ids = [collections.defaultdict(itertools.count().__next__) for _ in "st"]
    numbered = [
        tuple(
            [of_word[word] for word in words(text)]
            for of_word, text in zip(ids, pair, strict=True)
        )
        for pair in _pairs(corpus)
    ]
    for name, texts in zip(
        ("source", "target"), zip(*numbered, strict=True), strict=True
    ):
        if max(map(len, texts)) < 2:
            raise ValueError(
                f"No text of the {name} has two words, as spaces divide them, "
                "so hmm has nothing to link. Divide the words of the corpus by "
                "spaces, or leave guided_alignment out."
            )
    print("A hidden Markov model links the words of the training pairs.")
    for positions in hmm_alignment.hmm_alignment(numbered):
        yield " ".join(
            f"{source}-{target}"
            for target, source in enumerate(positions)
            if source != alignment.NULL
        )


def _of_file(path, corpus) -> Iterator[str]:
    """The lines of a file of links, checked."""
    size, number = corpus.sizes["train"], 0
    rows, pairs = lines.read_lines(path), _pairs(corpus)
    for number, row in enumerate(rows, 1):
        pair = next(pairs, None)
        if pair is None:
            continue
        for text in row.split():
            _check_link(f"{path}, line {number}", text, pair)
        yield row
    if number != size:
        raise ValueError(
            f"{path} has {number:,} lines, and there are {size:,} training "
            "pairs. Each pair needs a line of links. It is empty where nothing "
            "is linked."
        )


def _check_link(place, text, pair) -> None:
    match = LINK.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{place}: {text!r} is no link. Write 0-2 for a link of the "
            "source's word 0 to the target's word 2. Spaces stand between "
            "links."
        )
    sides = zip(("source", "target"), match.groups(), pair, strict=True)
    for side, index, found in sides:
        count = len(words(found))
        if int(index) >= count:
            raise ValueError(
                f"{place}: {text!r} links word {index} of the {side}, which "
                f"has {count} words, counted from 0. A link names the source's "
                "word first, and words have spaces between them. If the whole "
                "file counts from 1, take 1 from each number."
            )
