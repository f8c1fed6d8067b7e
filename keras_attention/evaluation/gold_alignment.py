"""How well attention aligns texts whose words people have linked."""

import collections
import itertools
import os
import re
from collections.abc import Iterable, Sequence

import numpy as np

from keras_attention.data.readers import lines
from keras_attention.evaluation import alignment, hmm_alignment

Pair = tuple[str, str]
Links = tuple[set[alignment.Link], set[alignment.Link]]

LINK = re.compile(r"([0-9]+)([-p])([0-9]+)")


def words(text: str) -> list[str]:
    """The words of a text whose words have spaces between them.

    Only " " divides. The ideographic space, for example, is a word where spaces
    stand around it.
    """
    return [word for word in text.split(" ") if word]


def read_links(path: str | os.PathLike, pairs: Sequence[Pair]) -> list[Links]:
    """The links of a file, such as "1-1 2-3 3p2", in a line for each pair.

    A link has the place of a word of the source, and that of a word of the
    target, both counted from 1. "-" stands in a sure link, and "p" in one that
    is only possible.

    Args:
        path: the file, plain or compressed.
        pairs: the texts, in the order of the lines.

    Returns:
        `(sure, possible)` for each pair, counted from 0. A sure link is
        possible, too.

    Raises:
        ValueError: If the file has another number of lines, if something else
            than a link stands in a line, or if there is no such word.
    """
    rows = list(lines.read_lines(path))
    if len(rows) != len(pairs):
        raise ValueError(
            f"{path} has {len(rows)} lines, and there are {len(pairs)} pairs "
            "of texts. Each pair needs a line of links. It is empty where "
            "nothing is linked."
        )
    return [
        _read_line(f"{path}, line {number}", row, *map(words, pair))
        for number, (row, pair) in enumerate(zip(rows, pairs, strict=True), 1)
    ]


def _read_line(place, row, source, target) -> Links:
    sure, possible = set(), set()
    for text in row.split():
        match = LINK.fullmatch(text)
        if match is None:
            raise ValueError(
                f"{place}: {text!r} is no link. Write 3-5 for a sure link of "
                "the source's word 3 to the target's word 5, and 3p5 for a "
                "possible one. Spaces stand between links."
            )
        link = int(match[1]) - 1, int(match[3]) - 1
        if -1 in link:
            raise ValueError(
                f"{place}: words are counted from 1, so {text!r} is no link. "
                "If the whole file counts from 0, add 1 to each number."
            )
        for side, index, found in zip(
            ("source", "target"), link, (source, target), strict=True
        ):
            if index >= len(found):
                raise ValueError(
                    f"{place}: {text!r} links word {index + 1} of the {side}, "
                    f"which has {len(found)} words. A link names the source's "
                    "word first, and words have spaces between them."
                )
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return sure, possible


def attention_links(
    translator, pairs: Sequence[Pair], truncate: bool = False
) -> list[list[int]]:
    """Where a model looks most, word by word, while it writes given texts.

    A model has tokens. The weight of a target word for a source word is the sum
    over the tokens of the source word, and the mean over those of the target
    word (Clark et al. 2019, section 4.1). END belongs to no word. A token
    belongs to the word whose characters it spells, or to each by its share if
    it spells some of several.

    Args:
        translator: a `Translator`, live or loaded.
        pairs: sources and the translations that it has to write.
        truncate: as for `Translator.align`. A word that is cut off is not
            linked.

    Returns:
        For each pair, the source position of each target word, or
        `alignment.NULL` if its tokens look at no word.

    Raises:
        ValueError: If the vocabulary reads a text otherwise than its words.

    Reference: https://aclanthology.org/W19-4828
    """
    sides = [source for source, _ in pairs], [target for _, target in pairs]
    rows = translator.align(*sides, truncate=truncate)
    spelt = _spelt_words(translator, sides)
    found = []
    for number, (row, pair) in enumerate(zip(rows, pairs, strict=True), 1):
        shares = []
        for name, text, tokens in zip(
            ("source_tokens", "target_tokens"), pair, spelt, strict=True
        ):
            of_words = [tokens[word] for word in words(text)]
            share = _shares(row[name][:-1], of_words)
            if share is None:
                raise ValueError(
                    f"Pair {number}: the vocabulary reads {text!r} otherwise "
                    "than its words one by one, so that it is not known which "
                    "tokens are a word. Leave this pair out."
                )
            shares.append(share)
        source, target = shares
        of_target = target.sum(axis=1, keepdims=True)
        mean = target / np.maximum(of_target, np.finfo("float32").tiny)
        weights = mean @ row["attention"][:-1, :-1] @ source.T
        # Without a word, the source has no greatest weight.
        found.append(
            alignment.best_links(weights)
            if weights.shape[1]
            else [alignment.NULL] * len(weights)
        )
    return found


