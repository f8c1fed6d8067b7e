"""Chapter 4: scaled dot-product attention."""

import itertools
import math

import numpy as np

_rng = np.random.default_rng(1)


def right(query, key, value, mask, scale=None, hidden=-math.inf, axis=1):
    T, S = len(query), len(key)
    scale = 1 / math.sqrt(query.shape[1]) if scale is None else scale
    parts = np.zeros((T, S))
    for t, s in itertools.product(range(T), range(S)):
        score = scale * sum(
            q * k for q, k in zip(query[t], key[s], strict=True)
        )
        parts[t, s] = math.exp(score if mask[s] else hidden)
    context = np.zeros((T, value.shape[1]))
    for t, s in itertools.product(range(T), range(S)):
        total = sum(parts[t]) if axis == 1 else sum(parts[:, s])
        context[t] += parts[t, s] / (total or math.nan) * value[s]
    return context


def _ignores_mask(query, key, value, mask):
    return right(query, key, value, np.ones_like(mask))


def _scaled(scale):
    """`scale` is a function of d and of the number of keys."""

    def mistake(query, key, value, mask):
        factor = scale(query.shape[1], len(key))
        return right(query, key, value, mask, scale=factor)

    return mistake


def _scaled_weights(query, key, value, mask):
    context = right(query, key, value, mask, scale=1)
    return context / math.sqrt(query.shape[1])


def _case(T, mask, width, value_width):
    S = len(mask)
    return (
        _rng.normal(size=(T, width)),
        _rng.normal(size=(S, width)),
        _rng.normal(size=(S, value_width)),
        np.array(mask),
    )


cases = [_case(1, [True] * 2, 2, 1), _case(3, [True] * 4 + [False] * 2, 5, 2)]
mistakes = {
    "There is neither a scale nor a mask: divide the scores by the root of d, "
    "and give masked keys a score of minus infinity.": (
        lambda query, key, value, mask: right(
            query, key, value, np.ones_like(mask), scale=1
        )
    ),
    "There is no scale: divide the scores by the root of d.": (
        _scaled(lambda d, S: 1)
    ),
    "You divide by d. Divide by its root.": _scaled(lambda d, S: 1 / d),
    "You multiply by the root of d. Divide by it.": (
        _scaled(lambda d, S: math.sqrt(d))
    ),
    "You divide by the root of the number of keys. d is a query's width.": (
        _scaled(lambda d, S: 1 / math.sqrt(S))
    ),
    "You divide the weights by the root of d, so they no longer sum to 1. "
    "Divide the scores.": _scaled_weights,
    "There is no mask: keys where it is False still have a weight.": (
        _ignores_mask
    ),
    "A masked score of 0 still has a weight, as exp(0) is 1. The score must be "
    "minus infinity.": lambda *inputs: right(*inputs, hidden=0.0),
    "The softmax has the wrong axis: your weights sum to 1 over the queries. "
    "They must sum to 1 over the keys, in each row.": (
        lambda *inputs: right(*inputs, axis=0)
    ),
}


def _products(d):
    """The variance of q . k, whose parts are 1 or -1 by the toss of a coin."""
    sides = [-1, 1]
    each = [q * k for q, k in itertools.product(sides, sides)]
    return d * np.var(each)  # Variances of independent parts add up.


query = np.zeros((1, 2))
keys = np.array([[0.0, 3.0], [1.0, 1.0], [2.0, -2.0]])
values = np.array([[8.0], [80.0], [800.0]])
answers = {
    "a": float(right(query, keys, values, [True] * 3)[0, 0]),
    "b": float(math.sqrt(_products(64))),
    "c": np.zeros((6, 10)).size,
}
