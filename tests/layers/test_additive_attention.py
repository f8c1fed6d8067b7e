import keras
import numpy as np
import pytest

from keras_attention import layers

B, T, S, QUERY_DIM, KEY_DIM, VALUE_DIM, UNITS = 2, 3, 5, 7, 13, 17, 11


@pytest.fixture
def arrays(rng):
    lengths = (B, T, QUERY_DIM), (B, S, KEY_DIM), (B, S, VALUE_DIM)
    query, key, value = (rng.normal(size=shape) for shape in lengths)
    padding_mask = np.arange(S) < np.array([[S], [S - 2]])
    return {
        "query": query.astype("float32"),
        "key": key.astype("float32"),
        "value": value.astype("float32"),
        "padding_mask": padding_mask,
    }


def attend(query, key, value, padding_mask, w, u, v):
    """Bahdanau et al. 2014, section 3.1 and A.1.2, sum by sum."""
    weights = np.zeros((B, T, S))
    context = np.zeros((B, T, value.shape[-1]))
    for b in range(B):
        for i in range(T):
            real = [j for j in range(S) if padding_mask[b, j]]
            e = {
                j: v[:, 0] @ np.tanh(w.T @ query[b, i] + u.T @ key[b, j])
                for j in real
            }
            total = sum(np.exp(e[k]) for k in real)
            for j in real:
                weights[b, i, j] = np.exp(e[j]) / total
                context[b, i] += weights[b, i, j] * value[b, j]
    return context, weights


def test_equals_the_equation(arrays):
    layer = layers.AdditiveAttention(UNITS)
    context, weights = layer(**arrays)
    w, u, v = layer.get_weights()
    expected = attend(**arrays, w=w, u=u, v=v)
    np.testing.assert_allclose(context, expected[0], atol=1e-5)
    np.testing.assert_allclose(weights, expected[1], atol=1e-5)


def test_key_defaults_to_value(arrays):
    layer = layers.AdditiveAttention(UNITS)
    query, value = arrays["query"], arrays["value"]
    for got, want in zip(
        layer(query, value), layer(query, value, key=value), strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_projected_once_equals_call(arrays):
    layer = layers.AdditiveAttention(UNITS)
    context, weights = layer(**arrays)
    keys = layer.project(arrays["key"])
    for t in range(T):
        step = layer.attend(
            arrays["query"][:, t : t + 1],
            keys,
            arrays["value"],
            padding_mask=arrays["padding_mask"],
        )
        np.testing.assert_allclose(step[0][:, 0], context[:, t], atol=1e-6)
        np.testing.assert_allclose(step[1][:, 0], weights[:, t], atol=1e-6)


def test_weights_of_one_shape_start_with_different_values():
    layer = layers.AdditiveAttention(UNITS)
    layer.build((B, T, KEY_DIM), (B, S, KEY_DIM))
    assert not np.allclose(layer.query_kernel, layer.key_kernel)


def test_keras_has_the_same_softmax_and_sum(rng):
    """With W = U = 1 and v = its scale, keras.layers.AdditiveAttention."""
    query = rng.normal(size=(B, T, UNITS)).astype("float32")
    value = rng.normal(size=(B, S, UNITS)).astype("float32")
    other = keras.layers.AdditiveAttention()
    other.build([query.shape, value.shape])
    scale = rng.normal(size=UNITS)
    other.set_weights([scale])
    layer = layers.AdditiveAttention(UNITS)
    layer.build(query.shape, value.shape)
    layer.set_weights([np.eye(UNITS), np.eye(UNITS), scale[:, None]])
    context, weights = layer(query, value)
    expected = other([query, value], return_attention_scores=True)
    np.testing.assert_allclose(context, expected[0], atol=1e-5)
    np.testing.assert_allclose(weights, expected[1], atol=1e-5)


@pytest.mark.parametrize("units", [0, -1])
def test_units_must_be_positive(units):
    with pytest.raises(ValueError, match=f"Received: units={units}"):
        layers.AdditiveAttention(units)
