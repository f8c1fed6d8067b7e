import numpy as np

from keras_attention import layers

B, T, D, INTERMEDIATE = 2, 3, 7, 11


def test_equals_the_equation(rng, randomize):
    x = rng.normal(size=(B, T, D)).astype("float32")
    layer = layers.FeedForward(INTERMEDIATE)
    layer.build(x.shape)
    w_1, b_1, w_2, b_2 = randomize(layer).get_weights()
    assert w_1.shape == (D, INTERMEDIATE) and w_2.shape == (INTERMEDIATE, D)
    expected = np.zeros((B, T, D))
    for b in range(B):
        for t in range(T):
            hidden = np.maximum(0, x[b, t] @ w_1 + b_1)
            expected[b, t] = hidden @ w_2 + b_2
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_another_activation(rng):
    x = rng.normal(size=(B, T, D)).astype("float32")
    layer = layers.FeedForward(INTERMEDIATE, activation="tanh")
    outputs = layer(x)
    w_1, b_1, w_2, b_2 = layer.get_weights()
    np.testing.assert_allclose(
        outputs, np.tanh(x @ w_1 + b_1) @ w_2 + b_2, atol=1e-5
    )


def test_positions_do_not_mix(rng):
    x = rng.normal(size=(B, T, D)).astype("float32")
    layer = layers.FeedForward(INTERMEDIATE)
    before = layer(x).numpy()
    x[:, 1] += 1
    after = layer(x).numpy()
    np.testing.assert_allclose(after[:, [0, 2]], before[:, [0, 2]], atol=1e-6)
    assert not np.allclose(after[:, 1], before[:, 1])


def test_gated_equals_the_equation(rng, randomize):
    """Shazeer 2020, equation 6, where products have no bias."""
    x = rng.normal(size=(B, T, D)).astype("float32")
    layer = layers.FeedForward(INTERMEDIATE, "tanh", use_bias=False, gated=True)
    layer.build(x.shape)
    randomize(layer)
    w, v, w_2 = (
        np.array(dense.kernel)
        for dense in (layer.expand, layer.gate, layer.contract)
    )
    assert len(layer.weights) == 3
    expected = np.zeros((B, T, D))
    for b in range(B):
        for t in range(T):
            hidden = np.tanh(x[b, t] @ w) * (x[b, t] @ v)
            expected[b, t] = hidden @ w_2
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_tanh_gelu_has_a_name(rng):
    x = rng.normal(size=(B, T, D)).astype("float32")
    layer = layers.FeedForward(INTERMEDIATE, "tanh_gelu")
    layer.build(x.shape)
    clone = layers.FeedForward.from_config(layer.get_config())
    clone.build(x.shape)
    clone.set_weights(layer.get_weights())
    w_1, b_1, w_2, b_2 = layer.get_weights()
    z = x @ w_1 + b_1
    cubic = np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)
    hidden = 0.5 * z * (1 + np.tanh(cubic))
    for one in (layer, clone):
        np.testing.assert_allclose(one(x), hidden @ w_2 + b_2, atol=1e-5)
