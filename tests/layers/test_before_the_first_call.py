"""Methods of a layer that has not been called: they make its weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers

B, T, D, NARROW = 2, 5, 14, 7


def attend(layer, x, query_dim=D):
    """Each token of the memory projected once; the first one asks."""
    keys = layer.project(x)
    query = x[:, :1, :query_dim]
    return layer.attend(query=query, projected_key=keys, value=x)


def attend_narrow(layer, x):
    return attend(layer, x, query_dim=NARROW)


def score(layer, x):
    return layer.score(x[:, :1], layer.project(x))


def attend_heads(layer, x):
    key, value = layer.project(x)
    return layer.attend(query=x[:, :1], key=key, value=value)


def attend_heads_narrow(layer, x):
    key, value = layer.project(x, key=x[:, :, :11])
    return layer.attend(query=x[:, :1, :NARROW], key=key, value=value)


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


def convolve(layer, x):
    buffer = keras.ops.zeros((keras.ops.shape(x)[0], layer.buffer_length, D))
    for position in range(T):
        outputs, buffer = layer.step(x[:, position], buffer)
    return outputs, buffer


# A layer, and a function that uses it without calling it.
USES = {
    "additive": (lambda: layers.AdditiveAttention(11), attend),
    "additive_narrow": (lambda: layers.AdditiveAttention(11), attend_narrow),
    "additive_score": (lambda: layers.AdditiveAttention(11), score),
    "dot": (lambda: layers.MultiplicativeAttention("dot"), attend),
    "general": (lambda: layers.MultiplicativeAttention("general"), attend),
    "concat": (lambda: layers.MultiplicativeAttention("concat"), attend),
    "concat_narrow": (
        lambda: layers.MultiplicativeAttention("concat", 11),
        attend_narrow,
    ),
    "local": (lambda: layers.LocalAttention(half_width=2), attend_to_a_place),
    "multi_head": (lambda: layers.MultiHeadAttention(2, 3), attend_heads),
    "multi_head_narrow": (
        lambda: layers.MultiHeadAttention(2, 3, use_bias=False),
        attend_heads_narrow,
    ),
    "multi_head_one": (lambda: layers.MultiHeadAttention(2, 3), attend_one),
    "multi_head_step": (lambda: layers.MultiHeadAttention(2, 3), step),
    "residual_pre_norm": (lambda: layers.Residual(norm_first=True), around),
    "residual_post_norm": (lambda: layers.Residual(), around),
    "residual_leave": (lambda: layers.Residual(), leave),
    "decoder": (lambda: layers.TransformerDecoderLayer(7, 11), decode),
    "convolution": (lambda: layers.CausalConvolution(11, 3, 2), convolve),
}
each_use = pytest.mark.parametrize("name", USES)


@keras.saving.register_keras_serializable(package="tests")
class Model(keras.Model):
    """Uses a layer in its `call`, without calling the layer."""

    def __init__(self, use, **kwargs):
        super().__init__(**kwargs)
        make, self.function = USES[use]
        self.use = use
        self.layer = make()
        self.layer.name = "layer"

    def call(self, x):
        return self.function(self.layer, x)

    def get_config(self):
        return {**super().get_config(), "use": self.use}


@pytest.fixture
def x(rng):
    return rng.normal(size=(B, T, D)).astype("float32")


def built(name):
    """The layer as `build` makes it, with the shapes that `USES` has."""
    make, _ = USES[name]
    layer = make()
    layer.name = "layer"
    narrow, wide = (None, None, NARROW), (None, None, D)
    if name == "multi_head_narrow":
        layer.build(narrow, wide, (None, None, 11))
    elif name.endswith("_narrow"):
        layer.build(narrow, wide)
    elif name.startswith(("residual", "decoder", "convolution")):
        layer.build(wide)
    else:
        layer.build(wide, wide)
    return layer


def assert_equal(outputs, expected):
    for got, want in zip(
        keras.tree.flatten(outputs), keras.tree.flatten(expected), strict=True
    ):
        np.testing.assert_allclose(got, want, atol=1e-6)


@pytest.mark.fast_for("additive", "local", "convolution")
@each_use
def test_the_weights_are_those_of_build_in_its_order(name, x):
    make, use = USES[name]
    layer, called_first = make(), built(name)
    layer.name = "layer"
    outputs = use(layer, x)
    assert layer.built
    assert [w.path for w in layer.weights] == [
        w.path for w in called_first.weights
    ]
    called_first.set_weights(layer.get_weights())
    assert_equal(use(called_first, x), outputs)


def built_by_a_symbolic_call(model, x):
    model(keras.Input(x.shape[1:]))


def built_by_a_call(model, x):
    model(x)


def built_in_a_graph(model, x):
    tf.function(model, reduce_retracing=True)(tf.constant(x))


@pytest.mark.fast_for("additive")
@each_use
@pytest.mark.parametrize(
    "first",
    [
        built_by_a_call,
        pytest.param(built_by_a_symbolic_call, marks=pytest.mark.slow),
        pytest.param(built_in_a_graph, marks=pytest.mark.slow),
    ],
)
def test_inside_a_model(name, first, x, tmp_path):
    model = Model(name, name="model")
    first(model, x)
    assert [w.path for w in model.weights] == [
        f"model/{w.path}" for w in built(name).weights
    ]
    outputs = model(x)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_equal(loaded(x), outputs)
    assert_equal(tf.function(loaded)(tf.constant(x)), outputs)


@pytest.mark.fast_for("additive_narrow")
@pytest.mark.parametrize("name", ["additive_narrow", "multi_head_narrow"])
def test_fit_trains_every_weight(name, x):
    model = Model(name)
    targets = keras.tree.map_structure(np.zeros_like, model(x))
    model.compile(keras.optimizers.SGD(0.01), "mean_squared_error")
    before = model.get_weights()
    model.fit(x, targets, verbose=0)
    for new, old in zip(model.get_weights(), before, strict=True):
        assert np.any(new != old)


@pytest.mark.parametrize("scoring", ["general", "concat"])
def test_queries_of_another_width_need_build_first(scoring, x):
    """Luong's W depends on both widths, and `project` sees one."""
    layer = layers.MultiplicativeAttention(scoring)
    with pytest.raises(ValueError, match=r"call `build\(query_shape, value_sh"):
        attend_narrow(layer, x)
    layer = layers.MultiplicativeAttention(scoring)
    layer.build((None, None, NARROW), (None, None, D))
    context, _ = attend_narrow(layer, x)
    assert context.shape == (B, 1, D)