def _spelt_words(translator, sides) -> list[dict[str, list[str]]]:
    """What the tokens of each word spell, of the sources and of the targets.

    Each word is asked behind an "x": a word that cannot be seen, such as an
    ideographic space, has no tokens by itself, but has some in a text.
    """
    found = [
        dict.fromkeys(itertools.chain.from_iterable(map(words, side)))
        for side in sides
    ]
    # Sources and targets are asked together. What is left over stands alone.
    asked = [("", ""), *itertools.zip_longest(*found, fillvalue="")]
    rows = translator.align(
        *([f"x {word}" for word in side] for side in zip(*asked, strict=True)),
        truncate=True,
    )
    for side, name in enumerate(("source_tokens", "target_tokens")):
        spelt = [_spell(row[name][:-1])[0] for row in rows]
        behind_x = len(spelt[0])
        for pair, characters in zip(asked, spelt, strict=True):
            if pair[side]:
                found[side][pair[side]] = characters[behind_x:]
    return found


def _shares(tokens, spelt_words) -> np.ndarray | None:
    """How much of each token belongs to each word: [words, tokens].

    None if the tokens spell something else than the words. They may end sooner,
    where a text was cut.
    """
    spelt, token_of = _spell(tokens)
    expected, word_of = _spell(spelt_words)
    if spelt != expected[: len(spelt)]:
        return None
    shares = np.zeros((len(spelt_words), len(tokens)))
    counts = collections.Counter(token_of)
    for word, token in zip(word_of, token_of, strict=False):
        shares[word, token] += 1 / counts[token]
    return shares


def _spell(parts: Iterable[Iterable[str]]):
    """The characters of parts, spaces left out, and the part of each."""
    characters = [
        (character, index)
        for index, part in enumerate(parts)
        for character in "".join(part).replace(alignment.BLANK, "")
    ]
    return [one for one, _ in characters], [index for _, index in characters]


def error_rate(found: Iterable[Sequence[int]], gold: Iterable[Links]) -> float:
    """The alignment error rate of links from target to source, in percent.

    Args:
        found: for each pair, the source position of each target word, or
            `alignment.NULL`.
        gold: what `read_links` returns.

    Returns:
        `100 alignment.error_rate` of all links. A link of a target word that
        people linked to nothing is wrong.
    """
    aligned = [
        (
            {
                (source, target)
                for target, source in enumerate(positions)
                if source != alignment.NULL
            },
            *links,
        )
        for positions, links in zip(found, gold, strict=True)
    ]
    return 100 * alignment.error_rate(aligned)


def of_counts(
    pairs: Sequence[Pair],
    gold: Sequence[Links],
    more_pairs: Sequence[Pair] = (),
) -> dict:
    """What attention stands beside: models of counts, and the best links.

    Args:
        pairs: the texts whose links are known.
        gold: their links.
        more_pairs: texts that the models of counts learn from, too.

    Returns:
        The error rates in percent of the hidden Markov model, of IBM Model 1
        and of one true link for each target word; how many pairs both models
        learned from, and how many links are sure, and how many possible.
    """
    ids = [collections.defaultdict(itertools.count().__next__) for _ in "st"]
    numbered = [
        tuple(
            [of_word[word] for word in words(text)]
            for of_word, text in zip(ids, pair, strict=True)
        )
        for pair in itertools.chain(pairs, more_pairs)
    ]
    best = [
        alignment.true_links(len(words(target)), *links)
        for (_, target), links in zip(pairs, gold, strict=True)
    ]
    count = len(pairs)
    hmm = hmm_alignment.hmm_alignment(numbered)[:count]
    model_1 = alignment.ibm_model_1(numbered)[:count]
    return {
        "aer_hmm": error_rate(hmm, gold),
        "aer_ibm_model_1": error_rate(model_1, gold),
        "aer_best": error_rate(best, gold),
        "counted_pairs": len(numbered),
        "sure_links": sum(len(sure) for sure, _ in gold),
        "possible_links": sum(len(possible) for _, possible in gold),
    }
