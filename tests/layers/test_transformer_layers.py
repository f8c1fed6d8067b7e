import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers

B, T, S, D, HEADS, INTERMEDIATE = 2, 3, 5, 14, 7, 11
EPSILON = 1e-6

norm_orders = pytest.mark.parametrize(
    "norm_first", [False, True], ids=["post_norm", "pre_norm"]
)


@pytest.fixture
def arrays(rng):
    return {
        "inputs": rng.normal(size=(B, T, D)).astype("float32"),
        "memory": rng.normal(size=(B, S, D)).astype("float32"),
        "memory_mask": np.arange(S) < np.array([[S], [S - 2]]),
    }


def normalize(x, gamma, beta):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return gamma * (x - mean) / np.sqrt(variance + EPSILON) + beta


def around(sublayer, x, residual):
    """The residual path of numpy function `sublayer`, both orders."""
    norm = residual.norm.get_weights()
    if residual.norm_first:
        return x + sublayer(normalize(x, *norm))
    return normalize(x + sublayer(x), *norm)


@norm_orders
def test_residual_equals_the_equation(rng, randomize, norm_first):
    x = rng.normal(size=(B, T, D)).astype("float32")
    residual = layers.Residual(norm_first=norm_first)
    residual.build(x.shape)
    randomize(residual)
    outputs = residual(x, np.sin(residual.enter(x)))
    np.testing.assert_allclose(outputs, around(np.sin, x, residual), atol=1e-5)


def test_residual_drops_the_sublayers_output_only():
    x = np.full((B, 997, D), 2.0, "float32")
    residual = layers.Residual(dropout=0.5, norm_first=True)
    residual.build(x.shape)
    outputs = residual(x, np.ones_like(x), training=True)
    assert set(np.unique(outputs)) == {2.0, 4.0}
    np.testing.assert_array_equal(residual(x, np.ones_like(x)), x + 1)


def test_a_memory_of_another_width(arrays, rng):
    memory = rng.normal(size=(B, S, 5)).astype("float32")
    layer = layers.TransformerDecoderLayer(HEADS, INTERMEDIATE)
    outputs, weights = layer(arrays["inputs"], memory)
    assert outputs.shape == (B, T, D) and weights.shape == (B, HEADS, T, S)
    assert layer.cross_attention.key_kernel.shape == (5, D)


@norm_orders
def test_encoder_layer_equals_its_sublayers(arrays, randomize, norm_first):
    """Vaswani et al. 2017, 3.1; the sublayers have tests of their own."""
    layer = layers.TransformerEncoderLayer(
        HEADS, INTERMEDIATE, norm_first=norm_first
    )
    x, mask = arrays["memory"], arrays["memory_mask"]
    layer.build(x.shape)
    randomize(layer)
    outputs, weights = layer(x, padding_mask=mask)

    def attend(x):
        return layer.self_attention(x, padding_mask=mask)[0].numpy()

    def feed_forward(x):
        return layer.feed_forward(x).numpy()

    x = around(attend, x, layer.self_attention_residual)
    x = around(feed_forward, x, layer.feed_forward_residual)
    np.testing.assert_allclose(outputs, x, atol=1e-5)
    assert weights.shape == (B, HEADS, S, S)


@norm_orders
def test_decoder_layer_equals_its_sublayers(arrays, randomize, norm_first):
    layer = layers.TransformerDecoderLayer(
        HEADS, INTERMEDIATE, norm_first=norm_first
    )
    x, memory, mask = arrays.values()
    layer.build(x.shape)
    randomize(layer)
    outputs, weights = layer(**arrays)

    def attend(x):
        return layer.self_attention(x, use_causal_mask=True)[0].numpy()

    def attend_to_memory(x):
        # The memory is not normalised here: the encoder's end did that.
        return layer.cross_attention(x, memory, padding_mask=mask)[0].numpy()

    def feed_forward(x):
        return layer.feed_forward(x).numpy()

    x = around(attend, x, layer.self_attention_residual)
    x = around(attend_to_memory, x, layer.cross_attention_residual)
    x = around(feed_forward, x, layer.feed_forward_residual)
    np.testing.assert_allclose(outputs, x, atol=1e-5)
    assert weights.shape == (B, HEADS, T, S)
    assert (weights.numpy()[1, ..., S - 2 :] == 0).all()


NAMES_IN_KERAS_HUB = {
    "self_attention_residual/norm": "self_attention_layer_norm",
    "cross_attention_residual/norm": "cross_attention_layer_norm",
    "feed_forward_residual/norm": "feedforward_layer_norm",
    "feed_forward/expand": "feedforward_intermediate_dense",
    "feed_forward/contract": "feedforward_output_dense",
    "_kernel": "/kernel",
    "_bias": "/bias",
    "attention/output": "attention/attention_output",
}


