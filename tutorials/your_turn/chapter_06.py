"""Chapter 6: the learning rate, with warm-up."""

import math

import numpy as np


def right(step, peak, warmup):
    rate = 0.0
    for _step in range(min(step, warmup)):
        rate += peak / warmup
    return rate if step <= warmup else peak * math.sqrt(warmup / step)


cases = [(step, 0.1, 4) for step in (1, 2, 4, 5, 16, 100)]
mistakes = {
    "There is no warm-up: up to step `warmup` the rate must rise from 0.": (
        lambda step, peak, warmup: peak * min(1, math.sqrt(warmup / step))
    ),
    "There is no warm-up, and the rate of the first steps lies above the peak. "
    "Up to step `warmup` it must rise from 0.": (
        lambda step, peak, warmup: peak * math.sqrt(warmup / step)
    ),
    "The rate never falls: after step `warmup` it must.": (
        lambda step, peak, warmup: min(1, step / warmup) * peak
    ),
    "It falls as one over the step. It must fall as one over its root.": (
        lambda step, peak, warmup: min(step / warmup, warmup / step) * peak
    ),
    "The rate falls at once below its peak: the root must be that of "
    "warmup / step, which is 1 where the warm-up ends.": (
        lambda step, peak, warmup: (
            peak * (step / warmup if step <= warmup else step**-0.5)
        )
    ),
    "It rises and falls, but the peak is missing.": (
        lambda step, peak, warmup: right(step, 1, warmup)
    ),
    "You took the greater of the two. The smaller one is right.": (
        lambda step, peak, warmup: (
            peak * max(step / warmup, math.sqrt(warmup / step))
        )
    ),
}

_lengths = [3, 5, 12]
_rows = [[True] * n + [False] * (max(_lengths) - n) for n in _lengths]
_losses = [2.0] * 10 + [4.0] * 30
_share = 1.0
for _step in range(100):
    _share *= 0.99
answers = {
    "a": float(1 - np.mean(_rows)),
    "b": float(np.mean(_losses)),
    "c": _share,
}
