"""The formulas of Wu et al. 2016, and forced scores."""

import math

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import decoding
from keras_attention.decoding import scores
from keras_attention.tokens import END, PAD, START, UNK


def test_length_penalty_by_hand():
    # ((5 + 1) / 6)^a = 1; ((5 + 7) / 6)^2 = 4; ((5 + 13) / 6)^0.5 = sqrt 3.
    np.testing.assert_allclose(decoding.length_penalty(1, 0.6), 1)
    np.testing.assert_allclose(decoding.length_penalty(7, 2.0), 4)
    np.testing.assert_allclose(
        decoding.length_penalty(np.array([1, 13]), 0.5), [1, math.sqrt(3)]
    )
    np.testing.assert_array_equal(
        decoding.length_penalty(np.array([1, 5, 9]), 0.0), [1, 1, 1]
    )


def test_coverage_penalty_by_hand():
    sums = np.array([[0.5, 1.0, 3.0, 0.25], [0.5, 0.1, 0.0, 0.0]], "float32")
    mask = np.array([[True, True, True, True], [True, False, False, False]])
    np.testing.assert_allclose(
        decoding.coverage_penalty(sums, mask, 0.2),
        [0.2 * (math.log(0.5) + math.log(0.25)), 0.2 * math.log(0.5)],
        rtol=1e-6,
    )


def test_an_unseen_source_token_is_no_infinity():
    penalty = decoding.coverage_penalty(
        np.array([[0.0, 1.0]], "float32"), np.array([[True, True]]), 0.2
    )
    assert np.isfinite(penalty).all()
    assert penalty[0] < -1


def test_sequence_log_probability_is_the_sum_over_real_labels():
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(3, 5, 7)).astype("float32")
    labels = np.array([[4, 6, 1, 3, 0], [3, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    expected, counts = [], []
    for row in range(3):
        total = 0.0
        for t in range(5):
            if labels[row, t] != PAD:
                p = np.exp(logits[row, t]) / np.exp(logits[row, t]).sum()
                total += math.log(p[labels[row, t]])
        expected.append(total)
        counts.append(int((labels[row] != PAD).sum()))
    total, num_tokens = decoding.sequence_log_probability(logits, labels)
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    assert num_tokens.numpy().tolist() == counts == [4, 1, 0]


def test_sequence_log_probability_with_another_padding():
    logits = np.zeros((1, 2, 5), "float32")
    total, num_tokens = decoding.sequence_log_probability(
        logits, np.array([[0, 4]]), pad_id=4
    )
    np.testing.assert_allclose(total, [-math.log(5)], rtol=1e-6)
    assert num_tokens.numpy().tolist() == [1]


def test_what_is_allowed_keeps_its_log_probability():
    logits = np.random.default_rng(0).normal(size=(2, 6)).astype("float32")
    rules = scores.Rules(np.array([2, 9]), END, (PAD, UNK, START), None, PAD)
    allowed = scores.allowed_log_probs(logits, 1, rules).numpy()
    expected = np.log(np.exp(logits) / np.exp(logits).sum(1, keepdims=True))
    # The first row is at its limit: END alone. The other may go on.
    np.testing.assert_allclose(allowed[0, END], expected[0, END], rtol=1e-5)
    np.testing.assert_allclose(allowed[1, END:], expected[1, END:], rtol=1e-5)
    assert (np.delete(allowed[0], END) < -1e8).all()
    assert (allowed[1, [PAD, UNK, START]] < -1e8).all()


@pytest.mark.parametrize("heads", [None, 3])
def test_mean_over_heads(heads):
    shape = (2, 5) if heads is None else (2, heads, 5)
    weights = np.random.default_rng(0).random(shape).astype("float32")
    expected = weights if heads is None else weights.mean(axis=1)
    np.testing.assert_allclose(
        scores.weights_over_source(tf.constant(weights), (2, 5)),
        expected,
        rtol=1e-6,
    )


@pytest.mark.parametrize("size", [7, 81, 97, 550, 8000])
@pytest.mark.parametrize("k", [1, 5, 9])
def test_the_k_greatest_of_a_vocabulary(rng, size, k):
    """Sizes with and without a number of blocks that divides them."""
    values = rng.normal(size=(3, size)).astype("float32")
    best, indices = scores.top_k(tf.constant(values), k)
    order = np.argsort(-values, axis=-1)[:, :k]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(
        best, np.take_along_axis(values, order, axis=-1)
    )


def test_equal_values_come_once_each():
    _, indices = scores.top_k(tf.zeros([2, 8000]), 5)
    assert all(len(set(row)) == 5 for row in indices.numpy())


@pytest.mark.parametrize("forbidden", [(), (PAD, UNK, START), (17,)])
def test_the_best_extensions_are_those_of_all(rng, forbidden):
    logits = rng.normal(size=(4, 8000)).astype("float32")
    logits[0, END] = logits[1, START] = logits[2, 17] = 9.0
    max_lengths = tf.constant([5, 5, 5, 2])  # The last can only end.
    rest = (1, scores.Rules(max_lengths, END, forbidden, None, PAD))
    everything = scores.allowed_log_probs(tf.constant(logits), *rest).numpy()
    log_probs, token_ids = scores.best_extensions(tf.constant(logits), 4, *rest)
    for row, (ours, ids) in enumerate(
        zip(log_probs.numpy(), token_ids.numpy(), strict=True)
    ):
        allowed = ours > scores.IMPOSSIBLE / 2
        found = dict(zip(ids[allowed], ours[allowed], strict=True))
        assert len(found) == allowed.sum()  # No token comes twice.
        possible = np.flatnonzero(everything[row] > scores.IMPOSSIBLE / 2)
        assert set(found) <= set(possible)
        best = sorted(possible, key=lambda token: -everything[row, token])
        for token in best[:4]:
            assert found[token] == pytest.approx(
                everything[row, token], rel=1e-5
            )
