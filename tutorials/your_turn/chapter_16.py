"""Chapter 16: the sum over all paths, with logarithms."""

import itertools
import math

import numpy as np

_rng = np.random.default_rng(1)


def right(log_token, log_blank, last_blank=True, total=np.logaddexp.reduce):
    """Goes through all paths, one after the other."""
    S, T = log_token.shape[0], log_token.shape[1] - 1
    paths = []
    for steps in itertools.combinations_with_replacement(range(S), T):
        log_p = 0.0
        for i, j in enumerate(steps):
            log_p += log_token[j, i]
        for j in range(S if last_blank else S - 1):
            # This blank comes when the tokens up to step j are written.
            log_p += log_blank[j, sum(step <= j for step in steps)]
        paths.append(log_p)
    return float(total(paths))


def _lattice(log_token, log_blank, joined=np.logaddexp, blank_at=1, token_at=1):
    alpha = np.full(log_token.shape, -np.inf)
    alpha[0, 0] = 0
    for j, i in np.ndindex(alpha.shape):
        ways = []
        if j:
            ways.append(alpha[j - 1, i] + log_blank[j - blank_at, i])
        if i:
            ways.append(alpha[j, i - 1] + log_token[j, i - token_at])
        if ways:
            alpha[j, i] = ways[0] if len(ways) == 1 else joined(*ways)
    return alpha[-1, -1] + log_blank[-1, -1]


def _sum_of_logarithms(log_token, log_blank):
    return _lattice(log_token, log_blank, joined=lambda a, b: a + b)


def _only_last(log_token, log_blank):
    return _lattice(log_token, log_blank, joined=lambda a, b: b)


def _case(S, T):
    token = _rng.uniform(0.1, 0.9, size=(S, T + 1))
    token[:, -1] = 0
    blank = _rng.uniform(0.1, 0.9) * (1 - token)
    with np.errstate(divide="ignore"):
        return np.log(token), np.log(blank)


# The last one's products are too small for floats.
cases = [_case(1, 0), _case(2, 1), _case(4, 3), _case(3, 4)]
cases.append(tuple(table - 500 for table in _case(2, 2)))
mistakes = {
    "This is the best path alone. Add up both ways that lead to a node: "
    "np.logaddexp, not a maximum.": (lambda *inputs: right(*inputs, total=max)),
    "You add logarithms where two ways meet, which multiplies probabilities. "
    "Take np.logaddexp.": _sum_of_logarithms,
    "The second way overwrites the first. Join both by np.logaddexp.": (
        _only_last
    ),
    "The last blank is missing: it ends the text.": (
        lambda *inputs: right(*inputs, last_blank=False)
    ),
    "The blank is that of the step where the cursor arrives. Take that of the "
    "step it leaves, j - 1.": lambda *inputs: _lattice(*inputs, blank_at=0),
    "The token is the one after. The token that leads to (j, i) is that of "
    "(j, i - 1).": lambda *inputs: _lattice(*inputs, token_at=0),
    "Your products of probabilities get so small that floats make them 0. Add "
    "logarithms all the way.": (lambda *inputs: np.log(np.exp(right(*inputs)))),
    "This is a probability. Its logarithm is asked for.": (
        lambda *inputs: math.exp(right(*inputs))
    ),
}


def _paths(S, T):
    return [*itertools.combinations_with_replacement(range(S), T)]


_even = [0.5 ** (1 + 2) for _path in _paths(2, 1)]  # One token, two blanks.
answers = {
    "a": len(_paths(4, 2)),
    "b": sum(_even),
    "c": sum(
        p for p, path in zip(_even, _paths(2, 1), strict=True) if path == (0,)
    )
    / sum(_even),
}
