"""Chapter 14: where an induction head looks."""

import math

import numpy as np


def right(tokens, is_found=None, may_look=None, share=True):
    is_found = is_found or (lambda t, s: s > 0 and tokens[s - 1] == tokens[t])
    may_look = may_look or (lambda t, s: s <= t)
    T = len(tokens)
    weights = np.zeros((T, T))
    for t in range(T):
        found = [s for s in range(T) if may_look(t, s) and is_found(t, s)]
        for s in found:
            weights[t, s] = 1 / len(found) if share else 1
    return weights


def _same_word(tokens):
    return right(tokens, lambda t, s: s < t and tokens[s] == tokens[t])


def _same_word_and_itself(tokens):
    return right(tokens, lambda t, s: tokens[s] == tokens[t])


def _one_before(tokens):
    T = len(tokens)
    return right(tokens, lambda t, s: s + 1 < T and tokens[s + 1] == tokens[t])


def _wraps(tokens):
    return right(tokens, lambda t, s: tokens[s - 1] == tokens[t])


cases = [
    (np.array([5, 7, 5]),),
    (np.array([1, 2, 1, 3, 1]),),
    (np.array([4, 4, 6, 4, 9, 6]),),
]
mistakes = {
    "There is no causal mask: words look at words that come after them.": (
        lambda tokens: right(tokens, may_look=lambda t, s: True)
    ),
    "Your head looks at the earlier equal word. It must look at the word after "
    "it.": _same_word,
    "Your head looks at equal words, and at the word itself. It must look at "
    "the words after the earlier ones.": _same_word_and_itself,
    "Your head looks at the word before an equal one. It must look at the word "
    "after it.": _one_before,
    "The present word counts, too, if the word before it is the same: s = t is "
    "allowed.": lambda tokens: right(tokens, may_look=lambda t, s: s < t),
    "The first word has no word before it. np.roll puts the last one there.": (
        _wraps
    ),
    "The weights do not sum to 1 where a word has stood twice before.": (
        lambda tokens: right(tokens, share=False)
    ),
}

_log_p = [math.log(1 / 2), math.log(1 / 8)]
_cache = np.broadcast_to(0.0, (2, 12, 100, 768))
answers = {
    "a": math.exp(-np.mean(_log_p)),
    "b": 3 * math.log2(8) / 9,
    "c": _cache.size,
}
