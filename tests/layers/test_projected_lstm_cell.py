import keras
import numpy as np
import pytest

from keras_attention import layers

B, S, D, UNITS, PROJECTION = 2, 3, 5, 11, 7
NUM_STEPS = 50


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_equals_the_equations(rng, randomize):
    x = rng.normal(size=(B, D)).astype("float32")
    r = rng.normal(size=(B, PROJECTION)).astype("float32")
    c = rng.normal(size=(B, UNITS)).astype("float32")
    cell = layers.ProjectedLSTMCell(UNITS, PROJECTION)
    cell.build((B, D))
    w, u, b, w_r = randomize(cell).get_weights()
    output, (state, memory) = cell(x, [r, c])
    for row in range(B):
        i, f, g, o = np.split(x[row] @ w + r[row] @ u + b, 4)
        new_c = sigmoid(f) * c[row] + sigmoid(i) * np.tanh(g)
        new_r = (sigmoid(o) * np.tanh(new_c)) @ w_r
        np.testing.assert_allclose(memory[row], new_c, atol=1e-5)
        np.testing.assert_allclose(output[row], new_r, atol=1e-5)
    np.testing.assert_array_equal(state, output)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_projected_by_one_it_is_the_layer_of_keras(rng, randomize, dtype):
    x = rng.normal(size=(B, S, D)).astype("float32")
    mask = np.array([[1, 1, 1], [1, 1, 0]], bool)
    options = {"return_sequences": True, "return_state": True, "dtype": dtype}
    cell = layers.ProjectedLSTMCell(UNITS, UNITS, dtype=dtype)
    ours = keras.layers.RNN(cell, **options)
    peer = keras.layers.LSTM(UNITS, **options)
    ours(x), peer(x)
    weights = randomize(peer).get_weights()
    ours.set_weights([*weights, np.eye(UNITS)])
    for got, want in zip(ours(x, mask=mask), peer(x, mask=mask), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(
            keras.ops.cast(got, "float32"),
            keras.ops.cast(want, "float32"),
            atol=1e-5 if dtype == "float32" else 0.03,
        )


def test_weights_are_as_many_as_its_docstring_says():
    """Sak et al. 2014, section 2.2, without peepholes."""
    cell = layers.ProjectedLSTMCell(UNITS, PROJECTION)
    cell.build((B, D))
    expected = 4 * UNITS * (D + PROJECTION + 1) + UNITS * PROJECTION
    assert cell.count_params() == expected
    bias = cell.bias.numpy().reshape(4, UNITS)
    np.testing.assert_array_equal(bias[:, 0], [0, 1, 0, 0])


def test_comes_back_from_its_configuration():
    cell = layers.ProjectedLSTMCell(UNITS, PROJECTION, name="its_name")
    clone = layers.ProjectedLSTMCell.from_config(cell.get_config())
    assert clone.get_config() == cell.get_config()
    shapes = cell.compute_output_shape((B, D), [])
    assert shapes == ((B, PROJECTION), [(B, PROJECTION), (B, UNITS)])


@pytest.mark.parametrize("widths", [(0, 7), (11, 0)])
def test_widths_that_are_not_positive_are_refused(widths):
    with pytest.raises(ValueError, match="positive integers. Received: units="):
        layers.ProjectedLSTMCell(*widths)


def numbers_to_add(num_texts, rng):
    """Numbers, two of them marked, [N, T, 2]; the sum of these, [N].

    One is marked in each half.
    """
    numbers = rng.random((num_texts, NUM_STEPS))
    marks = np.zeros((num_texts, NUM_STEPS))
    for half in (0, NUM_STEPS // 2):
        places = half + rng.integers(NUM_STEPS // 2, size=num_texts)
        marks[np.arange(num_texts), places] = 1
    inputs = np.stack([numbers, marks], axis=-1)
    return inputs.astype("float32"), np.sum(numbers * marks, axis=1)


@pytest.mark.slow
def test_adds_two_numbers_far_apart_where_a_simple_network_cannot():
    """The adding problem of Hochreiter and Schmidhuber 1997, made simpler.

    In their section 5.4, numbers are from -1 to 1, and lengths vary. Here, a
    guess of 1 has a mean squared error of 1 / 6, the variance of the sum.
    """
    errors = []
    for cell in (
        layers.ProjectedLSTMCell(64, 32),
        keras.layers.SimpleRNNCell(64),
    ):
        keras.utils.set_random_seed(1)
        rng = np.random.default_rng(1)
        model = keras.Sequential(
            [keras.layers.RNN(cell), keras.layers.Dense(1)]
        )
        model.compile(keras.optimizers.Adam(0.01, global_clipnorm=1.0), "mse")
        for _ in range(8):
            model.fit(*numbers_to_add(6400, rng), batch_size=64, verbose=0)
        errors.append(model.evaluate(*numbers_to_add(1000, rng), verbose=0))
    assert errors[0] < 0.01
    assert errors[1] > 0.9 / 6
