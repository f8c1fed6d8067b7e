"""Chapter 17: a gate that chooses k experts."""

import math

import numpy as np

_rng = np.random.default_rng(1)


def right(scores, k, smallest=False, over_all=False):
    shares = np.zeros_like(scores)
    for row, of_token in enumerate(scores):
        order = sorted(range(len(of_token)), key=lambda i: of_token[i])
        chosen = order[:k] if smallest else order[-k:]
        heard = range(len(of_token)) if over_all else chosen
        total = sum(math.exp(of_token[i]) for i in heard)
        for i in chosen:
            shares[row, i] = math.exp(of_token[i]) / total
    return shares


def _all_experts(scores, k):
    return right(scores, scores.shape[1])


cases = [
    (_rng.normal(size=(1, 3)), 2),
    (_rng.normal(size=(4, 5)), 2),
    (_rng.normal(size=(5, 6)), 3),
]
mistakes = {
    "All experts have a share. Only the k with the largest scores may have "
    "one.": _all_experts,
    "The shares of a token do not sum to 1: the softmax must run over the k "
    "chosen scores.": lambda *inputs: right(*inputs, over_all=True),
    "You chose the smallest scores.": (
        lambda *inputs: right(*inputs, smallest=True)
    ),
    "You chose one expert. Choose k of them.": (
        lambda scores, k: right(scores, 1)
    ),
    "All chosen experts have the same share. The share is a softmax of the "
    "scores.": lambda scores, k: (right(scores, k) > 0) / k,
    "The axis is wrong: each expert chose k tokens. Each token must choose k "
    "experts.": lambda scores, k: right(scores.T, min(k, len(scores))).T,
    "The exponentials of the chosen scores are not divided by their sum.": (
        lambda scores, k: np.exp(scores) * (right(scores, k) > 0)
    ),
}

_expert = np.zeros((64, 128)).size + np.zeros((128, 64)).size
_keys_and_values = np.zeros((2, 2, 32))  # Two shared heads, 32 wide.
answers = {
    "a": sum(_expert for _each in range(16)),
    "b": sum(_expert for _each in range(2)) + np.zeros((64, 16)).size,
    "c": _keys_and_values.size,
}
