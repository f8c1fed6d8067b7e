import keras
import numpy as np
import pytest

from keras_attention import layers

# Each group reads 5 inputs and has 7 cells; 3 of 9 outputs return to it.
B, S, GROUPS, D, UNITS, PROJECTION = 2, 4, 3, 15, 21, 9


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("projection_dim", [None, PROJECTION])
def test_equals_the_equations(projection_dim, rng, randomize):
    output_dim = projection_dim or UNITS
    x = rng.normal(size=(B, D)).astype("float32")
    h = rng.normal(size=(B, output_dim)).astype("float32")
    c = rng.normal(size=(B, UNITS)).astype("float32")
    cell = layers.GroupLSTMCell(UNITS, GROUPS, projection_dim)
    cell.build((B, D))
    w, b, *p = randomize(cell).get_weights()
    output, (state, memory) = cell(x, [h, c])
    for row in range(B):
        parts = [np.split(tensor[row], GROUPS) for tensor in (x, h, c)]
        new_c, new_h = [], []
        for j, (x_j, h_j, c_j) in enumerate(zip(*parts, strict=True)):
            z = np.concatenate([x_j, h_j]) @ w[j] + b[j]
            i, f, g, o = np.split(z, 4)
            new_c.append(sigmoid(f) * c_j + sigmoid(i) * np.tanh(g))
            new_h.append(sigmoid(o) * np.tanh(new_c[-1]))
        new_c, new_h = np.concatenate(new_c), np.concatenate(new_h)
        new_h = new_h @ p[0] if p else new_h
        np.testing.assert_allclose(memory[row], new_c, atol=1e-5)
        np.testing.assert_allclose(output[row], new_h, atol=1e-5)
    np.testing.assert_array_equal(state, output)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("num_groups", [1, GROUPS])
def test_groups_are_independent_layers_of_keras(
    num_groups, dtype, rng, randomize
):
    """With one group it is the LSTM."""
    x = rng.normal(size=(B, S, D)).astype("float32")
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)
    options = {"return_sequences": True, "return_state": True, "dtype": dtype}
    ours = keras.layers.RNN(
        layers.GroupLSTMCell(UNITS, num_groups, dtype=dtype), **options
    )
    ours(x)
    peers, outputs = [], []
    for part in np.split(x, num_groups, axis=-1):
        peer = keras.layers.RNN(
            keras.layers.LSTMCell(UNITS // num_groups, dtype=dtype), **options
        )
        peer(part)
        peers.append(randomize(peer).get_weights())
        outputs.append(peer(part, mask=mask))
    ours.set_weights(
        [
            np.stack([np.concatenate(peer[:2]) for peer in peers]),
            np.stack([peer[2] for peer in peers]),
        ]
    )
    for got, *want in zip(ours(x, mask=mask), *outputs, strict=True):
        want = keras.ops.concatenate(want, axis=-1)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(
            keras.ops.cast(got, "float32"),
            keras.ops.cast(want, "float32"),
            atol=1e-5 if dtype == "float32" else 0.03,
        )


def test_no_group_knows_of_another_but_through_the_projection(rng, randomize):
    x = rng.normal(size=(B, S, D)).astype("float32")
    changed = x.copy()
    changed[..., : D // GROUPS] += 1  # The inputs of the first group.
    for projection_dim, touched in ((None, [1, 0, 0]), (PROJECTION, [1, 1, 1])):
        layer = keras.layers.RNN(
            layers.GroupLSTMCell(UNITS, GROUPS, projection_dim)
        )
        layer(x)
        randomize(layer)
        difference = np.abs(layer(changed) - layer(x)).max(axis=0)
        moved = [part.max() > 1e-4 for part in np.split(difference, GROUPS)]
        assert moved == [bool(one) for one in touched]


def test_weights_are_as_many_as_its_docstring_says():
    cell = layers.GroupLSTMCell(UNITS, GROUPS, PROJECTION)
    cell.build((B, D))
    blocks = 4 * UNITS * (D + PROJECTION) // GROUPS
    assert cell.count_params() == blocks + 4 * UNITS + UNITS * PROJECTION
    one, several = (
        layers.GroupLSTMCell(UNITS, 1),
        layers.GroupLSTMCell(UNITS, 3),
    )
    for alone in (one, several):
        alone.build((B, D))
    peer = keras.layers.LSTMCell(UNITS)
    peer.build((B, D))
    assert one.count_params() == peer.count_params()
    assert np.size(several.kernel) * 3 == np.size(one.kernel)


def test_each_group_starts_like_a_small_lstm():
    """Biases of 1 for the forget gates, and Glorot's range for one group."""
    cell = layers.GroupLSTMCell(UNITS, GROUPS)
    cell.build((B, D))
    bias = cell.bias.numpy().reshape(GROUPS, 4, UNITS // GROUPS)
    np.testing.assert_array_equal(bias[:, :, 0], [[0, 1, 0, 0]] * GROUPS)
    rows, columns = (D + UNITS) // GROUPS, 4 * UNITS // GROUPS
    limit = np.sqrt(6 / (rows + columns))
    kernel = np.abs(cell.kernel.numpy())
    assert kernel.max() < limit and (kernel.max(axis=(1, 2)) > limit / 2).all()


def test_comes_back_from_its_configuration():
    cell = layers.GroupLSTMCell(UNITS, GROUPS, PROJECTION, name="its_name")
    clone = layers.GroupLSTMCell.from_config(cell.get_config())
    assert clone.get_config() == cell.get_config()
    shapes = cell.compute_output_shape((B, D), [])
    assert shapes == ((B, PROJECTION), [(B, PROJECTION), (B, UNITS)])


@pytest.mark.parametrize("numbers", [(0, 3), (21, 0), (21, 3, 0)])
def test_numbers_that_are_not_positive_are_refused(numbers):
    with pytest.raises(ValueError, match="positive integers. Received: units="):
        layers.GroupLSTMCell(*numbers)


@pytest.mark.parametrize(
    "numbers, inputs_dim, message",
    [
        ((20, 3), 15, "`units` must be .* a width of 20, num_groups=3"),
        ((21, 3, 8), 15, "`projection_dim` must be .* a width of 8, num_"),
        ((21, 3), 14, "The width of the inputs must be .* a width of 14, "),
    ],
)
def test_groups_that_would_differ_in_width_are_refused(
    numbers, inputs_dim, message
):
    with pytest.raises(ValueError, match=message):
        layers.GroupLSTMCell(*numbers).build((B, inputs_dim))
