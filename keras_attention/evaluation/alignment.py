"""Which source token each target token comes from, and how well one knows.

A link is a pair (source position, target position). The true links of the
corpus `phrases` follow from how it was written; a model's are where its
attention is greatest; IBM Model 1 finds some from counts alone.
"""

import itertools
import re
from collections.abc import Iterable, Sequence

import numpy as np

Link = tuple[int, int]
Span = tuple[int, int]

BYTE = re.compile(r"<0x([0-9A-F]{2})>")
BLANK = "\u2581"  # SentencePiece's sign for a blank.
NULL = -1  # A target token that comes from no source token.


def token_spans(pieces: Sequence[str], text: str) -> list[Span]:
    """Where each piece of a text stands in it.

    Args:
        pieces: SentencePiece's, END left out.
        text: what they spell, normalised.

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
    # What stands at each byte; first the blank before the first word.
    added = len(b"".join(spelt)) - len(text.encode())
    characters = [0] * added + [
        index
        for index, character in enumerate(text)
        for _ in character.encode()
    ]
    if added not in (0, 1) or b"".join(spelt)[added:] != text.encode():
        raise ValueError(
            "Expected pieces that spell the text. Received: "
            f"{list(pieces)} for {text!r}"
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
    """True links of characters as links of tokens.

    Args:
        links: what says the same: spans of the source, of the target.
        source_spans, target_spans: where the tokens stand.

    Returns:
        `(sure, possible)`, as Och and Ney (2003) tell them apart: a link is
        sure where one token says what one or several say on the other side,
        and possible also where several say it on both.
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
    """Positions of the tokens that share a character with one of the parts."""
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
        T positions; `NULL` for a token that looks nowhere.
    """
    looks = attention_weights.any(axis=-1)
    return np.where(looks, attention_weights.argmax(axis=-1), NULL).tolist()


def true_links(
    num_targets: int, sure: set[Link], possible: set[Link]
) -> list[int]:
    """One true source position for each target token: the best there is.

    Where a token says what several source tokens say, one of them is left
    out, so that its error rate is not 0.

    Args:
        num_targets: T.
        sure, possible: from `token_links`.

    Returns:
        T positions: of a sure link, else of a possible one, else `NULL`.
    """
    links = {target: source for source, target in sorted(possible)}
    links |= {target: source for source, target in sorted(sure)}
    return [links.get(target, NULL) for target in range(num_targets)]


def alignment_error_rate(
    aligned: Iterable[tuple[Sequence[int], set[Link], set[Link]]],
) -> float:
    """`AER = 1 - (|A and S| + |A and P|) / (|A| + |S|)`.

    Och and Ney 2003. Deviation: A has no links of target tokens that have
    no true one (blanks and commas), as attention always looks somewhere.

    Args:
        aligned: for each sentence the source position of each target token,
            `NULL` for none; its sure links, its possible links.

    Returns:
        0 for all sure links and only possible ones, up to 1 for none that
        is possible (also where no link is sure and none was made).

    Reference: https://aclanthology.org/J03-1002
    """
    hits = total = 0
    for positions, sure, possible in aligned:
        targets = {target for _, target in possible}
        links = {
            (source, target)
            for target, source in enumerate(positions)
            if source != NULL and target in targets
        }
        hits += len(links & sure) + len(links & possible)
        total += len(links) + len(sure)
    return 1 - hits / max(total, 1)


def ibm_model_1(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]], iterations: int = 5
) -> list[list[int]]:
    """Aligns pairs by which tokens stand in the same pairs, and no more.

    Brown et al. 1993, section 4.1: each target token f was made by one
    source token e of its sentence, or by none, with probability t(f | e),
    all positions being equal. Expectation maximisation, from equal t:

    ```
    c(f, e) = sum over pairs  t(f | e) / sum_e' t(f | e')
    t(f | e) = c(f, e) / sum_f' c(f', e)
    ```

    Args:
        pairs: source ids and target ids; a sentence to be aligned must be
            among them.
        iterations: of expectation maximisation.

    Returns:
        For each pair, the source position of each target token, or `NULL`.

    Reference: https://aclanthology.org/J93-2003
    """
    # All combinations of all pairs in a row, the empty word first.
    sources, targets, counts = [], [], []
    for source, target in pairs:
        words = [NULL, *source]
        sources += words * len(target)
        targets += [token for token in target for _ in words]
        counts += [len(words)] * len(target)
    e, f = np.array(sources, "int64"), np.array(targets, "int64")
    token = np.repeat(np.arange(len(counts)), counts)
    size = f.max(initial=0) + 1
    couples, couple = np.unique((e - NULL) * size + f, return_inverse=True)
    word = couples // size  # the e of each couple
    translation = np.ones(len(couples))
    for _ in range(iterations):
        share = translation[couple]
        share /= np.bincount(token, share)[token]
        expected = np.bincount(couple, share)
        translation = expected / np.bincount(word, expected)[word]
    return _best_of_each(translation[couple], counts, pairs)


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
