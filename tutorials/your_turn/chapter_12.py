"""Chapter 12: a causal convolution with gaps."""

import numpy as np

_rng = np.random.default_rng(1)


def right(x, kernel, dilation):
    """Copies of the text, each moved to the right, weighed and added."""
    y = np.zeros(len(x))
    for weight, back in zip(kernel, _distances(kernel, dilation), strict=True):
        y += weight * _moved(x, back)
    return y


def _distances(kernel, dilation):
    """How far back each place of the window lies, the oldest first."""
    return [dilation * place for place in range(len(kernel))][::-1]


def _moved(x, back):
    """What stood `back` places before; 0 outside of the text."""
    T = len(x)
    return np.concatenate([np.zeros(T), x, np.zeros(T)])[
        T - back : 2 * T - back
    ]


def _at(distances):
    def mistake(x, kernel, dilation):
        y = np.zeros(len(x))
        places = distances(len(kernel), dilation)
        for weight, back in zip(kernel, places, strict=True):
            if abs(back) <= len(x):
                y += weight * _moved(x, back)
        return y

    return mistake


cases = [
    (_rng.normal(size=4), _rng.normal(size=2), 1),
    (_rng.normal(size=9), _rng.normal(size=3), 2),
    (_rng.normal(size=9), _rng.normal(size=3), 3),
]
mistakes = {
    "Your window looks ahead. It must end at word t itself.": (
        _at(lambda k, d: [-j * d for j in range(k)])
    ),
    "Your window lies around word t, so half of it looks ahead. It must end at "
    "word t itself.": _at(lambda k, d: [(k // 2 - j) * d for j in range(k)]),
    "The kernel is the wrong way round: its last place is word t itself.": (
        _at(lambda k, d: [j * d for j in range(k)])
    ),
    "There are no gaps: a place of the window is `dilation` words from the "
    "next one.": _at(lambda k, d: [k - 1 - j for j in range(k)]),
    "Your window ends before word t. Its last place is word t itself.": (
        _at(lambda k, d: [(k - j) * d for j in range(k)])
    ),
    "You add the dilation. Multiply the distance by it.": (
        _at(lambda k, d: [k - 1 - j + d for j in range(k)])
    ),
}


def _seen(dilations, size):
    """How many words the last output sees, with a window of that size."""
    seen = np.zeros(200)
    seen[-1] = 1
    for dilation in dilations:
        # From the output back: who sees a word, sees its window.
        seen = right(seen[::-1], np.ones(size), dilation)[::-1]
    return int(np.count_nonzero(seen))


answers = {
    "a": _seen([1] * 4, 3),
    "b": _seen([1, 2, 4, 8], 3),
    "c": next(L for L in range(1, 99) if _seen([1] * L, 5) > 12),
}
