"""Chapter 11b: what an LSTMN finds when it looks back."""

import math

import numpy as np

_rng = np.random.default_rng(1)


def _scores(h, x, found, W_h, W_x, W_found, v, squash=math.tanh):
    scores = []
    for h_i in h:
        score = 0.0
        for n in range(len(v)):
            asked = sum(h_i[d] * W_h[d, n] for d in range(len(h_i)))
            asked += sum(x[e] * W_x[e, n] for e in range(len(x)))
            asked += sum(found[d] * W_found[d, n] for d in range(len(found)))
            score += v[n] * squash(asked)
        scores.append(score)
    return scores


def right(h, c, *asking, squash=math.tanh, is_divided=True):
    parts = [math.exp(a) for a in _scores(h, *asking, squash=squash)]
    total = sum(parts) if is_divided else 1.0
    result = np.zeros((2, h.shape[1]))
    for part, h_i, c_i in zip(parts, h, c, strict=True):
        result[0] += part / total * h_i
        result[1] += part / total * c_i
    return result


def _without(place):
    """The same with zeros for the input at this place."""

    def function(*inputs):
        inputs = list(inputs)
        inputs[place] = 0 * inputs[place]
        return right(*inputs)

    return function


def _best(h, c, *asking):
    scores = _scores(h, *asking)
    best = scores.index(max(scores))
    return np.stack([h[best], c[best]])


def _case(words, units, width):
    h, c = _rng.normal(size=(2, words, units))
    x, found = _rng.normal(size=width), _rng.normal(size=units)
    W_h, W_found = _rng.normal(size=(2, units, units))
    W_x, v = _rng.normal(size=(width, units)), _rng.normal(size=units)
    return h, c, x, found, W_h, W_x, W_found, v


cases = [_case(2, 1, 1), _case(4, 3, 2)]
mistakes = {
    "There is no tanh.": lambda *inputs: right(*inputs, squash=float),
    "The embedding x is not used: it is a part of the question.": _without(2),
    "What the word before found is not used: it is a part of the question.": (
        _without(3)
    ),
    "The earlier words are not asked: without W_h all have the same score.": (
        _without(4)
    ),
    "The scores are made from the memories c. The states h are asked.": (
        lambda h, c, *asking: right(c, h, *asking)[::-1]
    ),
    "The weights do not sum to 1: divide by the sum of the exponentials.": (
        lambda *inputs: right(*inputs, is_divided=False)
    ),
    "You choose the best word alone. The weights sum up all.": _best,
    "The sum of the h stands twice. The memories c have the same weights.": (
        lambda *inputs: right(*inputs)[[0, 0]]
    ),
    "The sum of the c stands first. The h are the first row.": (
        lambda *inputs: right(*inputs)[::-1]
    ),
}

answers = {
    "a": sum(1 for t in range(1, 10) for _i in range(1, t)),
    "b": sum(1 for _t in range(9) for _s in range(9)),
    "c": float(np.mean([1, 2, 6])),
}
