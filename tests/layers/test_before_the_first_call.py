"""Methods of a layer that is built, and of one that is not."""

import keras
import numpy as np
import pytest

from keras_attention import layers

B, T, D = 2, 5, 14


def attend(layer, x):
    """Each token of the memory projected once; the first one asks."""
    keys = layer.project(x)
    query = x[:, :1]
    return layer.attend(query=query, projected_key=keys, value=x)


def score(layer, x):
    return layer.score(x[:, :1], layer.project(x))


def attend_heads(layer, x):
    key, value = layer.project(x)
    return layer.attend(query=x[:, :1], key=key, value=value)


def attend_one(layer, x):
    key, value = layer.project(x)
    return layer.attend_one(query=x[:, 0], key=key, value=value)


def step(layer, x):
    cache = layer.initial_cache(keras.ops.shape(x)[0], T)
    for position in range(T):
        context, weights, cache = layer.step(x[:, position], cache, position)
    return context, weights


def decode(layer, x):
    memory = layer.project_memory(x)
    cache = layer.initial_cache(keras.ops.shape(x)[0], T)
    for position in range(T):
        outputs, weights, cache = layer.step(
            x[:, position], memory, None, cache, position
        )
    return outputs, weights


def attend_to_a_place(layer, x):
    layer.places(x[:, :1], lengths=T * np.ones((B, 1, 1), "float32"))
    return attend(layer, x)


def around(layer, x):
    return layer.leave(x, keras.ops.tanh(layer.enter(x)))


def leave(layer, x):
    return layer.leave(x, keras.ops.tanh(x))


def step_once(layer, x):
    """With a buffer of the caller's."""
    return layer.step(x[:, 0], keras.ops.zeros((B, layer.buffer_length, D)))


def bias(layer, x):
    heads, places = keras.ops.reshape(x, (B, 2, T, 7)), np.arange(T)
    return layer.bias(heads, places, places)


def convolve(layer, x):
    buffer = layer.initial_buffer(keras.ops.shape(x)[0])
    for position in range(T):
        outputs, buffer = layer.step(x[:, position], buffer)
    return outputs, buffer


# A layer, and a function that uses it without calling it.
USES = {
    "additive": (lambda: layers.AdditiveAttention(11), attend),
    "additive_score": (lambda: layers.AdditiveAttention(11), score),
    "dot": (lambda: layers.MultiplicativeAttention("dot"), attend),
    "general": (lambda: layers.MultiplicativeAttention("general"), attend),
    "concat": (lambda: layers.MultiplicativeAttention("concat"), attend),
    "local": (lambda: layers.LocalAttention(half_width=2), attend_to_a_place),
    "gaussian_window": (lambda: layers.GaussianWindow(3), attend),
    "monotonic": (lambda: layers.MonotonicAttention(11), attend),
    "structured": (lambda: layers.StructuredAttention(), attend),
    "multi_head": (lambda: layers.MultiHeadAttention(2, 3), attend_heads),
    "multi_head_one": (lambda: layers.MultiHeadAttention(2, 3), attend_one),
    "multi_head_step": (lambda: layers.MultiHeadAttention(2, 3), step),
    "residual_pre_norm": (lambda: layers.Residual(norm_first=True), around),
    "residual_post_norm": (lambda: layers.Residual(), around),
    "residual_leave": (lambda: layers.Residual(), leave),
    "decoder": (lambda: layers.TransformerDecoderLayer(7, 11), decode),
    "relative": (lambda: layers.RelativePositions(2), bias),
    "bucketed": (lambda: layers.BucketedBias(8, 5), bias),
    "convolution_once": (lambda: layers.CausalConvolution(11, 3), step_once),
    "convolution": (lambda: layers.CausalConvolution(11, 3, 2), convolve),
}
each_use = pytest.mark.parametrize("name", USES)


@pytest.fixture
def x(rng):
    return rng.normal(size=(B, T, D)).astype("float32")


def built(name):
    make, use = USES[name]
    layer = make()
    if use is bias:
        layer.build((None, 2, None, 7))
    elif name.startswith(("residual", "decoder", "convolution")):
        layer.build((None, None, D))
    else:
        layer.build((None, None, D), (None, None, D))
    return layer


@each_use
def test_a_layer_without_weights_says_so(name, x):
    make, use = USES[name]
    layer = make()
    with pytest.raises(ValueError, match="has no weights yet. Call or build"):
        use(layer, x)
    assert not layer.weights


@each_use
def test_a_layer_that_is_built_need_not_be_called(name, x):
    _, use = USES[name]
    layer = built(name)
    paths = [weight.path for weight in layer.weights]
    for tensor in keras.tree.flatten(use(layer, x)):
        assert np.isfinite(tensor).all()
    assert [weight.path for weight in layer.weights] == paths


@each_use
def test_a_functional_model_takes_calls_alone(name):
    """Weights that a method uses there would be none of the model's."""
    if name.startswith("residual") or USES[name][1] is bias:
        pytest.skip("Its methods are parts of a layer's call.")
    _, use = USES[name]
    layer = built(name)
    with pytest.raises(ValueError, match="Call the layer itself"):
        use(layer, keras.Input((T, D), batch_size=B))


def test_a_decoder_refuses_inputs_of_another_width(x):
    layer = built("decoder")
    memory, cache = layer.project_memory(x), layer.initial_cache(B, T)
    with pytest.raises(ValueError, match="Expected inputs of width 14"):
        layer.step(x[:, 0, :7], memory, None, cache, 0)
    with pytest.raises(ValueError, match="Expected inputs of width 14"):
        layer(x[:, :, :7], x)
    with pytest.raises(ValueError, match="Expected inputs of width 14"):
        layer(keras.Input((T, 7)), keras.Input((T, D)))


def test_a_subclass_with_weights_of_its_own(x):
    class Scaled(layers.Attention):
        def build(self, query_shape, value_shape, key_shape=None):
            self.scale = self.add_weight(name="scale", initializer="ones")

        def score(self, query, projected_key):
            return self.scale * keras.ops.matmul(
                query, keras.ops.swapaxes(projected_key, 1, 2)
            )

    layer = Scaled()
    with pytest.raises(ValueError, match="Scaled has no weights yet"):
        attend(layer, x)
    layer.build(x.shape, x.shape)
    context, _ = attend(layer, x)
    expected, _ = layers.MultiplicativeAttention("dot")(x[:, :1], x)
    np.testing.assert_allclose(context, expected, atol=1e-6)
