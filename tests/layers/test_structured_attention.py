"""Marginals of a chain, against the sum over all choices one by one."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers

B, T, S, D = 2, 3, 5, 7
# Each row of keys: all; a hole; the first missing; one; none.
MASKS = np.array(
    [[1, 1, 1, 1], [1, 0, 1, 1], [0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]], bool
)


def marginals_by_enumeration(scores, pairwise):
    """p(z_s = 1) of one chain: [S], over all 2^S choices."""
    total, chosen = 0.0, np.zeros(len(scores))
    for z in itertools.product((0, 1), repeat=len(scores)):
        energy = np.dot(scores, z)
        energy += sum(pairwise[pair] for pair in itertools.pairwise(z))
        total += np.exp(energy)
        chosen += np.exp(energy) * np.array(z)
    return chosen / total


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10])
def test_marginals_equal_enumeration(size, rng):
    scores = rng.normal(scale=2, size=(4, size))
    pairwise = rng.normal(scale=2, size=(2, 2))
    expected = [marginals_by_enumeration(row, pairwise) for row in scores]
    found = layers.chain_marginals(scores, pairwise)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_chain_skips_masked_keys(rng):
    scores = rng.normal(size=MASKS.shape)
    pairwise = rng.normal(scale=2, size=(2, 2))
    expected = np.zeros(MASKS.shape)
    for row, mask in enumerate(MASKS):
        expected[row, mask] = marginals_by_enumeration(
            scores[row, mask], pairwise
        )
    found = layers.chain_marginals(scores, pairwise, MASKS)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_gradients_equal_differences_of_the_enumeration(rng):
    scores = rng.normal(size=6)
    pairwise = rng.normal(size=(2, 2))
    pull = rng.normal(size=6)
    tensors = [tf.constant(x, "float32") for x in (scores, pairwise)]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        chosen = layers.chain_marginals(*tensors)
        pulled = tf.reduce_sum(pull.astype("float32") * chosen)
    small = 1e-6
    for found, array in zip(
        tape.gradient(pulled, tensors), (scores, pairwise), strict=True
    ):
        expected = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            ends = []
            for shift in (small, -small):
                array[place] += shift
                ends.append(pull @ marginals_by_enumeration(scores, pairwise))
                array[place] -= shift
            expected[place] = (ends[0] - ends[1]) / (2 * small)
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_without_pairwise_potentials_it_is_sigmoid_attention(scale, rng):
    query, value = (scale * rng.normal(size=(B, n, D)) for n in (T, S))
    query, value = (x.astype("float32") for x in (query, value))
    layer = layers.StructuredAttention("dot")
    context, weights = layer(query=query, value=value)
    scores = query @ np.swapaxes(value, 1, 2)
    np.testing.assert_allclose(weights, keras.ops.sigmoid(scores), atol=1e-6)
    expected = np.einsum("bts,bsd->btd", weights, value)
    np.testing.assert_allclose(context, expected, rtol=1e-5, atol=1e-5)


def test_equals_the_equations(rng, randomize):
    layer = layers.StructuredAttention()
    query, value = (
        rng.normal(size=(B, n, D)).astype("float32") for n in (T, S)
    )
    mask = np.arange(S) < np.array([[S - 2], [S]])
    layer(query=query, value=value)
    randomize(layer)
    kernel, pairwise = layer.get_weights()
    context, weights = layer(query=query, value=value, padding_mask=mask)
    for b, t in np.ndindex(B, T):
        keys = value[b, mask[b]]
        expected = marginals_by_enumeration(
            keys @ kernel @ query[b, t], pairwise
        )
        np.testing.assert_allclose(weights[b, t, : len(keys)], expected, 1e-5)
        np.testing.assert_allclose(context[b, t], expected @ keys, atol=1e-5)


def test_normalized_weights_are_shares_of_the_marginals(rng, randomize):
    query, value = (
        rng.normal(size=(B, n, D)).astype("float32") for n in (T, S)
    )
    plain = layers.StructuredAttention()
    plain(query=query, value=value)
    randomize(plain)
    shares = layers.StructuredAttention(normalized=True)
    shares(query=query, value=value)
    shares.set_weights(plain.get_weights())
    _, weights = plain(query=query, value=value)
    expected = weights / np.sum(weights, axis=-1, keepdims=True)
    _, weights = shares(query=query, value=value)
    np.testing.assert_allclose(weights, expected, atol=1e-6)


@pytest.mark.parametrize("normalized", [False, True])
def test_no_key_has_no_weight(normalized, rng):
    layer = layers.StructuredAttention("dot", normalized)
    x = rng.normal(size=(B, T, D)).astype("float32")
    context, weights = layer(
        query=x, value=x, padding_mask=np.zeros((B, T), bool)
    )
    assert not np.any(weights) and not np.any(context)


def test_keys_that_like_company_are_chosen_in_segments():
    """Two keys that are sure pull in those between them."""
    scores = np.array([-6.0, 5, -1, 5, -6])
    alone = layers.chain_marginals(scores, np.zeros((2, 2)))
    together = layers.chain_marginals(scores, 3 * np.eye(2))
    assert alone[2] < 0.5 < together[2]
    assert max(together[0], together[4]) < 0.5
