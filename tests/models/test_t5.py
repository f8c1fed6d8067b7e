"""T5: where it differs from the Transformer. `tests/published/` compares it."""

import numpy as np
import pytest

from keras_attention import layers, models

V = 23
SIZES = {
    "num_layers": 2,
    "hidden_dim": 14,
    "intermediate_dim": 13,
    "num_heads": 7,
    "key_dim": 3,
}
IDS = {
    "source_ids": np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]]),
    "target_ids": np.array([[2, 19, 5, 9], [2, 22, 4, 0]]),
}


def rms(x, scale):
    return scale * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6)


def test_the_encoder_equals_the_equations(randomize):
    """x + MultiHead(RMSNorm(x)), then x + FFN(RMSNorm(x)), in loops."""
    model = randomize(models.T5(V, **SIZES))
    ids = IDS["source_ids"][:1]
    x = model.source_embedding.embeddings.numpy()[ids[0]]  # [S, D]
    for layer in model.encoder_layers:
        attention = layer.self_attention
        w_q, w_k, w_v, w_o = (
            getattr(attention, f"{name}_kernel").numpy()
            for name in ("query", "key", "value", "output")
        )
        table = attention.positions.bias_table.numpy()
        y = rms(x, layer.self_attention_residual.norm.scale.numpy())
        contexts = np.zeros((5, 21))
        for h in range(7):
            own = slice(3 * h, 3 * h + 3)
            for t in range(5):
                scores = np.zeros(5)
                for s in range(5):
                    # Distances below 8 have a bucket each, and those of later
                    # keys come behind 16 of earlier ones.
                    bucket = t - s if s <= t else 16 + s - t
                    scores[s] = (y[t] @ w_q[:, own]) @ (y[s] @ w_k[:, own])
                    scores[s] = scores[s] / np.sqrt(3) + table[bucket, h]
                a = np.exp(scores - scores.max())
                a /= a.sum()
                contexts[t, own] = sum(
                    a[s] * (y[s] @ w_v[:, own]) for s in range(5)
                )
        x = x + contexts @ w_o
        y = rms(x, layer.feed_forward_residual.norm.scale.numpy())
        w_1, w_2 = layer.feed_forward.get_weights()
        x = x + np.maximum(0, y @ w_1) @ w_2
    expected = rms(x, model.encoder_norm.scale.numpy())
    memory, _ = model._encode(ids)
    np.testing.assert_allclose(memory[0], expected, rtol=1e-3, atol=1e-4)


def test_tied_logits_are_divided(randomize):
    """By the root of the width; T5 1.1 has a matrix of its own instead."""
    model = randomize(models.T5(V, **SIZES))
    x = np.random.default_rng(0).normal(size=(2, 3, 14)).astype("float32")
    normed = rms(x, model.decoder_norm.scale.numpy())
    matrix = model.target_embedding.embeddings.numpy()
    np.testing.assert_allclose(
        model._logits(x), normed @ matrix.T / np.sqrt(14), atol=1e-5
    )
    model = randomize(models.T5(V, **SIZES, tied=False))
    normed = rms(x, model.decoder_norm.scale.numpy())
    matrix = model.target_embedding.reverse_embeddings.numpy()
    np.testing.assert_allclose(model._logits(x), normed @ matrix, atol=1e-5)


def test_only_the_encoder_looks_both_ways():
    model = models.T5(V, **SIZES)
    model.build()
    for layer in model.encoder_layers:
        assert layer.self_attention.positions.bidirectional
    for layer in model.decoder_layers:
        assert not layer.self_attention.positions.bidirectional
        assert layer.cross_attention.positions is None


@pytest.mark.parametrize("source", [None, 19])
def test_nothing_has_a_bias(source):
    model = models.T5(V, source, **SIZES, gated=True)
    model.build()
    names = {weight.path.rpartition("/")[2] for weight in model.weights}
    assert not {name for name in names if name.endswith("bias")}
    assert isinstance(model.encoder_layers[0].feed_forward, layers.FeedForward)


def test_decoder_may_have_another_depth():
    model = models.T5(V, **SIZES, num_decoder_layers=1)
    assert (len(model.encoder_layers), len(model.decoder_layers)) == (2, 1)
    assert model(IDS).shape == (2, 4, V)


@pytest.mark.parametrize(
    "size, millions",
    [("small", 60), pytest.param("base", 220, marks=pytest.mark.slow)],
)
def test_sizes_are_the_papers(size, millions, without_memory):
    """Raffel et al. 2020, sections 3.1.2 and 3.7, with their vocabulary."""
    with without_memory():
        model = models.T5.from_size(size, 32128)
        model.build()
    # Each layer has a table of its own, where the paper's share one.
    assert round(model.count_params() / 1e6, -1) == millions


def test_padding_may_have_another_id(randomize):
    """And so START and END: those of published weights."""
    ids = {"pad_id": 22, "start_id": 0, "end_id": 1}
    model = randomize(models.T5(V, **SIZES, control_ids=ids))
    assert model.control_ids == ids
    padded = {
        **IDS,
        "source_ids": np.where(IDS["source_ids"] == 0, 22, IDS["source_ids"]),
    }
    alone = {name: rows[1:] for name, rows in padded.items()}
    alone["source_ids"] = alone["source_ids"][:, :3]
    np.testing.assert_allclose(model(padded)[1:], model(alone), atol=1e-5)
