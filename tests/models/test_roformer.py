import numpy as np
import pytest

from keras_attention import models

V = 23
SIZES = {
    "num_layers": 2,
    "hidden_dim": 14,
    "intermediate_dim": 13,
    "num_heads": 7,
}
IDS = {
    "source_ids": np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]]),
    "target_ids": np.array([[2, 19, 5, 9], [2, 22, 4, 0]]),
}


def rotation(position, dim):
    """R of Su et al. 2021, equation 15: [dim, dim]."""
    matrix = np.zeros((dim, dim))
    for i in range(dim // 2):
        angle = position * 10000 ** (-2 * i / dim)
        cosine, sine = np.cos(angle), np.sin(angle)
        pair = slice(2 * i, 2 * i + 2)
        matrix[pair, pair] = [[cosine, -sine], [sine, cosine]]
    return matrix


def test_self_attention_equals_equation_16(randomize, rng):
    """`softmax((R_m W_q x_m) . (R_n W_k x_n) / sqrt(d))` in each layer."""
    model = randomize(models.RoFormer(V, **SIZES))
    x = rng.normal(size=(1, 5, 14)).astype("float32")
    for layer in (model.encoder_layers[1], model.decoder_layers[0]):
        attention = layer.self_attention
        _, weights = attention(x)
        w_q, b_q, w_k, b_k = attention.get_weights()[:4]
        for h in range(7):
            own = slice(2 * h, 2 * h + 2)
            scores = np.zeros((5, 5))
            for m in range(5):
                for n in range(5):
                    q = rotation(m, 2) @ (x[0, m] @ w_q[:, own] + b_q[own])
                    k = rotation(n, 2) @ (x[0, n] @ w_k[:, own] + b_k[own])
                    scores[m, n] = q @ k / np.sqrt(2)
            e = np.exp(scores)
            expected = e / e.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(weights[0, h], expected, atol=1e-5)


def test_the_order_of_the_source_is_known_by_rotation_alone(randomize):
    """Without it, the encoder reads a bag: all else is the Transformer's."""
    model = randomize(models.RoFormer(V, **SIZES))
    assert model.position_encoding is None
    turned = {**IDS, "source_ids": IDS["source_ids"][:, ::-1]}
    assert np.abs(model(IDS) - model(turned)).max() > 1e-3
    for layer in model.encoder_layers:
        layer.self_attention.positions = None
    np.testing.assert_allclose(model(IDS), model(turned), atol=1e-5)


def test_attention_to_the_source_is_not_rotated():
    model = models.RoFormer(V, **SIZES)
    model.build()
    for layer in model.decoder_layers:
        assert layer.self_attention.positions is not None
        assert layer.cross_attention.positions is None


def test_the_weights_are_those_of_the_transformer(randomize):
    """So a Transformer's can go on as a RoFormer's, and the other way."""
    model = randomize(models.RoFormer(V, **SIZES))
    other = models.Transformer(V, **SIZES)
    other.build()
    assert [w.path.partition("/")[2] for w in model.weights] == [
        w.path.partition("/")[2] for w in other.weights
    ]
    other.set_weights(model.get_weights())
    assert np.abs(other(IDS) - model(IDS)).max() > 1e-3


@pytest.mark.fast_for("mini")
@pytest.mark.parametrize("size", models.RoFormer.sizes)
def test_sizes_are_those_of_the_transformer(size, without_memory):
    with without_memory():
        ours = models.RoFormer.from_size(size, V)
        theirs = models.Transformer.from_size(size, V)
        ours.build()
        theirs.build()
    assert ours.count_params() == theirs.count_params()


def test_heads_of_an_odd_width_are_refused():
    model = models.RoFormer(V, **{**SIZES, "num_heads": 2})
    with pytest.raises(ValueError, match="Received: key_dim=7"):
        model.build()
