"""Links between source and target tokens, and how many of them are right.

A link is a pair (source position, target position). The true links of the
corpus `phrases` follow from how it was written. A model's link is where its
attention is greatest. IBM Model 1 finds links from counts alone.
"""

import itertools
import re
from collections.abc import Iterable, Sequence

import numpy as np

from keras_attention.evaluation import lexicons

Link = tuple[int, int]
Span = tuple[int, int]

BYTE = re.compile(r"<0x([0-9A-F]{2})>")
BLANK = "\u2581"  # SentencePiece's sign for a space.
NULL = lexicons.NULL  # A target token that comes from no source token.


def token_spans(pieces: Sequence[str], text: str) -> list[Span]:
    """The place of each piece in its text.

    Args:
        pieces: SentencePiece's, END left out.
        text: the normalised text that they spell.

    Returns:
        (start, end) in characters for each piece.

    Raises:
        ValueError: If the pieces do not spell the text.
    """
    spelt = [
        bytes([int(byte[1], 16)])
        if (byte := BYTE.fullmatch(piece))
        else piece.replace(BLANK, " ").encode()
        for piece in pieces
    ]
    # The character at each byte, after the space before the first word.
    added = len(b"".join(spelt)) - len(text.encode())
    characters = [0] * added + [
        index
        for index, character in enumerate(text)
        for _ in character.encode()
    ]
    if added not in (0, 1) or b"".join(spelt)[added:] != text.encode():
        raise ValueError(
            f"The pieces {list(pieces)} do not spell the text {text!r}."
        )
    ends = np.cumsum([len(piece) for piece in spelt]).tolist()
    return [
        (characters[start], characters[end - 1] + (end > added))
        for start, end in itertools.pairwise([0, *ends])
    ]


def token_links(
    links: Iterable[tuple[list[Span], list[Span]]],
    source_spans: Sequence[Span],
    target_spans: Sequence[Span],
) -> tuple[set[Link], set[Link]]:
    """Turns true links of characters into links of tokens.

    Args:
        links: pairs (spans of the source, spans of the target) that say the
            same.
        source_spans, target_spans: the places of the tokens.

    Returns:
        `(sure, possible)`, as Och and Ney (2003) tell them apart. A link is
        sure if one token on a side says the same as one or several tokens on
        the other. A link is possible also if several tokens on each side say
        the same.
    """
    sure, possible = set(), set()
    for source_parts, target_parts in links:
        sources = _touching(source_spans, source_parts)
        targets = _touching(target_spans, target_parts)
        block = {(s, t) for s in sources for t in targets}
        possible |= block
        if min(len(sources), len(targets)) == 1:
            sure |= block
    return sure, possible


def _touching(spans, parts):
    """The positions of the tokens that share a character with a part."""
    return [
        position
        for position, (start, end) in enumerate(spans)
        if any(start < last and first < end for first, last in parts)
    ]


def best_links(attention_weights: np.ndarray) -> list[int]:
    """The source position where each target token looks most.

    Args:
        attention_weights: [T, S].

    Returns:
        T positions. A token that looks nowhere has the position `NULL`.
    """
    looks = attention_weights.any(axis=-1)
    return np.where(looks, attention_weights.argmax(axis=-1), NULL).tolist()


def true_links(
    num_targets: int, sure: set[Link], possible: set[Link]
) -> list[int]:
    """The best links that have one source position for each target token.

    If a target token says the same as several source tokens, only one of them
    is linked. So the error rate of these links is not 0.

    Args:
        num_targets: T.
        sure, possible: from `token_links`.

    Returns:
        T positions: that of a sure link, or else of a possible one, or else
        `NULL`.
    """
    links = {target: source for source, target in sorted(possible)}
    links |= {target: source for source, target in sorted(sure)}
    return [links.get(target, NULL) for target in range(num_targets)]


def error_rate(
    aligned: Iterable[tuple[set[Link], set[Link], set[Link]]],
) -> float:
    """`AER = 1 - (|A and S| + |A and P|) / (|A| + |S|)`.

    A are the links that were made, S the sure ones, P the possible ones (Och
    and Ney 2003). Counts are summed over all sentences.

    Args:
        aligned: A, S and P of each sentence. S is part of P.

    Returns:
        A share from 0 to 1. It is 0 if all sure links were made, and only
        possible ones. It is 1 if no link is possible, and also if no link is
        sure and none was made.

    Reference: https://aclanthology.org/J03-1002
    """
    hits = total = 0
    for links, sure, possible in aligned:
        hits += len(links & sure) + len(links & possible)
        total += len(links) + len(sure)
    return 1 - hits / max(total, 1)


def alignment_error_rate(
    aligned: Iterable[tuple[Sequence[int], set[Link], set[Link]]],
) -> float:
    """The error rate of tokens, of which some have no true link.

    Deviation from `error_rate`: A has no links of target tokens without a true
    link, such as spaces and commas, because attention always looks somewhere.

    Args:
        aligned: for each sentence, the source position of each target token
            (`NULL` for none), the sure links and the possible links.

    Returns:
        As `error_rate`.
    """
    rows = []
    for positions, sure, possible in aligned:
        targets = {target for _, target in possible}
        links = {
            (source, target)
            for target, source in enumerate(positions)
            if source != NULL and target in targets
        }
        rows.append((links, sure, possible))
    return error_rate(rows)


def ibm_model_1(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]], iterations: int = 5
) -> list[list[int]]:
    """Aligns pairs. It knows only which tokens stand in the same pairs.

    By Brown et al. 1993, section 4.1, one source token e of the sentence, or
    none, makes each target token f with probability t(f | e). All positions are
    equal. Expectation maximisation begins with equal t:

    ```
    c(f, e) = sum over pairs  t(f | e) / sum_e' t(f | e')
    t(f | e) = c(f, e) / sum_f' c(f', e)
    ```

    Args:
        pairs: source ids and target ids, also those of the sentences to be
            aligned.
        iterations: how many rounds of expectation maximisation there are.

    Returns:
        For each pair, the source position of each target token, or `NULL`.

    Reference: https://aclanthology.org/J93-2003
    """
    lexicon = lexicons.learn(pairs, iterations)
    probabilities = lexicon.translation[lexicon.couple]
    return _best_of_each(probabilities, lexicon.counts, pairs)


def _best_of_each(probabilities, counts, pairs):
    """The likeliest source position of each target token of each pair."""
    best = [
        int(choices.argmax()) - 1  # The empty word is the first.
        for choices in np.split(probabilities, np.cumsum(counts)[:-1])
        if len(choices)
    ]
    ends = np.cumsum([len(targets) for _, targets in pairs])
    return [
        best[end - len(targets) : end]
        for end, (_, targets) in zip(ends, pairs, strict=True)
    ]
