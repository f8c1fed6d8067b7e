"""Chapter 3: the soft search, with a mask."""

import math

import numpy as np

_rng = np.random.default_rng(1)


def right(s, h, mask, W, U, v, squash=np.tanh, weights=None):
    scores = []
    for h_j in h:
        inner = [
            squash(sum(s * W[:, i]) + sum(h_j * U[:, i])) for i in range(len(v))
        ]
        scores.append(sum(v_i * x for v_i, x in zip(v, inner, strict=True)))
    alpha = (weights or _softmax)(scores, mask)
    context = np.zeros(h.shape[1])
    for alpha_j, h_j in zip(alpha, h, strict=True):
        context += alpha_j * h_j
    return context


def _softmax(scores, mask):
    parts = [
        math.exp(e) if is_real else 0.0
        for e, is_real in zip(scores, mask, strict=True)
    ]
    return [part / sum(parts) for part in parts]


def _ignores_mask(scores, mask):
    return _softmax(scores, [True] * len(mask))


def _masks_after(scores, mask):
    alpha = _ignores_mask(scores, mask)
    return [a * is_real for a, is_real in zip(alpha, mask, strict=True)]


def _scores_of_zero(scores, mask):
    masked = [e * is_real for e, is_real in zip(scores, mask, strict=True)]
    return _ignores_mask(masked, mask)


def _hides_the_real(scores, mask):
    # Where nothing is hidden, nothing is left: 0 / 0.
    if all(mask):
        return [math.nan] * len(mask)
    return _softmax(scores, [not is_real for is_real in mask])


def _exponentials(scores, mask):
    return [math.exp(e) * m for e, m in zip(scores, mask, strict=True)]


def _bare_scores(scores, mask):
    return [e * is_real for e, is_real in zip(scores, mask, strict=True)]


def _with(**changes):
    return lambda *inputs: right(*inputs, **changes)


def _case(mask, *sizes):
    Dq, Dh, units = sizes
    return (
        _rng.normal(size=Dq),
        _rng.normal(size=(len(mask), Dh)),
        np.array(mask),
        _rng.normal(size=(Dq, units)),
        _rng.normal(size=(Dh, units)),
        _rng.normal(size=units),
    )


cases = [
    _case([True, True], 1, 2, 1),
    _case([True, True, True, False, False], 3, 4, 5),
]
mistakes = {
    "There is no mask: positions where it is False still have a weight.": (
        _with(weights=_ignores_mask)
    ),
    "The mask comes after the softmax, so the weights that are left do not sum "
    "to 1. Mask the scores.": _with(weights=_masks_after),
    "A masked score of 0 still has a weight, as exp(0) is 1. The score must be "
    "minus infinity.": _with(weights=_scores_of_zero),
    "Your mask hides what is real. True means: may be looked at.": (
        _with(weights=_hides_the_real)
    ),
    "The weights do not sum to 1: divide by the sum of the exponentials.": (
        _with(weights=_exponentials)
    ),
    "There is no softmax: these are the scores, not weights.": (
        _with(weights=_bare_scores)
    ),
    "There is no tanh, so the query cancels in the softmax.": (
        _with(squash=lambda x: x)
    ),
    "The query s is not used.": (
        lambda s, *others: right(np.zeros_like(s), *others)
    ),
}


def _context(score):
    """Of two annotations, 0 and 10; the first has the score 0."""
    alpha = _softmax([0.0, score], [True, True])
    return alpha[0] * 0 + alpha[1] * 10


_scores = [math.log(1), math.log(3), math.log(4)]
answers = {
    "a": _softmax(_scores, [True, True, True])[2],
    "b": _softmax(_scores, [True, True, False])[1],
    "c": (_context(1e-4) - _context(-1e-4)) / 2e-4,
}
