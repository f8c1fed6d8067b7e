import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers

B, T, D, F = 2, 13, 7, 11
every_kernel = pytest.mark.parametrize(
    ("kernel_size", "dilation_rate"), [(1, 1), (2, 1), (3, 1), (3, 2), (5, 3)]
)


@pytest.fixture
def x(rng):
    return rng.normal(size=(B, T, D)).astype("float32")


@every_kernel
def test_equals_the_equation(x, randomize, kernel_size, dilation_rate):
    k, d = kernel_size, dilation_rate
    layer = layers.CausalConvolution(F, k, d)
    layer.build(x.shape)
    w, b = randomize(layer).get_weights()
    expected = np.zeros((B, T, F))
    for row in range(B):
        for t in range(T):
            expected[row, t] = b
            for j in range(k):
                place = t - (k - 1 - j) * d
                if place >= 0:
                    expected[row, t] += x[row, place] @ w[j]
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


@pytest.mark.parametrize("padding", ["causal", "same"])
@every_kernel
def test_equals_keras(x, randomize, kernel_size, dilation_rate, padding):
    if padding == "same" and kernel_size % 2 == 0:
        pytest.skip("an even width has no middle")
    ours = layers.CausalConvolution(F, kernel_size, dilation_rate)
    ours.build(x.shape)
    keras_layer = keras.layers.Conv1D(
        F, kernel_size, padding=padding, dilation_rate=dilation_rate
    )
    keras_layer.build(x.shape)
    keras_layer.set_weights(randomize(ours).get_weights())
    outputs = ours(x) if padding == "causal" else layers.centered(ours, x)
    np.testing.assert_allclose(outputs, keras_layer(x), atol=1e-5)


@every_kernel
def test_steps_equal_call(x, randomize, kernel_size, dilation_rate):
    layer = layers.CausalConvolution(F, kernel_size, dilation_rate)
    layer.build(x.shape)
    expected = randomize(layer)(x)
    buffer = layer.initial_buffer(B)
    assert buffer.shape == (B, (kernel_size - 1) * dilation_rate, D)
    for t in range(T):
        outputs, new_buffer = layer.step(x[:, t], buffer)
        assert new_buffer.shape == buffer.shape
        buffer = new_buffer
        np.testing.assert_allclose(outputs, expected[:, t], atol=1e-5)


@pytest.mark.parametrize(
    ("kernel_size", "dilation_rates"),
    [(2, (1, 2, 4, 8)), (3, (1, 2, 4)), (3, (1, 1, 1)), (4, (3,))],
)
def test_receptive_field(rng, randomize, kernel_size, dilation_rates):
    """1 + sum (k - 1) d positions: those and no others have a gradient."""
    field = 1 + (kernel_size - 1) * sum(dilation_rates)
    length = field + 5
    x = tf.constant(rng.normal(size=(1, length, D)).astype("float32"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for d in dilation_rates:
            layer = layers.CausalConvolution(D, kernel_size, d)
            layer.build(y.shape)
            y = randomize(layer)(y)
        last_but_two = y[:, -3]
    gradient = tape.gradient(last_but_two, x).numpy()[0]
    reached = np.abs(gradient).max(axis=1) > 0
    expected = np.zeros(length, bool)
    expected[length - 2 - field : length - 2] = True
    all_taps = len(set(dilation_rates)) > 1 or dilation_rates[0] == 1
    if all_taps:
        np.testing.assert_array_equal(reached, expected)
    else:  # One layer with gaps.
        np.testing.assert_array_equal(
            reached, expected & (np.arange(length) % 3 == (length - 3) % 3)
        )


@pytest.mark.parametrize("arguments", [(0, 3), (4, 0), (4, 3, 0)])
def test_sizes_are_positive(arguments):
    with pytest.raises(ValueError, match="positive integers. Received: fil"):
        layers.CausalConvolution(*arguments)


def test_a_buffer_needs_a_width():
    with pytest.raises(ValueError, match="has no weights yet. Call or build"):
        layers.CausalConvolution(F, 3).initial_buffer(B)


def test_a_sequence_is_expected(x):
    with pytest.raises(ValueError, match="expected ndim=3, found ndim=2"):
        layers.CausalConvolution(F, 3)(x[0])
