import keras
import numpy as np
import pytest

from keras_attention import layers

B, S, D, UNITS = 2, 3, 5, 7


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_equals_the_equations(rng, randomize):
    x = rng.normal(size=(B, D)).astype("float32")
    h = rng.normal(size=(B, UNITS)).astype("float32")
    layer = layers.GRUCell(UNITS)
    layer.build((B, D))
    w, u, b = (np.split(a, 3, -1) for a in randomize(layer).get_weights())
    expected = np.zeros((B, UNITS))
    for row in range(B):
        z = sigmoid(x[row] @ w[0] + h[row] @ u[0] + b[0])
        r = sigmoid(x[row] @ w[1] + h[row] @ u[1] + b[1])
        n = np.tanh(x[row] @ w[2] + (r * h[row]) @ u[2] + b[2])
        expected[row] = z * h[row] + (1 - z) * n
    outputs, (state,) = layer(x, [h])
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    np.testing.assert_array_equal(state, outputs)


def test_by_hand():
    layer = layers.GRUCell(1)
    layer.build((1, 1))
    # Past kept by a half, looked at by a half; the candidate is tanh(1 + 1).
    kernels = np.array([[0.0, 0.0, 1.0]]), np.array([[0.0, 0.0, 2.0]])
    layer.set_weights([*kernels, np.zeros(3)])
    outputs, _ = layer(np.ones((1, 1)), [np.ones((1, 1))])
    np.testing.assert_allclose(outputs, [[0.5 + 0.5 * np.tanh(2)]], atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_equals_the_layer_of_keras(rng, randomize, dtype):
    x = rng.normal(size=(B, S, D)).astype("float32")
    mask = np.array([[1, 1, 1], [1, 1, 0]], bool)
    options = {"return_sequences": True, "return_state": True, "dtype": dtype}
    ours = keras.layers.RNN(layers.GRUCell(UNITS, dtype=dtype), **options)
    peer = keras.layers.GRU(UNITS, reset_after=False, **options)
    ours(x), peer(x)
    peer.set_weights(randomize(ours).get_weights())
    for got, want in zip(ours(x, mask=mask), peer(x, mask=mask), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(
            keras.ops.cast(got, "float32"),
            keras.ops.cast(want, "float32"),
            atol=1e-5 if dtype == "float32" else 0.03,
        )


def test_comes_back_from_its_configuration():
    layer = layers.GRUCell(UNITS, name="its_name", dtype="mixed_float16")
    clone = keras.layers.deserialize(keras.layers.serialize(layer))
    assert clone.get_config() == layer.get_config()


def test_refuses_no_units():
    with pytest.raises(ValueError, match="units=0"):
        layers.GRUCell(0)
