"""What the pages of `docs/play/` compute, in numpy, as equations read."""

import itertools
import math

import numpy as np
from play_parts import halves


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def rope(vector, place):
    """By complex numbers."""
    theta = 10000.0 ** (-np.arange(0, len(vector), 2) / len(vector))
    pairs = vector[0::2] + 1j * vector[1::2]
    return pairs * np.exp(1j * place * theta)


def told_network(data, sentences, question):
    """The equations of Sukhbaatar et al. 2015, word by word: logits."""
    tables = [halves.unpacked(one) for one in data["embeddings"]]
    times = [halves.unpacked(one) for one in data["times"]]
    places = {word: data["firstWord"] + i for i, word in
              enumerate(data["words"])}  # fmt: skip
    d = tables[0].shape[1]

    def encoded(table, text):
        words = text.split()
        result = np.zeros(d)
        for j, word in enumerate(words, 1):
            for k in range(1, d + 1):
                weight = (1 - j / len(words)) - k / d * (1 - 2 * j / len(words))
                result[k - 1] += weight * table[places[word], k - 1]
        return result

    memories = [
        np.array([
            encoded(table, text) + time[len(sentences) - 1 - i]
            for i, text in enumerate(sentences)
        ])
        for table, time in zip(tables, times, strict=True)
    ]  # fmt: skip
    u = encoded(tables[0], question)
    for m, c in itertools.pairwise(memories):
        u = u + softmax(m @ u) @ c
    return u @ halves.unpacked(data["output"])


def all_paths(token, blank, passing=()):
    """The sum over all paths that pass some nodes, and their number."""
    num_steps, num_tokens = token.shape
    total, number = 0.0, 0
    for path in itertools.combinations_with_replacement(
        range(num_steps), num_tokens
    ):
        j, log_p, nodes = 0, 0.0, {(0, 0)}
        for i, step in enumerate([*path, num_steps - 1]):
            while j < step:
                log_p, j = log_p + blank[j, i], j + 1
                nodes.add((j, i))
            if i < num_tokens:
                log_p += token[j, i]
                nodes.add((j, i + 1))
        if nodes.issuperset(passing):
            total += math.exp(log_p + blank[-1, -1])
            number += 1
    return total, number
