"""Initializers as `keras.layers.Dense` takes them, in every layer."""

import keras
import numpy as np
import pytest

from keras_attention import layers

B, T, S, D, UNITS = 2, 3, 5, 14, 11
LAYERS = {
    "additive": lambda **kw: layers.AdditiveAttention(UNITS, **kw),
    "general": lambda **kw: layers.MultiplicativeAttention("general", **kw),
    "concat": lambda **kw: layers.MultiplicativeAttention("concat", **kw),
    "multi_head": lambda **kw: layers.MultiHeadAttention(2, 7, **kw),
}
each_layer = pytest.mark.parametrize("name", LAYERS)


@keras.saving.register_keras_serializable(package="tests")
def fives(shape, dtype=None):
    return keras.ops.full(shape, 5.0, dtype=dtype)


@keras.saving.register_keras_serializable(package="tests")
class Fives(keras.initializers.Initializer):
    """Keeps what it got, and tells `get_config` nothing of it."""

    def __init__(self, five=None):
        self.five = five

    def __call__(self, shape, dtype=None):
        return keras.ops.full(shape, self.five or 5.0, dtype=dtype)


FIVES = {
    "function": fives,
    "lambda": lambda shape, dtype=None: keras.ops.full(shape, 5.0, dtype),
    "instance": keras.initializers.Constant(5.0),
    "class": Fives,
    "instance_without_config": Fives(five=5.0),
    "config": {"class_name": "Constant", "config": {"value": 5.0}},
}


def built(name, initializer):
    layer = LAYERS[name](kernel_initializer=initializer)
    layer.build((B, T, D), (B, S, D))
    return layer


def kernels(layer):
    return [np.asarray(w.value) for w in layer.weights if "bias" not in w.name]


@each_layer
@pytest.mark.parametrize("kind", FIVES)
def test_what_dense_takes(name, kind):
    keras.layers.Dense(7, kernel_initializer=FIVES[kind]).build((B, D))
    layer = built(name, FIVES[kind])
    assert kernels(layer)
    for kernel in kernels(layer):
        assert (kernel == 5.0).all()


@each_layer
def test_a_string_names_an_initializer(name):
    for kernel in kernels(built(name, "ones")):
        assert (kernel == 1.0).all()


@each_layer
@pytest.mark.parametrize("initializer", [fives, "he_uniform", FIVES["config"]])
def test_config_round_trip(name, initializer):
    layer = built(name, initializer)
    clone = type(layer).from_config(layer.get_config())
    assert clone.get_config() == layer.get_config()
    clone.build((B, T, D), (B, S, D))
    if initializer is fives:
        assert (kernels(clone)[0] == 5.0).all()


@pytest.mark.parametrize("name", ["additive", "concat", "multi_head"])
@pytest.mark.parametrize(
    "initializer",
    ["glorot_uniform", "orthogonal", keras.initializers.RandomNormal],
)
def test_weights_of_one_shape_start_with_different_values(name, initializer):
    layer = built(name, initializer)
    assert not np.allclose(layer.query_kernel, layer.key_kernel)


@each_layer
def test_file_round_trip(name, rng, save_and_load):
    query, value = keras.Input((T, D), name="x"), keras.Input((S, D), name="y")
    layer = LAYERS[name](kernel_initializer=fives)
    context, _ = layer(query=query, value=value)
    model, loaded = save_and_load({"x": query, "y": value}, context)
    inputs = {
        "x": rng.normal(size=(B, T, D)).astype("float32"),
        "y": rng.normal(size=(B, S, D)).astype("float32"),
    }
    np.testing.assert_array_equal(model(inputs), loaded(inputs))
