"""Chapter 18: to copy, or to write."""

import numpy as np

_rng = np.random.default_rng(1)


def right(written, looks, source_ids, u):
    p = [(1 - u) * p_w for p_w in written]
    for word in range(len(p)):
        for look, source_id in zip(looks, source_ids, strict=True):
            if source_id == word:
                p[word] += u * look
    return np.array(p)


def _overwritten(written, looks, source_ids, u):
    """Of a word that stands twice in the source, the last look counts."""
    last = dict(zip(source_ids.tolist(), looks, strict=True))
    return right(written, [*last.values()], [*last.keys()], u)


def _replaced(written, looks, source_ids, u):
    """A word of the source is copied only."""
    p = right(written, looks, source_ids, u)
    for word in set(source_ids.tolist()):
        p[word] -= (1 - u) * written[word]
    return p


def _unweighted(written, looks, source_ids, u):
    return written + right(0 * written, looks, source_ids, 1.0)


def _case(num_words, source_ids, u):
    written = _rng.dirichlet(np.ones(num_words))
    looks = _rng.dirichlet(np.ones(len(source_ids)))
    return written, looks, np.array(source_ids), u


cases = [
    _case(2, [1], 0.25),
    _case(5, [2, 0, 2], 0.25),
    _case(6, [4, 4, 1, 4], 0.75),
]
mistakes = {
    "A word that stands twice in the source is copied once. Add up all places "
    "where it stands: np.add.at.": _overwritten,
    "The switch is the wrong way round: u is the probability of copying.": (
        lambda written, looks, source_ids, u: right(
            written, looks, source_ids, 1 - u
        )
    ),
    "The switch is missing: copying counts u times, writing 1 - u times.": (
        _unweighted
    ),
    "A word of the source can be written, too. Add both, do not replace one.": (
        _replaced
    ),
    "Nothing is copied.": lambda written, looks, source_ids, u: (
        (1 - u) * written
    ),
    "Nothing is written.": lambda written, looks, source_ids, u: right(
        0 * written, looks, source_ids, u
    ),
    "Copying is not multiplied by u.": lambda written, looks, source_ids, u: (
        right(0 * written, looks, source_ids, 1.0) + (1 - u) * written
    ),
}


def _temporal(exponentials, step):
    """Weights at a step, where all steps have the same exponentials."""
    e = [x / (step * x) if step else x for x in exponentials]
    return [x / sum(e) for x in e]


answers = {
    "a": _temporal([9.0, 1.0], 0)[0],
    "b": _temporal([9.0, 1.0], 1)[0],
    "c": (0.4 - 0.6) * -10,
}
