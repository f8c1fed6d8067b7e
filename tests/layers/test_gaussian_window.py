import keras
import numpy as np
import pytest

from keras_attention import layers

B, T, S, D, K = 2, 4, 9, 5, 3
MASK = np.arange(S) < np.array([[S], [S - 4]])


@pytest.fixture
def arrays(rng):
    shapes = {"query": (B, T, D), "value": (B, S, D)}
    return {
        name: rng.normal(size=shape).astype("float32")
        for name, shape in shapes.items()
    }


@pytest.fixture
def layer(arrays, randomize):
    layer = layers.GaussianWindow(K, step_size=2.0)
    layer(**arrays)
    return randomize(layer)


def window(layer, query, value, mask):
    """Equations 46 to 51, one Gaussian after another."""
    kernel, bias = layer.get_weights()
    weights, context = np.zeros((B, T, S)), np.zeros((B, T, D))
    for b in range(B):
        kappa = np.full(K, -1.0)
        for t in range(T):
            outputs = kernel.T @ query[b, t] + bias
            alpha, beta = np.exp(outputs[:K]), np.exp(outputs[K : 2 * K])
            kappa = kappa + layer.step_size * np.exp(outputs[2 * K :])
            for u in np.flatnonzero(mask[b]):
                for k in range(K):
                    distance = kappa[k] - u
                    weights[b, t, u] += alpha[k] * np.exp(
                        -beta[k] * distance**2
                    )
                context[b, t] += weights[b, t, u] * value[b, u]
    return context, weights


@pytest.mark.parametrize("mask", [None, MASK], ids=["", "masked"])
def test_equals_the_equations(layer, arrays, mask):
    real = np.ones((B, S), bool) if mask is None else mask
    context, weights = window(layer, **arrays, mask=real)
    found = layer(**arrays, padding_mask=mask)
    np.testing.assert_allclose(found[0], context, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1], weights, rtol=1e-5, atol=1e-5)


def test_token_by_token_equals_call(layer, arrays):
    context, weights = layer(**arrays, padding_mask=MASK)
    places = None
    for t in range(T):
        query = arrays["query"][:, t : t + 1]
        moved = layer.places(query, places)
        step = layer.attend(
            query=query,
            projected_key=layer.project(arrays["value"]),
            value=arrays["value"],
            padding_mask=MASK,
            places=moved,
        )
        places = moved[:, -1]
        np.testing.assert_allclose(step[0][:, 0], context[:, t], atol=1e-5)
        np.testing.assert_allclose(step[1][:, 0], weights[:, t], atol=1e-5)


def test_the_window_never_goes_back(layer, arrays):
    assert np.all(np.diff(layer.places(arrays["query"]), axis=1) > 0)


def test_steps_of_one_meet_each_key_in_turn(arrays):
    layer = layers.GaussianWindow(K)
    layer.build(arrays["query"].shape, arrays["value"].shape)
    layer.set_weights([0 * weight for weight in layer.get_weights()])
    _, weights = layer(**arrays)
    np.testing.assert_array_equal(
        np.argmax(weights, axis=-1), [list(range(T))] * B
    )
    # alpha = beta = 1, of K Gaussians on the key itself.
    np.testing.assert_allclose(weights[:, 2, 2], K, atol=1e-6)
    np.testing.assert_allclose(weights[:, 2, 3], K * np.exp(-1), atol=1e-6)


def test_a_model_with_it_is_saved_and_loaded(arrays, save_and_load):
    inputs = {
        "query": keras.Input((None, D), name="query"),
        "value": keras.Input((None, D), name="value"),
        "mask": keras.Input((None,), dtype="bool", name="mask"),
    }
    layer = layers.GaussianWindow(K, 0.5)
    outputs = layer(inputs["query"], inputs["value"], None, inputs["mask"])
    model, loaded = save_and_load(inputs, outputs)
    given = {**arrays, "mask": MASK}
    for got, expected in zip(loaded(given), model(given), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "arguments", [{"num_components": 0}, {"step_size": 0.0}]
)
def test_sizes_are_positive(arguments):
    with pytest.raises(ValueError, match="must be positive. Received: "):
        layers.GaussianWindow(**arguments)
