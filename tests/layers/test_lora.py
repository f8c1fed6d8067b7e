"""LoRA: small changes of attention's kernels (Hu et al. 2022)."""

import keras
import numpy as np
import pytest

from keras_attention import layers

B, T, S, D, HEADS, KEY_DIM, RANK = 2, 3, 5, 14, 3, 11, 2


@pytest.fixture
def layer(randomize):
    layer = layers.MultiHeadAttention(
        HEADS, KEY_DIM, positions=layers.BucketedBias(8, 10)
    )
    layer.build((B, T, D))
    return randomize(layer)


@pytest.fixture
def x(rng):
    return rng.normal(size=(B, T, D)).astype("float32")


def randomize_changes(layer, rng):
    for weight in layer.trainable_weights:
        weight.assign(rng.normal(scale=0.5, size=weight.shape))


def test_it_begins_as_the_layer_itself(layer, x):
    before, _ = layer(x)
    layer.enable_lora(RANK)
    after, _ = layer(x)
    np.testing.assert_array_equal(after, before)


def test_only_the_changes_are_trained(layer):
    layer.enable_lora(RANK)
    inner = HEADS * KEY_DIM
    shapes = [tuple(weight.shape) for weight in layer.trainable_weights]
    assert shapes == [(D, RANK), (RANK, inner)] * 3 + [
        (inner, RANK),
        (RANK, D),
    ]


@pytest.mark.parametrize("alpha, scale", [(None, 1), (6, 3)])
def test_equals_kernels_with_the_changes_in_them(layer, x, rng, alpha, scale):
    """W = W_0 + (alpha / r) A B, in every way to attend."""
    plain = layers.MultiHeadAttention(
        HEADS, KEY_DIM, positions=layers.BucketedBias(8, 10)
    )
    plain.build((B, T, D))
    plain.set_weights(layer.get_weights())
    layer.enable_lora(RANK, alpha)
    randomize_changes(layer, rng)
    for part in ("query", "key", "value", "output"):
        a, b = layer.lora_kernels[part]
        kernel = getattr(plain, f"{part}_kernel")
        kernel.assign(kernel.numpy() + scale * a.numpy() @ b.numpy())
    memory = rng.normal(size=(B, S, D)).astype("float32")
    for value in (None, memory):
        for ours, expected in zip(
            layer(x, value), plain(x, value), strict=True
        ):
            np.testing.assert_allclose(ours, expected, 1e-5, 1e-4)
    cache, expected_cache = layer.initial_cache(B, T), plain.initial_cache(B, T)
    for position in range(T):
        ours, _, cache = layer.step(x[:, position], cache, position)
        expected, _, expected_cache = plain.step(
            x[:, position], expected_cache, position
        )
        np.testing.assert_allclose(ours, expected, 1e-5, 1e-4)


def test_a_file_holds_the_kernels_with_the_changes(layer, x, rng, tmp_path):
    layer.enable_lora(RANK)
    randomize_changes(layer, rng)
    inputs = keras.Input((T, D))
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert len(loaded.weights) == 9
    for ours, expected in zip(loaded(x), model(x), strict=True):
        np.testing.assert_allclose(ours, expected, 1e-5, 1e-4)
    # And into a layer with changes, which begin anew.
    model.load_weights(tmp_path / "model.keras")
    for ours, expected in zip(loaded(x), model(x), strict=True):
        np.testing.assert_allclose(ours, expected, 1e-5, 1e-4)


def test_what_cannot_be_is_refused(layer):
    with pytest.raises(ValueError, match="has no weights yet"):
        layers.MultiHeadAttention(HEADS, KEY_DIM).enable_lora(RANK)
    with pytest.raises(ValueError, match="Received: rank=0"):
        layer.enable_lora(0)
    layer.enable_lora(RANK)
    with pytest.raises(ValueError, match="once. Received: rank=2, after 2"):
        layer.enable_lora(RANK)
