import keras
import numpy as np
import pytest

from keras_attention import layers

B, S, D, UNITS, RANK, PROJECTION = 2, 3, 5, 11, 3, 7


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("projection_dim", [None, PROJECTION])
def test_equals_the_equations(projection_dim, rng, randomize):
    output_dim = projection_dim or UNITS
    x = rng.normal(size=(B, D)).astype("float32")
    h = rng.normal(size=(B, output_dim)).astype("float32")
    c = rng.normal(size=(B, UNITS)).astype("float32")
    cell = layers.FactorizedLSTMCell(UNITS, RANK, projection_dim)
    cell.build((B, D))
    w_1, w_2, b, *p = randomize(cell).get_weights()
    assert w_1.shape == (D + output_dim, RANK) and w_2.shape == (RANK, 44)
    output, (state, memory) = cell(x, [h, c])
    for row in range(B):
        joined = np.concatenate([x[row], h[row]])
        i, f, g, o = np.split(joined @ w_1 @ w_2 + b, 4)
        new_c = sigmoid(f) * c[row] + sigmoid(i) * np.tanh(g)
        new_h = sigmoid(o) * np.tanh(new_c)
        new_h = new_h @ p[0] if p else new_h
        np.testing.assert_allclose(memory[row], new_c, atol=1e-5)
        np.testing.assert_allclose(output[row], new_h, atol=1e-5)
    np.testing.assert_array_equal(state, output)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_of_full_rank_it_is_the_layer_of_keras(dtype, rng, randomize):
    """Any matrix is the product of two: its singular value decomposition."""
    x = rng.normal(size=(B, S, D)).astype("float32")
    mask = np.array([[1, 1, 1], [1, 1, 0]], bool)
    options = {"return_sequences": True, "return_state": True, "dtype": dtype}
    rank = D + UNITS
    ours = keras.layers.RNN(
        layers.FactorizedLSTMCell(UNITS, rank, dtype=dtype), **options
    )
    peer = keras.layers.LSTM(UNITS, **options)
    ours(x), peer(x)
    kernel, recurrent_kernel, bias = randomize(peer).get_weights()
    u, s, v = np.linalg.svd(
        np.concatenate([kernel, recurrent_kernel]), full_matrices=False
    )
    assert len(s) == rank
    ours.set_weights([u * s, v, bias])
    for got, want in zip(ours(x, mask=mask), peer(x, mask=mask), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(
            keras.ops.cast(got, "float32"),
            keras.ops.cast(want, "float32"),
            atol=1e-5 if dtype == "float32" else 0.03,
        )


def test_the_best_factors_are_as_far_off_as_the_singular_values(rng, randomize):
    """Eckart & Young 1936: what rank r leaves is sqrt(sum of s_i^2, i > r)."""
    cell = keras.layers.LSTMCell(UNITS)
    cell.build((B, D))
    kernel, recurrent_kernel, _ = randomize(cell).get_weights()
    whole = np.concatenate([kernel, recurrent_kernel])
    u, s, v = np.linalg.svd(whole, full_matrices=False)
    ours = layers.FactorizedLSTMCell(UNITS, RANK)
    ours.build((B, D))
    ours.first_factor.assign(u[:, :RANK] * s[:RANK])
    ours.second_factor.assign(v[:RANK])
    product = np.matmul(ours.first_factor, ours.second_factor)
    np.testing.assert_allclose(
        np.linalg.norm(product - whole), np.linalg.norm(s[RANK:]), rtol=1e-5
    )


def test_weights_are_as_many_as_its_docstring_says():
    cell = layers.FactorizedLSTMCell(UNITS, RANK, PROJECTION)
    cell.build((B, D))
    factors = (D + PROJECTION) * RANK + RANK * 4 * UNITS
    assert cell.count_params() == factors + 4 * UNITS + UNITS * PROJECTION
    alone = layers.FactorizedLSTMCell(UNITS, RANK)
    alone.build((B, D))
    factors = (D + UNITS) * RANK + RANK * 4 * UNITS
    assert alone.count_params() == factors + 4 * UNITS
    bias = cell.bias.numpy().reshape(4, UNITS)
    np.testing.assert_array_equal(bias[:, 0], [0, 1, 0, 0])


@pytest.mark.parametrize(
    "make, weights",
    [
        (lambda: layers.ProjectedLSTMCell(8192, 1024), 151_060_480),
        (lambda: layers.FactorizedLSTMCell(8192, 512, 1024), 52_494_336),
        (lambda: layers.GroupLSTMCell(8192, 2, 1024), 83_951_616),
        (lambda: layers.GroupLSTMCell(8192, 4, 1024), 50_397_184),
        (lambda: layers.GroupLSTMCell(8192, 8, 1024), 33_619_968),
        (lambda: layers.GroupLSTMCell(8192, 16, 1024), 25_231_360),
    ],
    ids=["BIGLSTM", "F512", "G-2", "G-4", "G-8", "G-16"],
)
def test_weights_of_two_layers_are_those_of_the_paper(
    make, weights, without_memory
):
    """Kuchaiev & Ginsburg 2017, table 1, "RNN params"."""
    with without_memory():
        cells = [make(), make()]
        for cell in cells:
            cell.build((None, 1024))
    assert sum(cell.count_params() for cell in cells) == weights


def test_comes_back_from_its_configuration():
    cell = layers.FactorizedLSTMCell(UNITS, RANK, PROJECTION, name="its_name")
    clone = layers.FactorizedLSTMCell.from_config(cell.get_config())
    assert clone.get_config() == cell.get_config()
    shapes = cell.compute_output_shape((B, D), [])
    assert shapes == ((B, PROJECTION), [(B, PROJECTION), (B, UNITS)])


@pytest.mark.parametrize("widths", [(0, 3), (11, 0), (11, 3, 0)])
def test_widths_that_are_not_positive_are_refused(widths):
    with pytest.raises(ValueError, match="positive integers. Received: units="):
        layers.FactorizedLSTMCell(*widths)
