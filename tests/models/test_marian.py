"""Marian: where it differs from the Transformer."""

import numpy as np
import pytest

from keras_attention import layers, models

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


def test_a_bias_is_added_to_each_tokens_logit(randomize):
    model = randomize(models.Marian(V, **SIZES))
    with_bias = model(IDS)
    bias = model.output_bias.numpy()
    model.output_bias.assign(0 * bias)
    np.testing.assert_allclose(with_bias, model(IDS) + bias, atol=1e-5)


def test_sines_stand_before_cosines():
    model = models.Marian(V, **SIZES)
    positions = np.asarray(model.position_encoding(np.zeros((1, 3, 14))))[0]
    angles = np.arange(3)[:, None] / 10000 ** (2 * np.arange(7) / 14)
    np.testing.assert_allclose(positions[:, :7], np.sin(angles), atol=1e-6)
    np.testing.assert_allclose(positions[:, 7:], np.cos(angles), atol=1e-6)


def test_with_its_choices_the_transformer_is_the_same(randomize, monkeypatch):
    model = randomize(models.Marian(V, **SIZES))
    model.output_bias.assign(np.zeros(V))
    other = models.Transformer(
        V, **SIZES, norm_first=False, activation="silu", epsilon=1e-5
    )
    other.position_encoding = layers.PositionEncoding("halves")
    other.build()
    weights = [w for w in model.weights if w is not model.output_bias]
    assert len(weights) == len(other.weights)
    other.set_weights([weight.numpy() for weight in weights])
    np.testing.assert_allclose(other(IDS), model(IDS), atol=1e-5)


@pytest.mark.parametrize("size", ["base"])
def test_a_size_has_the_transformers_weights_and_a_bias(size, without_memory):
    with without_memory():
        ours = models.Marian.from_size(size, V)
        theirs = models.Transformer.from_size(size, V)
        ours.build()
        theirs.build()
    assert ours.count_params() == theirs.count_params() + V
    assert not ours.norm_first
