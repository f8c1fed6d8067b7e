"""The cursor's probabilities, against all ways that it can go."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers

B, T, S, D, UNITS = 2, 3, 5, 7, 11
MASK = np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], bool)


@pytest.fixture
def arrays(rng):
    shapes = {"query": (B, T, D), "value": (B, S, D)}
    return {
        name: rng.normal(size=shape).astype("float32")
        for name, shape in shapes.items()
    }


@pytest.fixture
def layer(arrays, randomize):
    layer = layers.MonotonicAttention(UNITS)
    layer(**arrays)
    return randomize(layer)


def energies(layer, query, value):
    """e_ij of one query and one key after another."""
    names = [weight.name for weight in layer.trainable_weights]
    values = [np.array(weight) for weight in layer.trainable_weights]
    w = dict(zip(names, values, strict=True))
    found = np.zeros((B, T, S))
    v = w["score_vector"][:, 0]
    for b, i, j in np.ndindex(B, T, S):
        hidden = w["query_kernel"].T @ query[b, i]
        hidden = hidden + w["key_kernel"].T @ value[b, j] + w["bias"]
        direction = v / np.linalg.norm(v)
        found[b, i, j] = w["scale"] * direction @ np.tanh(hidden) + w["level"]
    return found


def stops_by_enumeration(p):
    """Where each query stops: [T, S], from every way of one cursor.

    Args:
        p: [T, S], how probable it is that the cursor stops at a key.
    """
    found = np.zeros(p.shape)

    def go(i, j, probability):
        if i == len(p) or j == p.shape[1]:
            return
        found[i, j] += probability * p[i, j]
        go(i + 1, j, probability * p[i, j])
        go(i, j + 1, probability * (1 - p[i, j]))

    go(0, 0, 1.0)
    return found


@pytest.mark.parametrize("mask", [None, MASK], ids=["", "masked"])
def test_weights_equal_the_sum_over_all_ways(layer, arrays, mask):
    p = 1 / (1 + np.exp(-energies(layer, **arrays)))
    if mask is not None:
        p = p * mask[:, None]
    expected = np.array([stops_by_enumeration(of_text) for of_text in p])
    context, weights = layer(**arrays, padding_mask=mask)
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    expected = np.einsum("bts,bsd->btd", expected, arrays["value"])
    np.testing.assert_allclose(context, expected, atol=1e-5)


def test_the_hard_cursor_stops_at_the_first_key_above_a_half(layer, rng):
    moves = 0
    for _ in range(10):
        arrays = {
            "query": rng.normal(scale=3, size=(B, T, D)).astype("float32"),
            "value": rng.normal(scale=3, size=(B, S, D)).astype("float32"),
        }
        e = energies(layer, **arrays)
        layer.level.assign(layer.level - np.median(e))
        e -= np.median(e)
        expected = np.zeros((B, T, S))
        for b in range(B):
            place = 0
            for i in range(T):
                while place < S and not (MASK[b, place] and e[b, i, place] > 0):
                    place += 1
                    moves += i > 0
                if place < S:
                    expected[b, i, place] = 1
        _, weights = layer(**arrays, padding_mask=MASK, hard=True)
        np.testing.assert_array_equal(weights, expected)
    assert moves > 10


def test_the_hard_cursor_goes_over_many_keys(layer, rng):
    """A key above a half in four: sums of many sure stops stay exact."""
    size, length = 60, 12
    stops = rng.random((B, length, size)) < 0.25
    layer.score = lambda query, keys: np.where(stops, 3.0, -3.0).astype(
        "float32"
    )
    x = np.zeros((B, size, D), "float32")
    _, weights = layer(query=x[:, :length], value=x, hard=True)
    expected = np.zeros((B, length, size))
    for b in range(B):
        place = 0
        for i in range(length):
            after = np.flatnonzero(stops[b, i, place:])
            place = place + after[0] if len(after) else size
            if place < size:
                expected[b, i, place] = 1
    np.testing.assert_array_equal(weights, expected)


@pytest.mark.parametrize("hard", [False, True])
def test_token_by_token_equals_call(layer, arrays, hard):
    context, weights = layer(**arrays, padding_mask=MASK, hard=hard)
    previous = None
    for t in range(T):
        step = layer.attend(
            query=arrays["query"][:, t : t + 1],
            projected_key=layer.project(arrays["value"]),
            value=arrays["value"],
            padding_mask=MASK,
            previous=previous,
            hard=hard,
        )
        previous = step[1][:, 0]
        np.testing.assert_allclose(step[0][:, 0], context[:, t], atol=1e-5)
        np.testing.assert_allclose(previous, weights[:, t], atol=1e-6)


def test_large_energies_have_finite_gradients(layer, arrays):
    layer.scale.assign(1e6)
    with tf.GradientTape() as tape:
        context, _ = layer(**arrays, padding_mask=MASK)
        loss = tf.reduce_sum(context)
    gradients = tape.gradient(
        loss, [weight.value for weight in layer.trainable_weights]
    )
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_noise_is_for_training_alone(layer, arrays):
    _, quiet = layer(**arrays, training=False)
    _, noisy = layer(**arrays, training=True)
    _, other = layer(**arrays, training=True)
    assert np.abs(quiet - noisy).max() > 1e-3 < np.abs(other - noisy).max()
    _, again = layer(**arrays, training=False)
    np.testing.assert_array_equal(again, quiet)


def test_a_model_with_it_is_saved_and_loaded(arrays, save_and_load):
    inputs = {
        "query": keras.Input((None, D), name="query"),
        "value": keras.Input((None, D), name="value"),
        "mask": keras.Input((None,), dtype="bool", name="mask"),
    }
    layer = layers.MonotonicAttention(UNITS, noise=0.5, offset=-2.0)
    outputs = layer(inputs["query"], inputs["value"], None, inputs["mask"])
    model, loaded = save_and_load(inputs, outputs)
    given = {**arrays, "mask": MASK}
    for got, expected in zip(loaded(given), model(given), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-6)


def test_noise_is_not_negative():
    with pytest.raises(ValueError, match="`noise` must be at least 0"):
        layers.MonotonicAttention(UNITS, noise=-1.0)
