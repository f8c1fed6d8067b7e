"""Chapter 10: attention pooling over a batch."""

import math

import numpy as np

_rng = np.random.default_rng(1)


def right(value, scores, mask, weights=None):
    result = np.zeros((len(value), value.shape[2]))
    for row in range(len(value)):
        shares = (weights or _softmax)(scores[row], mask[row])
        for share, vector in zip(shares, value[row], strict=True):
            result[row] += share * vector
    return result


def _softmax(scores, mask):
    parts = [math.exp(e) * m for e, m in zip(scores, mask, strict=True)]
    return [part / sum(parts) for part in parts]


def _ignores_mask(scores, mask):
    return _softmax(scores, np.ones_like(mask))


def _with(weights):
    return lambda *inputs: right(*inputs, weights=weights)


def _over_batch(value, scores, mask):
    turned = [
        _softmax(scores[:, place], mask[:, place])
        if mask[:, place].any()
        else [math.nan] * len(value)
        for place in range(value.shape[1])
    ]
    shares = np.transpose(turned)
    return np.stack([s @ v for s, v in zip(shares, value, strict=True)])


def _over_all(value, scores, mask):
    parts = np.exp(scores) * mask
    shares = parts / parts.sum()
    return np.stack([s @ v for s, v in zip(shares, value, strict=True)])


def _case(mask, width):
    mask = np.array(mask)
    scores = _rng.normal(size=mask.shape)
    return _rng.normal(size=(*mask.shape, width)), scores, mask


cases = [
    _case([[True, True]], 1),
    _case([[True, True, True, True], [True, True, False, False]], 3),
]
mistakes = {
    "There is no mask: padding still has a weight.": _with(_ignores_mask),
    "The mask comes after the softmax, so the weights of a short text do not "
    "sum to 1.": _with(
        lambda e, mask: np.multiply(_ignores_mask(e, mask), mask)
    ),
    "A masked score of 0 still has a weight, as exp(0) is 1.": (
        _with(lambda e, mask: _ignores_mask(e * mask, mask))
    ),
    "The softmax has the wrong axis: your weights sum to 1 over the batch. "
    "They must sum to 1 over the words of each text.": _over_batch,
    "The softmax has no axis: your weights sum to 1 over the whole batch. They "
    "must sum to 1 in each row.": _over_all,
    "The scores are not used: this is mean pooling.": (
        _with(lambda e, mask: _softmax(0 * e, mask))
    ),
    "There is no softmax: these are the scores, not weights.": (
        _with(lambda e, mask: e * mask)
    ),
}

_mean = _softmax([0.0] * 8, [True] * 5 + [False] * 3)
_patches = [(row, column) for row in range(4) for column in range(4)]
_weights = [np.zeros(32), np.zeros((32, 32)), np.zeros((64, 32)), np.zeros(32)]
answers = {
    "a": _mean[0],
    "b": sum(weight.size for weight in _weights),
    "c": sum(1 for _asks in _patches for _asked in _patches),
}
