"""Minimum Bayes risk: of several answers, the one that is most like the others.

References:
    Kumar and Byrne (2004), Minimum Bayes-risk decoding for statistical machine
    translation.
    Eikema and Aziz (2020), Is MAP decoding all you need? The inadequacy of the
    mode in neural machine translation (arXiv 2005.10283).
"""

import collections
from collections.abc import Sequence

from sacrebleu import metrics


def minimum_bayes_risk(candidates: Sequence[Sequence[str]]) -> list[str]:
    """Chooses an answer of each row by chrF.

    `h* = argmax_h sum_y u(h, y)` over all candidates h and y of a row, where
    u is sacrebleu's sentence chrF of h with y as its reference. A candidate
    that stands there twice counts twice, as samples should; so each y has the
    same weight. Of equal candidates the first one is chosen.

    Args:
        candidates: the answers of each row, such as samples or an n-best list.

    Returns:
        One answer for each row; "" for a row without candidates.

    Raises:
        ValueError: If a row is one text, not a list of texts.

    Example:

    >>> minimum_bayes_risk([["a red dog", "the red cat", "a red cat"]])
    ['the red cat']
    """
    chrf = metrics.CHRF()
    return [_most_like_all(chrf, row) for row in candidates]


def _most_like_all(chrf, texts) -> str:
    if isinstance(texts, str):
        raise ValueError(
            "Each row holds several texts. Put the candidates of a row in a "
            f"list. Received: {texts[:50]!r}"
        )
    counts = collections.Counter(texts)
    if len(counts) < 2:
        return next(iter(counts), "")
    gains = {
        text: sum(
            count * chrf.sentence_score(text, [other]).score
            for other, count in counts.items()
        )
        for text in counts
    }
    return max(gains, key=gains.__getitem__)
