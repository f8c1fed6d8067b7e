import keras
import numpy as np
import pytest
from keras import ops

from keras_attention import layers, models

V, SOURCE_V = 23, 19
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


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("source_vocabulary_size", [None, SOURCE_V])
def test_equals_figure_1(randomize, norm_first, source_vocabulary_size):
    """Embeddings, layers (tested on their own) and the tied output."""
    model = randomize(
        models.Transformer(
            V, source_vocabulary_size, **SIZES, norm_first=norm_first
        )
    )

    def embed(embedding, token_ids):
        matrix = embedding.get_weights()[0]
        positions = layers.sinusoidal_positions(
            np.arange(token_ids.shape[1]), 14
        )
        return matrix[token_ids] * np.sqrt(14) + positions.numpy()

    mask = IDS["source_ids"] != 0
    x = embed(model.source_embedding, IDS["source_ids"])
    for layer in model.encoder_layers:
        x, _ = layer(x, padding_mask=mask)
    memory = model.encoder_norm(x) if norm_first else x
    x = embed(model.target_embedding, IDS["target_ids"])
    for layer in model.decoder_layers:
        x, _ = layer(x, memory, memory_mask=mask)
    x = model.decoder_norm(x) if norm_first else x
    expected = x.numpy() @ model.target_embedding.get_weights()[0].T
    np.testing.assert_allclose(model(IDS), expected, atol=1e-5)


def test_one_vocabulary_has_one_matrix():
    model = models.Transformer(V, **SIZES)
    assert model.source_embedding is model.target_embedding
    separate = models.Transformer(V, SOURCE_V, **SIZES)
    model.build()
    separate.build()
    assert separate.count_params() - model.count_params() == SOURCE_V * 14


EXPERTS = {
    "class_name": "keras_attention>MixtureOfExperts",
    "config": {"num_experts": 5, "intermediate_dim": 3},
}


def test_each_layer_has_experts_of_its_own(randomize, tmp_path):
    """Its weights are counted; the layer and the dict of it are the same."""
    model = randomize(models.Transformer(V, **SIZES, feed_forward=EXPERTS))
    network = 14 * 13 + 13 + 13 * 14 + 14
    experts = 5 * (14 * 3 + 3 + 3 * 14 + 14) + 2 * 14 * 5
    plain = models.Transformer(V, **SIZES)
    plain.build()
    more = 4 * (experts - network)
    assert model.count_params() - plain.count_params() == more
    own = [
        layer.feed_forward
        for layer in (*model.encoder_layers, *model.decoder_layers)
    ]
    assert len({id(layer) for layer in own}) == 4
    layer = layers.MixtureOfExperts(5, 3)
    other = models.Transformer(V, **SIZES, feed_forward=layer)
    other.build()
    other.set_weights(model.get_weights())
    expected = model(IDS).numpy()
    np.testing.assert_array_equal(other(IDS), expected)
    for one, name in ((model, "dict.keras"), (other, "layer.keras")):
        one.save(tmp_path / name)
        loaded = keras.models.load_model(tmp_path / name)
        np.testing.assert_array_equal(loaded(IDS), expected)
    memory = model.encode(IDS["source_ids"])
    state = model.initial_state(memory, max_length=4)
    for t in range(4):
        logits, state, _ = model.step(IDS["target_ids"][:, t], memory, state)
        real = IDS["target_ids"][:, t] != 0
        np.testing.assert_allclose(
            logits.numpy()[real], expected[real, t], atol=1e-5
        )


@keras.saving.register_keras_serializable(package="test_transformer")
class Counts(keras.layers.Layer):
    """It adds the number of tokens that it is to read to the losses."""

    def call(self, inputs, padding_mask):
        self.add_loss(ops.sum(ops.cast(padding_mask, "float32")))
        return inputs


@pytest.mark.parametrize("call", ["__call__", "call_with_maps"])
def test_experts_are_told_what_is_padding(call):
    model = models.Transformer(V, **SIZES, feed_forward=Counts())
    model.build()
    getattr(model, call)(IDS)
    # In two layers each: 8 real source tokens, and 7 real target tokens.
    assert float(sum(model.losses)) == 2 * 8 + 2 * 7


def test_a_network_without_a_class_is_refused():
    with pytest.raises(ValueError, match="class_name.*Received: .*'experts'"):
        models.Transformer(V, feed_forward="experts")


def test_memory_is_projected_once_for_each_layer(randomize):
    model = randomize(models.Transformer(V, **SIZES))
    memory = model.encode(IDS["source_ids"])
    shapes = [tuple(leaf.shape) for leaf in keras.tree.flatten(memory)]
    assert shapes == [(2, 7, 5, 2)] * 4 + [(2, 5)]


def test_state_knows_its_position(randomize):
    model = randomize(models.Transformer(V, **SIZES))
    memory = model.encode(IDS["source_ids"])
    state = model.initial_state(memory, max_length=11)
    assert state["caches"][0][1].shape == (2, 7, 11, 2)
    for t in range(3):
        np.testing.assert_array_equal(state["position"], [t, t])
        _, state, weights = model.step(IDS["target_ids"][:, t], memory, state)
        assert weights.shape == (2, 7, 5)


@pytest.mark.slow
def test_int8_steps_are_near_those_of_float32(randomize):
    model = randomize(models.Transformer(V, **SIZES))

    def first_logits():
        memory = model.encode(IDS["source_ids"])
        state = model.initial_state(memory, max_length=3)
        return model.prepared_step()(IDS["target_ids"][:, 0], memory, state)[0]

    exact = first_logits()
    able = (keras.layers.Dense, keras.layers.ReversibleEmbedding)
    model.quantize("int8", filters=lambda layer: isinstance(layer, able))
    assert model.target_embedding.embeddings.dtype == "int8"
    error = np.abs(first_logits() - exact).max()
    assert 0 < error < 0.05 * np.ptp(exact)


def formula(v, d, d_ff, n):
    """Weights of a Transformer whose three matrices of words are one."""
    attention = 4 * (d * d + d)
    feed_forward = d * d_ff + d_ff + d_ff * d + d
    norm = 2 * d
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    return v * d + n * (encoder_layer + decoder_layer)


@pytest.mark.fast_for("base")
@pytest.mark.parametrize(
    ("size", "d", "d_ff", "printed"),
    [("base", 512, 2048, 65e6), ("big", 1024, 4096, 213e6)],
)
def test_papers_sizes(size, d, d_ff, printed, without_memory):
    """Table 3, with the 37,000 joint tokens of section 5.1."""
    with without_memory():
        model = models.Transformer.from_size(size, 37_000)
        model.build()
    assert model.count_params() == formula(37_000, d, d_ff, n=6)
    assert model.count_params() == pytest.approx(printed, rel=0.03)
    assert not model.get_config()["norm_first"]


@pytest.mark.parametrize(("size", "num_layers"), [("mini", 2), ("tiny", 4)])
def test_small_sizes(size, num_layers, without_memory):
    with without_memory():
        model = models.Transformer.from_size(size, V)
        model.build()
    final_norms = 2 * 2 * 128
    expected = formula(V, 128, 256, num_layers) + final_norms
    assert model.count_params() == expected
