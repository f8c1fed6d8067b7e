import math

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers

B, T, S, QUERY_DIM, VALUE_DIM = 2, 3, 11, 5, 7
MASK = np.arange(S) < np.array([[S], [S - 4]])
each_place = pytest.mark.parametrize("place", ["monotonic", "predictive"])
each_mask = pytest.mark.parametrize("mask", [None, MASK], ids=["", "masked"])


@pytest.fixture
def query(rng):
    return rng.normal(size=(B, T, QUERY_DIM)).astype("float32")


@pytest.fixture
def value(rng):
    return rng.normal(size=(B, S, VALUE_DIM)).astype("float32")


def local_weights(layer, query, value, mask):
    """Section 3.2, one target word after another."""
    weights = np.zeros((B, T, S))
    width = layer.half_width
    for b in range(B):
        length = S if mask is None else mask[b].sum()
        for t in range(T):
            place = t
            if layer.place == "predictive":
                hidden = np.tanh(query[b, t] @ layer.place_kernel.numpy())
                v_p = layer.place_vector.numpy() / QUERY_DIM
                share = (hidden @ v_p).item()
                place = length / (1 + math.exp(-share))
            window = [s for s in range(length) if abs(s - place) <= width]
            for s in window:
                score = value[b, s] @ layer.key_kernel.numpy() @ query[b, t]
                weights[b, t, s] = math.exp(score)
            weights[b, t] /= max(weights[b, t].sum(), 1e-30)
            if layer.place == "predictive":
                for s in window:
                    deviation = width / 2
                    weights[b, t, s] *= math.exp(
                        -((s - place) ** 2) / (2 * deviation**2)
                    )
    return weights


@each_place
@each_mask
def test_equals_the_equations(place, mask, query, value, randomize):
    layer = layers.LocalAttention(half_width=2, place=place)
    layer(query=query, value=value)
    randomize(layer)
    expected = local_weights(layer, query, value, mask)
    context, weights = layer(query=query, value=value, padding_mask=mask)
    np.testing.assert_allclose(weights, expected, atol=1e-5)
    np.testing.assert_allclose(context, expected @ value, atol=1e-5)
    assert (weights.numpy() == 0).any(axis=-1).all()


@pytest.mark.parametrize("scoring", ["dot", "general", "concat"])
@each_mask
def test_local_p_of_infinite_width_is_global(scoring, mask, rng, randomize):
    query = rng.normal(size=(B, T, VALUE_DIM)).astype("float32")
    value = rng.normal(size=(B, S, VALUE_DIM)).astype("float32")
    local = layers.LocalAttention(scoring, half_width=1e6)
    local(query=query, value=value)
    randomize(local)
    everywhere = layers.MultiplicativeAttention(scoring)
    everywhere(query=query, value=value)
    everywhere.set_weights(local.get_weights()[: len(everywhere.weights)])
    for got, want in zip(
        local(query=query, value=value, padding_mask=mask),
        everywhere(query=query, value=value, padding_mask=mask),
        strict=True,
    ):
        np.testing.assert_allclose(got, want, atol=1e-5)


@each_place
def test_token_by_token_equals_all_at_once(place, query, value, randomize):
    layer = layers.LocalAttention(half_width=2, place=place)
    layer.build(query.shape, value.shape)
    randomize(layer)
    whole = layer(query=query, value=value, padding_mask=MASK)
    keys = layer.project(value)
    for t in range(T):
        one = layer.attend(
            query=query[:, t : t + 1],
            projected_key=keys,
            value=value,
            padding_mask=MASK,
            start=t,
        )
        for got, want in zip(one, whole, strict=True):
            np.testing.assert_allclose(got[:, 0], want[:, t], atol=1e-6)


def test_a_window_beside_the_source_sees_nothing(query, value):
    layer = layers.LocalAttention(half_width=2, place="monotonic")
    layer.build(query.shape, value.shape)
    mask = np.arange(S) < np.array([[S], [1]])
    context, weights = layer.attend(
        query=query,
        projected_key=layer.project(value),
        value=value,
        padding_mask=mask,
        start=4,
    )
    assert not np.any(weights[1]) and not np.any(context[1])
    np.testing.assert_allclose(np.sum(weights[0], axis=-1), 1, atol=1e-6)


def test_the_place_has_a_gradient(query, value, randomize):
    layer = layers.LocalAttention(half_width=4)
    layer(query=query, value=value)
    randomize(layer)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(query=query, value=value)[0] ** 2)
    own = [layer.place_kernel.value, layer.place_vector.value]
    for gradient in tape.gradient(loss, own):
        assert np.abs(gradient).max() > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"place": "middle"}, "Received: place='middle'"),
        ({"half_width": 0}, "Received: half_width=0"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        layers.LocalAttention(**arguments)
