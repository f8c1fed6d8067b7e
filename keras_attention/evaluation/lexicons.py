"""Which source token writes which target token: IBM Model 1's table."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

NULL = -1  # The id of the empty word.


class Lexicon(NamedTuple):
    """Translation probabilities t(f | e) of IBM Model 1.

    Attributes:
        translation: float [C], t of each couple (e, f) that stands in a pair.
        word: int [C], the e of each couple; the empty word is 0.
        couple: int [N], the couple of each combination of all pairs in a row:
            for each target token, the empty word and then the source tokens.
        counts: the combinations of each target token.
    """

    translation: np.ndarray
    word: np.ndarray
    couple: np.ndarray
    counts: list[int]


def learn(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]], iterations: int
) -> Lexicon:
    """What IBM Model 1 learns from pairs, see `alignment.ibm_model_1`.

    Args:
        pairs: source ids and target ids.
        iterations: how many rounds of expectation maximisation there are.
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
    return Lexicon(translation, word, couple, counts)
