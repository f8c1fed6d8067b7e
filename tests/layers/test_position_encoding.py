import math

import numpy as np
import pytest

from keras_attention import layers

DIM = 14


def test_equals_the_equation():
    expected = np.zeros((5, DIM))
    for p in range(5):
        for i in range(DIM // 2):
            angle = p / 10000 ** (2 * i / DIM)
            expected[p, 2 * i] = math.sin(angle)
            expected[p, 2 * i + 1] = math.cos(angle)
    encoded = layers.sinusoidal_positions(np.arange(5), DIM)
    np.testing.assert_allclose(encoded, expected, atol=1e-6)


def test_equals_keras_hub():
    keras_hub = pytest.importorskip("keras_hub")
    theirs = keras_hub.layers.SinePositionEncoding()(np.zeros((1, 37, DIM)))
    encoded = layers.sinusoidal_positions(np.arange(37), DIM)
    np.testing.assert_allclose(encoded, theirs[0], atol=1e-5)


@pytest.mark.parametrize("k", [1, 3, 29])
def test_a_shift_is_a_rotation_of_each_pair(k):
    positions = np.array([0, 2, 7, 31])
    here = layers.sinusoidal_positions(positions, DIM).numpy()
    there = layers.sinusoidal_positions(positions + k, DIM).numpy()
    for i in range(DIM // 2):
        angle = k / 10000 ** (2 * i / DIM)
        rotation = np.array(
            [
                [math.cos(angle), math.sin(angle)],
                [-math.sin(angle), math.cos(angle)],
            ]
        )
        pair = slice(2 * i, 2 * i + 2)
        np.testing.assert_allclose(
            there[:, pair], here[:, pair] @ rotation.T, atol=1e-5
        )


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="Received: dim=7"):
        layers.sinusoidal_positions(np.arange(5), 7)
    with pytest.raises(ValueError, match="Received: dim=7"):
        layers.PositionEncoding()(np.zeros((2, 3, 7)))


def test_layer_adds_the_positions(rng):
    inputs = rng.normal(size=(2, 5, DIM)).astype("float32")
    np.testing.assert_allclose(
        layers.PositionEncoding()(inputs) - inputs,
        np.stack([layers.sinusoidal_positions(np.arange(5), DIM)] * 2),
        atol=1e-6,
    )


def test_token_by_token_equals_all_at_once(rng):
    inputs = rng.normal(size=(2, 5, DIM)).astype("float32")
    layer = layers.PositionEncoding()
    whole = layer(inputs)
    for t in range(5):
        np.testing.assert_allclose(
            layer(inputs[:, t : t + 1], start=t), whole[:, t : t + 1], atol=1e-6
        )


def test_layer_has_no_weights():
    layer = layers.PositionEncoding()
    layer(np.zeros((2, 3, DIM)))
    assert layer.weights == []


def test_far_positions_keep_their_accuracy():
    far = layers.sinusoidal_positions(np.array([4999]), DIM).numpy()[0]
    expected = [
        f(4999 / 10000 ** (2 * i / DIM))
        for i in range(DIM // 2)
        for f in (math.sin, math.cos)
    ]
    np.testing.assert_allclose(far, expected, atol=2e-3)


def test_halves_have_all_sines_before_all_cosines(rng):
    expected = np.zeros((5, DIM))
    for p in range(5):
        for i in range(DIM // 2):
            angle = p / 10000 ** (2 * i / DIM)
            expected[p, i] = math.sin(angle)
            expected[p, DIM // 2 + i] = math.cos(angle)
    encoded = layers.sinusoidal_positions(np.arange(5), DIM, "halves")
    np.testing.assert_allclose(encoded, expected, atol=1e-6)
    inputs = rng.normal(size=(2, 5, DIM)).astype("float32")
    np.testing.assert_allclose(
        layers.PositionEncoding("halves")(inputs) - inputs,
        np.stack([expected] * 2),
        atol=1e-6,
    )


def test_another_layout_is_refused():
    with pytest.raises(ValueError, match="one of pairs, halves.*'thirds'"):
        layers.sinusoidal_positions(np.arange(5), DIM, "thirds")
