"""Chapter 15: a question that is asked several times."""

import math

import numpy as np

_rng = np.random.default_rng(1)


def right(u, m, c, weights=None, following=None, summed=None, limit=None):
    following = following or (lambda u, o, first: u + o)
    first = u
    for hop in range(limit or len(m)):
        scores = [sum(u * m_i) for m_i in m[hop]]
        p = (weights or _softmax)(scores)
        told = (summed or (lambda m, c: c))(m[hop], c[hop])
        o = sum(p_i * c_i for p_i, c_i in zip(p, told, strict=True))
        u = following(u, o, first)
    return u


def _softmax(scores):
    parts = [math.exp(e) for e in scores]
    return [part / sum(parts) for part in parts]


def _hard(scores):
    return [float(e == max(scores)) for e in scores]


def _scaled(u, m, c):
    def weights(scores):
        return _softmax([e / math.sqrt(len(u)) for e in scores])

    return right(u, m, c, weights=weights)


def _same_question(u, m, c):
    """Every hop is asked the first question; what is found is added up."""
    found = [right(u, m[k : k + 1], c[k : k + 1]) - u for k in range(len(m))]
    return u + sum(found)


def _with(**changes):
    return lambda u, m, c: right(u, m, c, **changes)


def _case(hops, sentences, width):
    m, c = _rng.normal(size=(2, hops, sentences, width))
    return _rng.normal(size=width), m, c


cases = [_case(1, 2, 2), _case(2, 3, 4), _case(3, 5, 4)]
mistakes = {
    "The question is forgotten: the next question is u + o, and not o alone.": (
        _with(following=lambda u, o, first: o)
    ),
    "The next question is the first one plus o. It must be the last one plus "
    "o.": _with(following=lambda u, o, first: first + o),
    "Each hop asks the first question. The second must ask with what the first "
    "has found.": _same_question,
    "There is one hop only. Does `return` stand inside the loop?": (
        _with(limit=1)
    ),
    "There is no softmax: p are the scores.": _with(weights=lambda e: e),
    "Your looks choose one sentence. Here a look is soft: a softmax.": (
        _with(weights=_hard)
    ),
    "You sum m, by which a sentence is found. Sum c, which is what it tells.": (
        _with(summed=lambda m, c: m)
    ),
    "You scale the scores. This network does not.": _scaled,
}


def _l(j, J, k, d):
    return (1 - j / J) - k / d * (1 - 2 * j / J)


def _ceiling(n):
    """One look at a chain of two links: y is x, or one of n - 1 others."""
    return 1 / n * 1 + (n - 1) / n * (1 / (n - 1))


answers = {"a": _ceiling(8), "b": len(range(3 + 1)), "c": _l(1, 4, 2, 4)}
