"""Chapter 0: read a map of attention."""

import numpy as np


def right(weights, source):
    words = []
    for row in weights:
        greatest = 0
        for position, weight in enumerate(row):
            if weight > row[greatest]:
                greatest = position
        words.append(source[greatest])
    return words


cases = [
    (
        np.array([[0.1, 0.2, 0.7], [0.3, 0.6, 0.1], [0.8, 0.1, 0.1]]),
        ["twenty", "-", "one"],
    ),
    (
        np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]),
        ["half", "past", "seven", "[END]"],
    ),
]
mistakes = {
    "You took the greatest weight of each column. A row asks, so take the "
    "greatest of each row: the axis is 1.": lambda weights, source: right(
        weights.T, source
    ),
    "You took the smallest weight of each row. The greatest says where it "
    "looks.": lambda weights, source: right(-weights, source),
    "These are positions. The words at these positions are asked for.": (
        lambda weights, source: [
            row.index(max(row)) for row in weights.tolist()
        ]
    ),
}
a_map = np.random.default_rng(0).dirichlet(np.ones(6), size=4)  # Rows sum to 1.
answers = {"a": round(a_map.sum()), "b": max([1 / 5] * 5)}
