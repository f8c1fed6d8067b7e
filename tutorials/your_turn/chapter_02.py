"""Chapter 2: the loss, with padding masked."""

import math

import numpy as np

_rng = np.random.default_rng(1)


def right(log_p, labels, mask):
    total = count = 0
    for row in range(len(labels)):
        for t in range(len(labels[row])):
            if mask[row][t]:
                total -= log_p[row][t][labels[row][t]]
                count += 1
    return total / count


def _everywhere(mask):
    return np.ones_like(mask)


def _mean_of_rows(log_p, labels, mask):
    rows = zip(log_p, labels, mask, strict=True)
    losses = [right(p[None], y[None], m[None]) for p, y, m in rows]
    return sum(losses) / len(losses)


def _case(mask):
    mask = np.array(mask)
    p = _rng.dirichlet(np.ones(5), size=mask.shape)
    return np.log(p), _rng.integers(5, size=mask.shape), mask


cases = [
    _case([[True, True]]),
    _case([[True, True, True, True], [True, False, False, False]]),
]
mistakes = {
    "There is no mask: padding counts like a token.": (
        lambda log_p, labels, mask: right(log_p, labels, _everywhere(mask))
    ),
    "Padding does not count in your sum, but in the number that divides it. "
    "Divide by the number of real tokens.": (
        lambda log_p, labels, mask: right(log_p, labels, mask) * mask.mean()
    ),
    "Padding counts in your sum. Multiply by the mask before you add.": (
        lambda log_p, labels, mask: (
            right(log_p, labels, _everywhere(mask)) / mask.mean()
        )
    ),
    "This is a mean of the rows' means, so a token of a short row counts more. "
    "Divide once, by the tokens of the whole batch.": _mean_of_rows,
    "This is a sum. Divide it by the number of real tokens.": (
        lambda log_p, labels, mask: right(log_p, labels, mask) * mask.sum()
    ),
    "The sign is wrong: a loss is -log p.": (
        lambda log_p, labels, mask: -right(log_p, labels, mask)
    ),
    "You average p. The loss averages -log p.": (
        lambda log_p, labels, mask: -right(np.exp(log_p), labels, mask)
    ),
}

target = ["zwei", "und", "zwanzig"]
all_right = 1.0
for _token in range(30):
    all_right *= 0.98
answers = {
    "a": len(target + ["END"]),
    "b": -sum(math.log(1 / 40) for _token in range(40)) / 40,
    "c": all_right,
}
