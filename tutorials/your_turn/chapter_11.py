"""Chapter 11: two texts whose words ask each other."""

import math

import numpy as np

_rng = np.random.default_rng(1)


def right(a, b, beta_sums=None, alpha_sums=None):
    S, T = len(a), len(b)
    parts = np.zeros((S, T))
    for i in range(S):
        for j in range(T):
            parts[i, j] = math.exp(
                sum(x * y for x, y in zip(a[i], b[j], strict=True))
            )
    beta_sums = beta_sums or _over_j
    alpha_sums = alpha_sums or _over_i
    result = np.zeros((S + T, a.shape[1]))
    for i in range(S):
        for j in range(T):
            result[i] += parts[i, j] / beta_sums(parts, i, j) * b[j]
            result[S + j] += parts[i, j] / alpha_sums(parts, i, j) * a[i]
    return result


def _over_j(parts, i, j):
    return sum(parts[i])


def _over_i(parts, i, j):
    return sum(parts[:, j])


def _over_both(parts, i, j):
    return sum(sum(parts))


def _one(parts, i, j):
    return 1.0


def _with(**changes):
    return lambda a, b: right(a, b, **changes)


cases = [
    (_rng.normal(size=(2, 1)), _rng.normal(size=(2, 1))),
    (_rng.normal(size=(2, 3)), _rng.normal(size=(4, 3))),
]
mistakes = {
    "alpha has the softmax of beta. A word of b asks the words of a, so its "
    "weights sum to 1 over i: the axis is 0.": _with(alpha_sums=_over_j),
    "beta has the softmax of alpha. A word of a asks the words of b, so its "
    "weights sum to 1 over j: the axis is 1.": _with(beta_sums=_over_i),
    "The two axes have changed places: beta sums over j, alpha over i.": (
        _with(beta_sums=_over_i, alpha_sums=_over_j)
    ),
    "The softmax has no axis: the weights of each word must sum to 1.": (
        _with(beta_sums=_over_both, alpha_sums=_over_both)
    ),
    "The weights do not sum to 1: divide by the sum of the exponentials.": (
        _with(beta_sums=_one, alpha_sums=_one)
    ),
    "alpha stands before beta. beta is asked for first.": (
        lambda a, b: np.roll(right(a, b), len(b), axis=0)
    ),
}

_hops = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
_bag = np.mean([(1, 0), (1, 0), (0, 1), (1, 0)], axis=0)
answers = {
    "a": sum(1 for _i in range(6) for _j in range(4)),
    "b": float(_bag[0]),
    "c": int(np.square(_hops @ _hops.T - np.eye(2)).sum()),
}
