import keras
import numpy as np
import pytest

from keras_attention import layers

B, T, S, QUERY_DIM, KEY_DIM, VALUE_DIM, UNITS = 2, 3, 5, 7, 13, 17, 11
SCORINGS = ("dot", "general", "concat")


@pytest.fixture
def arrays(rng):
    shapes = (B, T, QUERY_DIM), (B, S, KEY_DIM), (B, S, VALUE_DIM)
    query, key, value = (rng.normal(size=shape) for shape in shapes)
    return {
        "query": query.astype("float32"),
        "key": key.astype("float32"),
        "value": value.astype("float32"),
        "padding_mask": np.arange(S) < np.array([[S - 2], [S]]),
    }


def scores(scoring, h_t, h_s, weights):
    """Equation 8 of Luong et al. 2015 for one target, one source state."""
    if scoring == "dot":
        return h_t @ h_s
    if scoring == "general":
        (w,) = weights
        return h_t @ (w.T @ h_s)
    query_kernel, key_kernel, v = weights
    w = np.concatenate([query_kernel, key_kernel], axis=0).T
    return v[:, 0] @ np.tanh(w @ np.concatenate([h_t, h_s]))


def attend(score, query, key, value, padding_mask):
    """Equation 7 and the weighted average, sum by sum."""
    weights = np.zeros((B, T, S))
    context = np.zeros((B, T, value.shape[-1]))
    for b in range(B):
        for t in range(T):
            real = [s for s in range(S) if padding_mask[b, s]]
            e = {s: np.exp(score(query[b, t], key[b, s])) for s in real}
            for s in real:
                weights[b, t, s] = e[s] / sum(e.values())
                context[b, t] += weights[b, t, s] * value[b, s]
    return context, weights


@pytest.mark.parametrize("scoring", SCORINGS)
def test_equals_the_equation(arrays, scoring):
    if scoring == "dot":  # Query and key need one width.
        arrays["key"] = arrays["key"][..., :QUERY_DIM]
    units = UNITS if scoring == "concat" else None
    layer = layers.MultiplicativeAttention(scoring, units)
    context, weights = layer(**arrays)
    w = layer.get_weights()
    expected = attend(lambda q, k: scores(scoring, q, k, w), **arrays)
    np.testing.assert_allclose(context, expected[0], atol=1e-5)
    np.testing.assert_allclose(weights, expected[1], atol=1e-5)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_projected_once_equals_call(arrays, scoring):
    arrays["key"] = arrays["key"][..., :QUERY_DIM]
    layer = layers.MultiplicativeAttention(scoring)
    context, weights = layer(**arrays)
    keys = layer.project(arrays["key"])
    for t in range(T):
        step = layer.attend(
            arrays["query"][:, t : t + 1],
            keys,
            arrays["value"],
            padding_mask=arrays["padding_mask"],
        )
        np.testing.assert_allclose(step[0][:, 0], context[:, t], atol=1e-5)
        np.testing.assert_allclose(step[1][:, 0], weights[:, t], atol=1e-5)


def test_dot_equals_keras(rng):
    query = rng.normal(size=(B, T, KEY_DIM)).astype("float32")
    value = rng.normal(size=(B, S, KEY_DIM)).astype("float32")
    mask = rng.random((B, S)) < 0.7
    context, weights = layers.MultiplicativeAttention("dot")(
        query, value, padding_mask=mask
    )
    expected = keras.layers.Attention()(
        [query, value], mask=[None, mask], return_attention_scores=True
    )
    np.testing.assert_allclose(context, expected[0], atol=1e-5)
    np.testing.assert_allclose(weights, expected[1], atol=1e-5)


def test_dot_has_no_weights():
    layer = layers.MultiplicativeAttention("dot")
    layer.build((B, T, KEY_DIM), (B, S, KEY_DIM))
    assert layer.weights == []


def test_general_with_the_identity_is_dot(rng):
    query = rng.normal(size=(B, T, KEY_DIM)).astype("float32")
    value = rng.normal(size=(B, S, KEY_DIM)).astype("float32")
    general = layers.MultiplicativeAttention(
        "general", kernel_initializer=keras.initializers.Identity()
    )
    np.testing.assert_allclose(
        general(query, value)[1],
        layers.MultiplicativeAttention("dot")(query, value)[1],
        atol=1e-6,
    )


def test_concat_is_as_wide_as_the_query_by_default():
    layer = layers.MultiplicativeAttention("concat")
    layer.build((B, T, QUERY_DIM), (B, S, KEY_DIM))
    shapes = [tuple(w.shape) for w in layer.weights]
    assert shapes == [(QUERY_DIM, QUERY_DIM), (KEY_DIM, QUERY_DIM), (7, 1)]


def test_another_scoring_is_refused():
    with pytest.raises(ValueError, match="Received: scoring='cosine'"):
        layers.MultiplicativeAttention("cosine")


@pytest.mark.parametrize("scoring", ["dot", "general"])
def test_units_are_for_concat_only(scoring):
    with pytest.raises(ValueError, match=r"Received: units=11, scoring="):
        layers.MultiplicativeAttention(scoring, units=UNITS)


def test_dot_needs_one_width(arrays):
    layer = layers.MultiplicativeAttention("dot")
    with pytest.raises(ValueError, match="query width 7, key width 13"):
        layer(**arrays)
