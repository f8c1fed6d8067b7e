"""The Vision Transformer: its patches, its stack and its paper's size."""

import keras
import numpy as np
import pytest

from keras_attention import models

SHAPE = (6, 4, 3)
SIZES = {
    "image_shape": SHAPE,
    "patch_size": 2,
    "num_layers": 2,
    "hidden_dim": 14,
    "intermediate_dim": 11,
    "num_heads": 7,
}


@pytest.fixture
def images(rng):
    return rng.normal(size=(2, *SHAPE)).astype("float32")


def test_equals_equations_1_to_4(images, randomize):
    """Patches and tokens in loops; the layers are tested on their own."""
    model = randomize(models.VisionTransformer(5, **SIZES))
    w_e, b_e = model.patch_embedding.get_weights()
    positions = model.position_embeddings.numpy()
    sequences = []
    for image in images:
        tokens = [model.class_token.numpy()[0]]
        for top in range(0, 6, 2):
            for left in range(0, 4, 2):
                patch = image[top : top + 2, left : left + 2]
                tokens.append(patch.reshape(-1) @ w_e + b_e)
        sequences.append(np.array(tokens) + positions)
    x = np.array(sequences, "float32")
    for layer in model.stack:
        x, _ = layer(x)
    w, b = model.head.get_weights()
    expected = model.norm(x)[:, 0] @ w + b
    np.testing.assert_allclose(model(images), expected, atol=1e-5)


def test_the_layer_without_its_mask_is_keras_hubs(rng, randomize):
    """KerasHub's encoder layer, pre-norm with GELU, with our weights."""
    keras_hub = pytest.importorskip("keras_hub")
    model = randomize(models.VisionTransformer(5, **SIZES))
    ours = model.stack[0]
    theirs = keras_hub.layers.TransformerEncoder(
        11,
        7,
        activation=lambda x: keras.activations.gelu(x, approximate=True),
        layer_norm_epsilon=1e-6,
        normalize_first=True,
    )
    x = rng.normal(size=(2, 5, 14)).astype("float32")
    theirs(x)
    attention = ours.self_attention
    for name, shape in (
        ("query", (14, 7, 2)),
        ("key", (14, 7, 2)),
        ("value", (14, 7, 2)),
        ("output", (7, 2, 14)),
    ):
        dense = getattr(theirs._self_attention_layer, f"_{name}_dense")
        bias = np.array(getattr(attention, f"{name}_bias"))
        dense.set_weights(
            [
                np.reshape(getattr(attention, f"{name}_kernel"), shape),
                bias if name == "output" else bias.reshape(shape[1:]),
            ]
        )
    for layer, weights in (
        (theirs._self_attention_layer_norm, ours.self_attention_residual.norm),
        (theirs._feedforward_layer_norm, ours.feed_forward_residual.norm),
        (theirs._feedforward_intermediate_dense, ours.feed_forward.expand),
        (theirs._feedforward_output_dense, ours.feed_forward.contract),
    ):
        layer.set_weights(weights.get_weights())
    np.testing.assert_allclose(ours(x)[0], theirs(x), atol=1e-4)


def test_every_patch_sees_every_other(images, randomize):
    model = randomize(models.VisionTransformer(5, **SIZES))
    _, attention_weights = model.read(images)
    assert [tuple(w.shape) for w in attention_weights] == [(2, 7, 7, 7)] * 2
    for weights in attention_weights:
        assert np.all(np.array(weights) > 0)
        np.testing.assert_allclose(np.sum(weights, axis=-1), 1, atol=1e-5)


def test_papers_size(without_memory):
    """ViT-B/16 with 1,000 classes; table 1 prints 86M."""
    with without_memory():
        model = models.VisionTransformer.from_size("base", 1000)
        model.build()
    d, d_ff, patches = 768, 3072, (224 // 16) ** 2
    embeddings = (16 * 16 * 3 + 1) * d + d + (patches + 1) * d
    layer = 4 * (d * d + d) + d * d_ff + d_ff + d_ff * d + d + 4 * d
    expected = embeddings + 12 * layer + 2 * d + (d + 1) * 1000
    assert model.count_params() == expected == 86_567_656


def test_config_and_file_round_trip(images, randomize, tmp_path):
    model = randomize(models.VisionTransformer(5, **SIZES))
    clone = models.VisionTransformer.from_config(model.get_config())
    assert clone.get_config() == model.get_config()
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(images), model(images))


@pytest.mark.parametrize(
    "arguments", [{"num_layers": 0}, {"patch_size": 4}, {"patch_size": 3}]
)
def test_arguments_that_are_refused(arguments):
    with pytest.raises(ValueError, match="must divide the picture's"):
        models.VisionTransformer(5, **{**SIZES, **arguments})


@pytest.mark.slow
def test_reads_handwritten_digits():
    """1,797 pictures of 8 x 8; a third, of other writers, is held out."""
    datasets = pytest.importorskip("sklearn.datasets")
    digits = datasets.load_digits()
    images = digits.images[..., None].astype("float32") / 16
    model = models.VisionTransformer.from_size("mini", 10)
    model.compile(
        keras.optimizers.Adam(2e-3, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(
        images[:1200], digits.target[:1200], batch_size=32, epochs=40, verbose=0
    )
    found = np.argmax(model.predict(images[1200:], verbose=0), axis=-1)
    assert np.mean(found == digits.target[1200:]) > 0.9
