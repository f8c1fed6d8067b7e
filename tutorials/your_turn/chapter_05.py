"""Chapter 5: several heads that do not look ahead."""

import itertools
import math

import numpy as np

_rng = np.random.default_rng(1)


def right(query, key, value, num_heads, may_look=None, scale=None, axis=1):
    may_look = may_look or (lambda t, s: s <= t)
    T, width = query.shape
    d = width // num_heads
    scale = 1 / math.sqrt(d) if scale is None else scale
    result = np.zeros((T, width))
    for head in range(num_heads):
        columns = range(head * d, head * d + d)
        parts = np.zeros((T, T))
        for t, s in itertools.product(range(T), range(T)):
            if may_look(t, s):
                score = sum(query[t, i] * key[s, i] for i in columns)
                parts[t, s] = math.exp(scale * score)
        for t, s in itertools.product(range(T), range(T)):
            total = sum(parts[t]) if axis == 1 else sum(parts[:, s])
            weight = parts[t, s] / (total or math.nan)
            for i in columns:
                result[t, i] += weight * value[s, i]
    return result


def _with(**changes):
    return lambda *inputs: right(*inputs, **changes)


def _scaled_by_whole_width(query, key, value, num_heads):
    scale = 1 / math.sqrt(query.shape[1])
    return right(query, key, value, num_heads, scale=scale)


def _scores_of_zero(query, key, value, num_heads):
    T, width = query.shape
    d = width // num_heads
    result = np.zeros((T, width))
    for head, t in itertools.product(range(num_heads), range(T)):
        columns = slice(head * d, head * d + d)
        scores = [
            query[t, columns] @ key[s, columns] / math.sqrt(d)
            if s <= t
            else 0.0
            for s in range(T)
        ]
        parts = [math.exp(score) for score in scores]
        for part, v in zip(parts, value[:, columns], strict=True):
            result[t, columns] += part / sum(parts) * v
    return result


def _case(T, width, num_heads):
    return (*_rng.normal(size=(3, T, width)), num_heads)


cases = [_case(2, 1, 1), _case(4, 6, 2)]
mistakes = {
    "There is neither a scale nor a mask: divide the scores by the root of a "
    "head's width, and give words that come later a score of minus infinity.": (
        _with(may_look=lambda t, s: True, scale=1)
    ),
    "There is no mask: words look at words that come after them.": (
        _with(may_look=lambda t, s: True)
    ),
    "The mask is the wrong way round: words look at what comes after them, and "
    "not at what comes before.": _with(may_look=lambda t, s: s >= t),
    "A word must see itself. The first word has nobody else to look at, so its "
    "weights became 0 / 0.": _with(may_look=lambda t, s: s < t),
    "A masked score of 0 still has a weight, as exp(0) is 1. The score must be "
    "minus infinity.": _scores_of_zero,
    "There is no scale: divide the scores by the root of a head's width.": (
        _with(scale=1)
    ),
    "You divide by the root of the whole width. A head's own width is that of "
    "its q.": _scaled_by_whole_width,
    "The softmax has the wrong axis: your weights sum to 1 over the words that "
    "ask. They must sum to 1 over the words that are asked, in each row.": (
        _with(axis=0)
    ),
}

_pairs = [(t, s) for t in range(6) for s in range(6) if s <= t]
_scores = np.zeros((8, 100, 100))
_kernels = [
    np.zeros((512, 512)) for _name in ("query", "key", "value", "output")
]
answers = {
    "a": len(_pairs),
    "b": _scores.size,
    "c": sum(kernel.size for kernel in _kernels),
}
