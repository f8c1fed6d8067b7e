import numpy as np
import pytest

from keras_attention import layers

D, UNITS = 7, 11


@pytest.mark.parametrize("shape", [(2, D), (2, 3, D), (2, 3, 5, D)])
def test_equals_the_equation(rng, randomize, shape):
    x = rng.normal(size=shape).astype("float32")
    layer = layers.Maxout(UNITS)
    layer.build(shape)
    w, b = randomize(layer).get_weights()
    u = x @ w + b
    expected = np.zeros((*shape[:-1], UNITS))
    for j in range(1, UNITS + 1):  # The paper counts from 1.
        expected[..., j - 1] = np.maximum(
            u[..., 2 * j - 1 - 1], u[..., 2 * j - 1]
        )
    outputs = layer(x)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    assert layer.compute_output_shape(shape) == tuple(outputs.shape)


def test_by_hand():
    layer = layers.Maxout(2)
    layer.build((1, 1))
    layer.set_weights([np.array([[1.0, -1.0, 2.0, 3.0]]), np.zeros(4)])
    np.testing.assert_array_equal(layer(np.array([[-2.0]])), [[2.0, -4.0]])