def copy_weights(layer, other):
    """Gives keras_hub's layer the weights of ours."""
    theirs = {
        w.path.partition("/")[2].replace("attention_layer/", "attention/"): w
        for w in other.weights
    }
    for weight in layer.weights:
        path = weight.path.partition("/")[2]
        for name, name_there in NAMES_IN_KERAS_HUB.items():
            path = path.replace(name, name_there)
        variable = theirs.pop(path)
        variable.assign(keras.ops.reshape(weight, variable.shape))
    assert not theirs


@norm_orders
def test_encoder_layer_equals_keras_hub(arrays, randomize, norm_first):
    keras_hub = pytest.importorskip("keras_hub")
    x, mask = arrays["memory"], arrays["memory_mask"]
    layer = layers.TransformerEncoderLayer(
        HEADS, INTERMEDIATE, norm_first=norm_first
    )
    layer.build(x.shape)
    other = keras_hub.layers.TransformerEncoder(
        INTERMEDIATE,
        HEADS,
        layer_norm_epsilon=EPSILON,
        normalize_first=norm_first,
    )
    other.build(x.shape)
    copy_weights(randomize(layer), other)
    outputs, _ = layer(x, padding_mask=mask)
    np.testing.assert_allclose(outputs, other(x, padding_mask=mask), atol=1e-5)


@norm_orders
def test_decoder_layer_equals_keras_hub(arrays, randomize, norm_first):
    keras_hub = pytest.importorskip("keras_hub")
    x, memory, mask = arrays.values()
    layer = layers.TransformerDecoderLayer(
        HEADS, INTERMEDIATE, norm_first=norm_first
    )
    layer.build(x.shape)
    other = keras_hub.layers.TransformerDecoder(
        INTERMEDIATE,
        HEADS,
        layer_norm_epsilon=EPSILON,
        normalize_first=norm_first,
    )
    other.build(x.shape, memory.shape)
    copy_weights(randomize(layer), other)
    outputs, _ = layer(**arrays)
    np.testing.assert_allclose(
        outputs, other(x, memory, encoder_padding_mask=mask), atol=1e-5
    )


@norm_orders
def test_decoder_steps_equal_call(arrays, randomize, norm_first):
    layer = layers.TransformerDecoderLayer(
        HEADS, INTERMEDIATE, dropout=0.3, norm_first=norm_first
    )
    layer.build((B, T, D))
    outputs, weights = randomize(layer)(**arrays)
    projected = layer.project_memory(arrays["memory"])
    cache = layer.initial_cache(B, T + 2)
    for t in range(T):
        step_outputs, step_weights, cache = layer.step(
            arrays["inputs"][:, t],
            projected,
            arrays["memory_mask"],
            cache,
            position=t,
        )
        np.testing.assert_allclose(step_outputs, outputs[:, t], atol=1e-5)
        np.testing.assert_allclose(step_weights, weights[:, :, t], atol=1e-5)