def test_a_decoder_of_another_width_needs_build_first(x):
    layer = layers.TransformerDecoderLayer(7, 11)
    projected = layer.project_memory(x)
    cache = layer.initial_cache(B, T)
    with pytest.raises(ValueError, match="Expected inputs of width 14"):
        layer.step(x[:, 0, :NARROW], projected, None, cache, 0)
    with pytest.raises(ValueError, match="Expected inputs of width 14"):
        layer(x[:, :, :NARROW], x)
    with pytest.raises(ValueError, match="Expected inputs of width 14"):
        layer(keras.Input((T, NARROW)), keras.Input((T, D)))
    layer = layers.TransformerDecoderLayer(7, 11)
    layer.build((None, None, NARROW), (None, None, D))
    projected = layer.project_memory(x)
    cache = layer.initial_cache(B, T)
    outputs, _, _ = layer.step(x[:, 0, :NARROW], projected, None, cache, 0)
    assert outputs.shape == (B, NARROW)


def test_a_cache_needs_a_width():
    layer = layers.TransformerDecoderLayer(7, 11)
    with pytest.raises(ValueError, match="Call `project_memory"):
        layer.initial_cache(B, T)


@pytest.mark.parametrize("name", ["additive", "general", "concat"])
def test_keys_that_project_did_not_make_are_refused(name, x):
    make, _ = USES[name]
    with pytest.raises(ValueError, match="Call `project`, the layer itself"):
        make().attend(query=x, projected_key=x, value=x)
    layer = layers.MultiHeadAttention(2, 7)
    heads = np.zeros((B, 2, T, 7), "float32")
    with pytest.raises(ValueError, match="Call `project`, the layer itself"):
        layer.attend(query=x, key=heads, value=heads)
    with pytest.raises(ValueError, match="Call `project`, the layer itself"):
        layer.attend_one(query=x[:, 0], key=heads, value=heads)


def test_keys_of_two_widths_are_refused(x):
    layer = layers.AdditiveAttention(11)
    layer.project(x)
    with pytest.raises(ValueError, match="the width that `project` or"):
        layer(query=x, value=x[:, :, :NARROW])


@each_use
def test_a_functional_model_takes_calls_alone(name):
    """Weights that a method uses there would be none of the model's."""
    if name.startswith("residual") or name == "decoder":
        pytest.skip("Its parts are layers, which are called.")
    make, use = USES[name]
    with pytest.raises(ValueError, match="Call the layer itself"):
        use(make(), keras.Input((T, D), batch_size=B))


def test_a_subclass_with_weights_of_its_own(x):
    class Scaled(layers.Attention):
        def build(self, query_shape, value_shape, key_shape=None):
            self.scale = self.add_weight(name="scale", initializer="ones")

        def score(self, query, projected_key):
            return self.scale * tf.matmul(
                query, projected_key, transpose_b=True
            )

    layer = Scaled()
    context, _ = attend(layer, x)
    assert len(layer.weights) == 1
    assert_equal(context, layers.MultiplicativeAttention("dot")(x[:, :1], x)[0])


def test_frozen_weights_can_be_thawed(x):
    layer = layers.AdditiveAttention(11, trainable=False)
    attend(layer, x)
    assert not layer.trainable_weights
    layer.trainable = True
    assert [w.name for w in layer.trainable_weights] == [
        "query_kernel",
        "key_kernel",
        "score_vector",
    ]
