import math

import keras
import numpy as np
import pytest

from keras_attention import layers

B, T, S, D = 3, 4, 6, 5
# A text that ends early, a whole one, and one with holes.
MASK = np.array(
    [[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1], [0, 1, 1, 0, 1, 1]], bool
)


@pytest.fixture
def arrays(rng):
    shapes = {"query": (B, T, D), "value": (B, S, D)}
    return {
        name: rng.normal(size=shape).astype("float32")
        for name, shape in shapes.items()
    }


def places(ratio, mask):
    """Where each query looks, one after another: int [B, T]."""
    found = np.zeros((B, T), int)
    for b, t in np.ndindex(B, T):
        keys = np.flatnonzero(mask[b])
        found[b, t] = keys[min(math.floor(ratio * t + 0.5), len(keys) - 1)]
    return found


@pytest.mark.parametrize("ratio", [1.0, 0.5, 1.7])
@pytest.mark.parametrize("mask", [None, MASK], ids=["", "masked"])
def test_each_query_looks_at_its_place(ratio, mask, arrays):
    layer = layers.DiagonalAttention(ratio)
    expected = places(ratio, np.ones((B, S)) if mask is None else mask)
    context, weights = layer(**arrays, padding_mask=mask)
    np.testing.assert_array_equal(np.argmax(weights, axis=-1), expected)
    np.testing.assert_array_equal(np.sum(weights, axis=-1), np.ones((B, T)))
    rows = np.take_along_axis(arrays["value"], expected[..., None], axis=1)
    np.testing.assert_array_equal(context, rows)


def test_token_by_token_equals_call(arrays):
    layer = layers.DiagonalAttention(1.7)
    context, weights = layer(**arrays, padding_mask=MASK)
    for t in range(T):
        step = layer.attend(
            query=arrays["query"][:, t : t + 1],
            projected_key=layer.project(arrays["value"]),
            value=arrays["value"],
            padding_mask=MASK,
            start=t,
        )
        np.testing.assert_array_equal(step[0][:, 0], context[:, t])
        np.testing.assert_array_equal(step[1][:, 0], weights[:, t])


def test_a_forbidden_place_has_no_weight(arrays):
    layer = layers.DiagonalAttention()
    allowed = np.arange(S) != 1
    context, weights = layer(
        **arrays, attention_mask=np.broadcast_to(allowed, (T, S))
    )
    assert not np.any(context[:, 1]) and not np.any(weights[:, 1])
    np.testing.assert_array_equal(np.sum(weights[:, 2], axis=-1), np.ones(B))


def test_it_has_no_weights(arrays):
    layer = layers.DiagonalAttention()
    layer(**arrays)
    assert layer.weights == []


@pytest.mark.parametrize("ratio", [0, -1, float("nan")])
def test_a_cursor_moves_forward(ratio):
    with pytest.raises(ValueError, match="`ratio` must be positive"):
        layers.DiagonalAttention(ratio)


def test_a_model_with_it_is_saved_and_loaded(arrays, save_and_load):
    inputs = {
        "query": keras.Input((None, D), name="query"),
        "value": keras.Input((None, D), name="value"),
        "mask": keras.Input((None,), dtype="bool", name="mask"),
    }
    layer = layers.DiagonalAttention(0.5)
    outputs = layer(inputs["query"], inputs["value"], None, inputs["mask"])
    given = {**arrays, "mask": MASK}
    model, loaded = save_and_load(inputs, outputs)
    for got, expected in zip(loaded(given), model(given), strict=True):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(
        np.argmax(loaded(given)[1], axis=-1), places(0.5, MASK)
    )
