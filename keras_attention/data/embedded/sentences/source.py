"""Sentences drawn from the grammar, and exactly how likely they are.

Logarithms are natural. A token is a word, or the END of a sentence.
"""

import bisect
import functools
import itertools
import math
import random
from collections import defaultdict

from keras_attention.data.embedded.sentences import grammar


@functools.cache
def _arcs(state):
    return grammar.arcs(state)


@functools.cache
def _cumulative(state):
    return list(itertools.accumulate(p for p, _, _ in _arcs(state)))


@functools.cache
def _by_word(state):
    return {word: (p, successor) for p, word, successor in _arcs(state)}


def _draw(generator: random.Random) -> str:
    words, state = [], grammar.START
    while state is not None:
        cumulative = _cumulative(state)
        # Rounding leaves the last sum a hair beside 1.
        place = bisect.bisect(cumulative, generator.random() * cumulative[-1])
        _, word, state = _arcs(state)[place]
        words.append(word)
    return " ".join(words[:-1])  # Without END.


def generate(
    train: int = 160_000,
    validation: int = 1_000,
    test: int = 2_000,
    seed: int = 0,
) -> dict[str, list[str]]:
    """Draws the corpus: the same one at every call.

    Every sentence is drawn anew from the source. A short one may therefore
    stand in two splits; to leave it out would change the probabilities.

    Args:
        train, validation, test: sentences in each split.
        seed: another seed draws another corpus.

    Returns:
        Split -> sentences: lower-case words with one space between them.
    """
    sizes = {"train": train, "validation": validation, "test": test}
    return {
        split: [_draw(generator) for _ in range(size)]
        for split, size in sizes.items()
        for generator in [random.Random(f"{seed} {split}")]
    }


def log_probability(sentence: str) -> float:
    """The log-probability of a sentence, its END included.

    Returns:
        A number below 0; -inf for a sentence that the source never writes.
    """
    total, state = 0.0, grammar.START
    for word in [*sentence.split(), grammar.END]:
        if word not in _by_word(state):
            return -math.inf
        probability, state = _by_word(state)[word]
        total += math.log(probability)
    return total


@functools.cache
def _visits() -> dict[grammar.State, float]:
    """State -> how often a sentence passes it, on average.

    The probability of each state after 0, 1, 2, ... words is added up. Only
    adjectives can go on for ever: what is left shrinks fourfold at least
    every word, in the end.
    """
    visits, now = defaultdict(float), {grammar.START: 1.0}
    while sum(now.values()) > 1e-18:
        following = defaultdict(float)
        for state, mass in now.items():
            visits[state] += mass
            for probability, _, successor in _arcs(state):
                if successor is not None:
                    following[successor] += mass * probability
        now = following
    return dict(visits)


def mean_length() -> float:
    """Tokens of a sentence on average, END included.

    Each state that is passed writes one token.
    """
    return sum(_visits().values())


@functools.cache
def entropy() -> float:
    """The entropy of a sentence in nats: the mean of -log_probability.

    A sentence has one way through the states, so that its surprise is the
    sum of the surprises there: the mean is a sum over the states of
    how often they are passed, times the entropy of the arcs out of them.
    """
    return sum(
        -visits * probability * math.log(probability)
        for state, visits in _visits().items()
        for probability, _, _ in _arcs(state)
    )


def entropy_rate() -> float:
    """The entropy in nats a token: no model has a smaller loss on average.

    exp(entropy_rate()) is the least perplexity.
    """
    return entropy() / mean_length()


def vocabulary() -> list[str]:
    """All words, sorted."""
    words = {word for state in _visits() for _, word, _ in _arcs(state)}
    return sorted(words - {grammar.END})