@norm_orders
def test_decoder_causality_by_gradient(arrays, randomize, norm_first):
    layer = layers.TransformerDecoderLayer(
        HEADS, INTERMEDIATE, norm_first=norm_first
    )
    layer.build((B, T, D))
    randomize(layer)
    x = tf.constant(arrays.pop("inputs"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs, _ = layer(x, **arrays)
    jacobian = tape.jacobian(outputs, x).numpy()
    for t in range(T):
        for s in range(T):
            assert jacobian[0, t, :, 0, s].any() == (s <= t)


def test_encoder_layer_sees_both_ways(arrays, randomize):
    layer = layers.TransformerEncoderLayer(HEADS, INTERMEDIATE)
    layer.build((B, S, D))
    randomize(layer)
    x = tf.constant(arrays["memory"])
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs, _ = layer(x)
    jacobian = tape.jacobian(outputs, x).numpy()[0, :, :, 0]
    assert jacobian.any(axis=(1, 3)).all()


@norm_orders
def test_causal_encoder_layer_reads_each_beginning(
    arrays, randomize, norm_first
):
    """The layer of a language model: position t has seen 0 ... t alone."""
    layer = layers.TransformerEncoderLayer(
        HEADS, INTERMEDIATE, norm_first=norm_first
    )
    x = arrays["memory"]
    layer.build(x.shape)
    randomize(layer)
    causal, weights = layer(x, use_causal_mask=True)
    for t in range(S):
        beginning, _ = layer(x[:, : t + 1])
        np.testing.assert_allclose(causal[:, t], beginning[:, t], atol=1e-5)
    masked, masked_weights = layer(x, attention_mask=np.tri(S, dtype=bool))
    np.testing.assert_array_equal(causal, masked)
    np.testing.assert_array_equal(weights, masked_weights)


def test_encoder_layer_knows_no_order(arrays, randomize):
    """Without positions: a permutation of the inputs is one of the outputs."""
    layer = layers.TransformerEncoderLayer(HEADS, INTERMEDIATE)
    x = arrays["memory"]
    layer.build(x.shape)
    outputs, _ = randomize(layer)(x)
    order = [3, 0, 4, 1, 2]
    permuted, _ = layer(x[:, order])
    np.testing.assert_allclose(permuted, outputs.numpy()[:, order], atol=1e-5)


def test_decoder_layer_takes_the_mask_of_its_memory(arrays, randomize):
    """That of an embedding, say: Keras hands it over by the name."""
    layer = layers.TransformerDecoderLayer(HEADS, INTERMEDIATE)
    layer.build((B, T, D))
    outputs, _ = randomize(layer)(**arrays)
    zeros = arrays.pop("memory") * arrays.pop("memory_mask")[..., None]
    masked, _ = layer(memory=keras.layers.Masking()(zeros), **arrays)
    np.testing.assert_allclose(masked, outputs, atol=1e-6)
    unmasked, _ = layer(memory=zeros, **arrays)
    assert np.abs(unmasked - outputs).max() > 1e-3


def test_decoder_layer_with_inputs_padded_in_front(arrays, randomize):
    layer = layers.TransformerDecoderLayer(HEADS, INTERMEDIATE)
    layer.build((B, T, D))
    outputs, _ = randomize(layer)(**arrays)
    x = np.pad(arrays.pop("inputs"), [(0, 0), (2, 0), (0, 0)])
    padding_mask = np.arange(T + 2)[None].repeat(B, axis=0) >= 2
    padded, _ = layer(x, padding_mask=padding_mask, **arrays)
    np.testing.assert_allclose(padded[:, 2:], outputs, atol=1e-5)


@pytest.mark.parametrize(
    "layer_class",
    [layers.TransformerEncoderLayer, layers.TransformerDecoderLayer],
)
def test_heads_must_divide_the_width(layer_class):
    layer = layer_class(num_heads=3, intermediate_dim=INTERMEDIATE)
    with pytest.raises(ValueError, match="Received: num_heads=3, width 14"):
        layer.build((B, T, D))


@pytest.mark.parametrize("sizes", [(0, 8), (2, 0)])
def test_sizes_must_be_positive(sizes):
    with pytest.raises(ValueError, match="must be positive"):
        layers.TransformerEncoderLayer(*sizes)


@norm_orders
@pytest.mark.parametrize("epsilon", [1e-6, 0.1])
def test_rms_normalization_equals_the_equation(
    rng, randomize, norm_first, epsilon
):
    """Zhang and Sennrich 2019, equation 4: no mean, and no shift."""
    x = rng.normal(loc=0.5, size=(B, T, D)).astype("float32")
    residual = layers.Residual(0.0, norm_first, "rms", epsilon)
    residual.build(x.shape)
    randomize(residual)
    (scale,) = residual.get_weights()

    def normalized(x):
        mean_square = (x**2).mean(axis=-1, keepdims=True)
        return scale * x / np.sqrt(mean_square + epsilon)

    expected = (
        x + np.sin(normalized(x)) if norm_first else normalized(x + np.sin(x))
    )
    outputs = residual(x, np.sin(residual.enter(x)))
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


def test_another_normalization_is_refused():
    with pytest.raises(ValueError, match="one of layer, rms.*'batch'"):
        layers.Residual(normalization="batch")


def test_heads_of_a_width_of_their_own(arrays, randomize):
    """And no product with a bias: as T5's."""
    layer = layers.TransformerDecoderLayer(
        num_heads=3,
        intermediate_dim=INTERMEDIATE,
        norm_first=True,
        use_bias=False,
        key_dim=5,
        normalization="rms",
    )
    x, memory = arrays["inputs"], arrays["memory"]
    outputs, attention_weights = layer(x, memory)
    assert outputs.shape == x.shape
    assert attention_weights.shape == (B, 3, T, S)
    shapes = [tuple(weight.shape) for weight in layer.weights]
    assert sorted(shapes) == sorted(
        [(D, 15)] * 6 + [(15, D)] * 2 + [(D,)] * 3 + [(D, 11), (11, D)]
    )
    projected = layer.project_memory(memory)
    cache = layer.initial_cache(B, T)
    for position in range(T):
        output, _, cache = layer.step(
            x[:, position], projected, None, cache, position
        )
        np.testing.assert_allclose(output, outputs[:, position], atol=1e-5)
