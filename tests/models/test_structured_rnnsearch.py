"""RNNsearch whose attention is a chain, against all its choices."""

import itertools

import numpy as np
import test_rnnsearch

from keras_attention import models

V, SOURCE_V, EMBEDDING, UNITS, READOUT = 23, 19, 7, 11, 5


def choose(model, s, h, before):
    """p(z_j = 1), summed over all 2^S choices, divided by the sum."""
    w = {w.name: np.array(w) for w in model.attention.weights}
    e = [
        w["score_vector"][:, 0]
        @ np.tanh(w["query_kernel"].T @ s + w["key_kernel"].T @ h_j)
        for h_j in h
    ]
    total, chosen = 0.0, np.zeros(len(h))
    for z in itertools.product((0, 1), repeat=len(h)):
        pairs = itertools.pairwise(z)
        score = np.dot(e, z) + sum(w["pairwise"][pair] for pair in pairs)
        total += np.exp(score)
        chosen += np.exp(score) * np.array(z)
    p = chosen / total
    return p / p.sum()


def test_equals_the_sum_over_all_choices(randomize):
    model = randomize(
        models.StructuredRNNSearch(V, SOURCE_V, EMBEDDING, UNITS, READOUT), 1
    )
    source_ids = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])
    target_ids = np.array([[2, 19, 5], [2, 22, 4]])
    logits = model({"source_ids": source_ids, "target_ids": target_ids})
    for row, length in enumerate([5, 3]):
        expected, attention = test_rnnsearch.translate(
            model, source_ids[row, :length], target_ids[row], choose
        )
        assert np.ptp(attention) > 0.1
        np.testing.assert_allclose(logits[row], expected, atol=1e-4)
