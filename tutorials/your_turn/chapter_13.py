"""Chapter 13: RoPE."""

import cmath
import math

import numpy as np

_rng = np.random.default_rng(1)


def right(x, places, theta=None, sign=1):
    theta = theta or (lambda j, d: 10000.0 ** (-2 * j / d))
    d = x.shape[1]
    result = np.zeros_like(x)
    for row, place in enumerate(places):
        for j in range(d // 2):
            pair = complex(x[row, 2 * j], x[row, 2 * j + 1])
            pair *= cmath.exp(sign * 1j * place * theta(j, d))
            result[row, 2 * j : 2 * j + 2] = pair.real, pair.imag
    return result


def _with(**changes):
    return lambda x, places: right(x, places, **changes)


def _without_turn(x, places):
    """cos and sin, but with two signs alike: no rotation."""
    result = np.zeros_like(x)
    d = x.shape[1]
    for row, place in enumerate(places):
        for j in range(d // 2):
            first, second = x[row, 2 * j : 2 * j + 2]
            angle = place * 10000.0 ** (-2 * j / d)
            result[row, 2 * j] = first * math.cos(angle) + second * math.sin(
                angle
            )
            result[row, 2 * j + 1] = first * math.sin(
                angle
            ) + second * math.cos(angle)
    return result


cases = [
    (_rng.normal(size=(1, 2)), np.array([1])),
    (_rng.normal(size=(3, 8)), np.array([0, 3, 20])),
]
mistakes = {
    "You turn the other way. The score would be the same, but the formula "
    "multiplies by exp(i t theta), with a plus.": _with(sign=-1),
    "All pairs turn at one speed. Pair j has its own theta.": (
        _with(theta=lambda j, d: 1.0)
    ),
    "The speeds are wrong: the exponent is -2j/d, and j counts pairs.": (
        _with(theta=lambda j, d: 10000.0 ** (-j / d))
    ),
    "The speeds grow. The exponent is negative: later pairs are slower.": (
        _with(theta=lambda j, d: 10000.0 ** (2 * j / d))
    ),
    "The places do not count: the angle is the place times theta.": (
        lambda x, places: right(x, np.ones_like(places))
    ),
    "This is no rotation: one of the two sines has a minus.": _without_turn,
}


def _bucket(n, N=4, M=8):
    if n < N / 2:
        return n
    rest = N / 2 * math.log(2 * n / N) / math.log(2 * M / N)
    return min(N - 1, N // 2 + math.floor(rest))


_slopes = [2.0 ** (-8 * h / 8) for h in range(1, 9)]
_turn = right(np.array([[1.0, 0.0] * 4]), [10])[0, 2:4]  # Pair j = 1 of d = 8.
answers = {
    "a": -_slopes[0] * 6,
    "b": _bucket(5),
    "c": math.atan2(_turn[1], _turn[0]),
}
