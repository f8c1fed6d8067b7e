"""Chapter 7: one step of beam search."""

import itertools
import math

import numpy as np

_rng = np.random.default_rng(1)


def right(totals, log_p, num_beams, score=lambda total, log_p: total + log_p):
    candidates = []
    for parent in range(len(log_p)):
        for token in range(len(log_p[parent])):
            value = score(totals[parent], log_p[parent][token])
            candidates.append((value, parent, token))
    candidates.sort(reverse=True)
    return [(parent, token) for _, parent, token in candidates[:num_beams]]


def _with(score):
    return lambda *inputs: right(*inputs, score=score)


def _best_child_of_each(totals, log_p, num_beams):
    return [(n, row.index(max(row))) for n, row in enumerate(log_p.tolist())]


def _best_children_of_each(totals, log_p, num_beams):
    found = []
    for n in range(len(log_p)):
        children = right(totals[n : n + 1], log_p[n : n + 1], num_beams)
        found += [(n, token) for _, token in children]
    return found


def _case(num_parents, num_tokens, num_beams):
    p = _rng.dirichlet(np.ones(num_tokens), size=num_parents)
    return -3 * _rng.uniform(size=num_parents), np.log(p), num_beams


cases = [_case(1, 3, 2), *(_case(3, 5, 3) for _more in range(5))]
mistakes = {
    "The totals are missing: a candidate has the log-probability of its parent "
    "plus that of its token.": _with(lambda total, log_p: log_p),
    "The worst candidates are kept. Sort by minus the log-probability.": (
        _with(lambda total, log_p: -(total + log_p))
    ),
    "You add probabilities. Add their logarithms.": (
        _with(lambda total, log_p: math.exp(total) + math.exp(log_p))
    ),
    "You multiply log-probabilities. Add them.": (
        _with(lambda total, log_p: total * log_p)
    ),
    "Each parent keeps its best child. The best candidates of all are kept, "
    "whoever their parents are.": _best_child_of_each,
    "Each parent keeps its own best children. All parents together keep "
    "num_beams.": _best_children_of_each,
    "Parent and token have changed places.": (
        lambda *inputs: [pair[::-1] for pair in right(*inputs)]
    ),
    "These are places in the flattened table. divmod(place, V) gives parent "
    "and token.": lambda totals, log_p, num_beams: [
        parent * log_p.shape[1] + token
        for parent, token in right(totals, log_p, num_beams)
    ],
}

_sentences = (
    sum(1 for _ in itertools.product(range(40), repeat=num_words))
    for num_words in range(3)
)
answers = {
    "a": np.zeros((4, 400)).size,
    "b": sum(_sentences),
    "c": -6 / ((5 + 7) ** 1.0 / (5 + 1) ** 1.0),
}
