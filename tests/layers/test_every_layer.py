"""What all layers share: round trips, masks, mixed precision, lengths."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers

B, T, S, D = 2, 3, 5, 14
T5 = {"use_bias": False, "normalization": "rms", "epsilon": 1e-5}
ATTENTIONS = {
    "additive": lambda **kw: layers.AdditiveAttention(11, **kw),
    "dot": lambda **kw: layers.MultiplicativeAttention("dot", **kw),
    "general": lambda **kw: layers.MultiplicativeAttention("general", **kw),
    "concat": lambda **kw: layers.MultiplicativeAttention("concat", 11, **kw),
    "local": lambda **kw: layers.LocalAttention(
        half_width=50, place="monotonic", **kw
    ),
    "structured": lambda **kw: layers.StructuredAttention(
        normalized=True, **kw
    ),
    "multi_head": lambda **kw: layers.MultiHeadAttention(3, 11, **kw),
    "multi_head_relative": lambda **kw: layers.MultiHeadAttention(
        3, 11, positions=layers.RelativePositions(2), **kw
    ),
}
# Layers of one sequence, then those that also attend to a memory.
ENCODING = {
    "causal_convolution": lambda **kw: layers.CausalConvolution(11, 3, 2, **kw),
    "feed_forward": lambda **kw: layers.FeedForward(11, "gelu", **kw),
    "gru": lambda **kw: keras.layers.RNN(
        layers.GRUCell(11, dtype=kw.get("dtype")), return_sequences=True, **kw
    ),
    "projected_lstm": lambda **kw: keras.layers.RNN(
        layers.ProjectedLSTMCell(13, 11, dtype=kw.get("dtype")),
        return_sequences=True,
        **kw,
    ),
    "factorized_lstm": lambda **kw: keras.layers.RNN(
        layers.FactorizedLSTMCell(13, 5, 11, dtype=kw.get("dtype")),
        return_sequences=True,
        **kw,
    ),
    "group_lstm": lambda **kw: keras.layers.RNN(
        layers.GroupLSTMCell(26, 2, 22, dtype=kw.get("dtype")),
        return_sequences=True,
        **kw,
    ),
    "mixture_of_experts": lambda **kw: layers.MixtureOfExperts(5, 11, **kw),
    "maxout": lambda **kw: layers.Maxout(11, **kw),
    "position_encoding": lambda **kw: layers.PositionEncoding(**kw),
    "learned_positions": lambda **kw: layers.LearnedPositions(7, **kw),
    "encoder_post_norm": lambda **kw: layers.TransformerEncoderLayer(
        7, 11, **kw
    ),
    "encoder_pre_norm": lambda **kw: layers.TransformerEncoderLayer(
        7, 11, dropout=0.3, norm_first=True, **kw
    ),
    "encoder_of_gpt": lambda **kw: layers.SelfAttentionLayer(
        7, 11, dropout=0.3, norm_first=True, **kw
    ),
    "encoder_of_gpt_rotary": lambda **kw: layers.SelfAttentionLayer(
        7, 11, positions=layers.RotaryPositions(), **kw
    ),
    "encoder_of_experts": lambda **kw: layers.TransformerEncoderLayer(
        7,
        11,
        feed_forward=layers.MixtureOfExperts(5, 11, dtype=kw.get("dtype")),
        **kw,
    ),
    "encoder_of_t5": lambda **kw: layers.TransformerEncoderLayer(
        7, 11, 0.3, True, key_dim=3, **T5, **kw
    ),
    "encoder_rotary": lambda **kw: layers.TransformerEncoderLayer(
        7, 11, positions=layers.RotaryPositions(), **kw
    ),
}
DECODING = {
    "residual_post_norm": lambda **kw: layers.Residual(**kw),
    "residual_pre_norm": lambda **kw: layers.Residual(0.3, True, **kw),
    "decoder_post_norm": lambda **kw: layers.TransformerDecoderLayer(
        7, 11, **kw
    ),
    "decoder_pre_norm": lambda **kw: layers.TransformerDecoderLayer(
        7, 11, dropout=0.3, norm_first=True, **kw
    ),
    "decoder_gated": lambda **kw: layers.TransformerDecoderLayer(
        7,
        11,
        feed_forward=layers.FeedForward(
            11, "tanh_gelu", gated=True, dtype=kw.get("dtype")
        ),
        **T5,
        **kw,
    ),
    "decoder_bucketed": lambda **kw: layers.TransformerDecoderLayer(
        7, 11, positions=layers.BucketedBias(), **kw
    ),
    "decoder_of_experts": lambda **kw: layers.TransformerDecoderLayer(
        7,
        11,
        feed_forward=layers.MixtureOfExperts(5, 11, dtype=kw.get("dtype")),
        **kw,
    ),
}
EVERY = {**ATTENTIONS, **ENCODING, **DECODING}

attentions = pytest.mark.parametrize("name", ATTENTIONS)
every_layer = pytest.mark.parametrize("name", EVERY)


def call(name, layer, x, y, mask=None):
    """Calls any layer: `x` [B, T, D], `y` the memory [B, S, D]."""
    if name in ATTENTIONS:
        return layer(query=x, value=y, padding_mask=mask)
    if name.startswith("decoder"):
        return layer(x, y, memory_mask=mask)
    if name.startswith("residual"):
        return layer(x, keras.ops.flip(x, axis=1))
    if name.startswith("encoder"):
        return layer(y, padding_mask=mask)
    return layer(x)


def shapes_of(name, x_shape, y_shape):
    """The arguments of `compute_output_shape` for inputs like `call`'s."""
    if name in ATTENTIONS or name.startswith("decoder"):
        return [x_shape, y_shape]
    if name.startswith("residual"):
        return [x_shape, x_shape]
    return [y_shape] if name.startswith("encoder") else [x_shape]


def arrays_of(outputs):
    return [
        keras.ops.convert_to_numpy(keras.ops.cast(x, "float32"))
        for x in keras.tree.flatten(outputs)
    ]


@pytest.fixture
def x(rng):
    return rng.normal(size=(B, T, D)).astype("float32")


@pytest.fixture
def y(rng):
    return rng.normal(size=(B, S, D)).astype("float32")


@pytest.fixture
def mask():
    return np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], bool)


@every_layer
def test_config_round_trip(name, x, y, randomize):
    layer = EVERY[name](name="its_name", dtype="float32")
    call(name, layer, x, y)
    expected = call(name, randomize(layer), x, y)
    clone = type(layer).from_config(layer.get_config())
    assert clone.get_config() == layer.get_config()
    call(name, clone, x, y)
    clone.set_weights(layer.get_weights())
    for got, want in zip(
        arrays_of(call(name, clone, x, y)), arrays_of(expected), strict=True
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.fast_for(
    "additive",
    "multi_head_relative",
    "gru",
    "encoder_pre_norm",
    "decoder_bucketed",
)
@every_layer
def test_file_round_trip(name, x, y, mask, randomize, save_and_load):
    inputs = [
        keras.Input((None, D), name="x"),
        keras.Input((None, D), name="y"),
        keras.Input((None,), dtype="bool", name="mask"),
    ]
    layer = EVERY[name]()
    outputs = call(name, layer, *inputs)
    used = {"x": inputs[0], "y": inputs[1], "mask": inputs[2]}
    if name in ENCODING:
        used.pop("x" if name.startswith("encoder") else "y")
    if name.startswith("residual"):
        used.pop("y")
    if not (name in ATTENTIONS or name.startswith(("encoder", "decoder"))):
        used.pop("mask")
    randomize(layer)
    model, loaded = save_and_load(used, outputs)
    arrays = {"x": x, "y": y, "mask": mask}
    arrays = {key: arrays[key] for key in used}
    for got, want in zip(
        arrays_of(loaded(arrays)), arrays_of(model(arrays)), strict=True
    ):
        np.testing.assert_array_equal(got, want)


@every_layer
@pytest.mark.fast_for("mixed_bfloat16")
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "float16"])
def test_shapes_and_dtypes_are_those_promised(name, policy, x, y):
    layer = EVERY[name](dtype=policy)
    outputs = keras.tree.flatten(call(name, layer, x, y))
    symbolic = call(name, layer, keras.Input((T, D), B), keras.Input((S, D), B))
    for got, promised in zip(
        outputs, keras.tree.flatten(symbolic), strict=True
    ):
        assert tuple(got.shape) == tuple(promised.shape)
        assert got.dtype == promised.dtype
    for weights in outputs[1:]:
        assert weights.dtype == "float32"


@every_layer
@pytest.mark.parametrize(
    "known", [pytest.param(True, marks=pytest.mark.slow), False]
)
def test_output_shape_is_computed(name, known, rng):
    layer = EVERY[name]()
    x, y = rng.normal(size=(2, 4, D)), rng.normal(size=(2, 6, D))
    outputs = call(name, layer, x, y)
    # No other axis is of length 2, 4 or 6.
    length = {n: n if known else None for n in (2, 4, 6)}
    x_shape, y_shape = (length[2], length[4], D), (length[2], length[6], D)
    assert layer.compute_output_shape(
        *shapes_of(name, x_shape, y_shape)
    ) == keras.tree.map_structure(
        lambda output: tuple(length.get(n, n) for n in output.shape), outputs
    )


def test_output_shape_of_the_cell():
    cell = layers.GRUCell(11)
    hidden, states = cell.compute_output_shape((B, D), [(B, 11)])
    assert hidden == (B, 11) and states == [(B, 11)]


@attentions
def test_context_of_integer_values_is_what_is_promised(name, x):
    layer = ATTENTIONS[name](dtype="mixed_bfloat16")
    value = np.ones((B, S, D), "int32")
    outputs = layer(query=x, value=value)
    symbolic = layer(
        query=keras.Input((T, D)), value=keras.Input((S, D), dtype="int32")
    )
    assert [z.dtype for z in outputs] == [z.dtype for z in symbolic]


@every_layer
@pytest.mark.fast_for("bfloat16")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_mixed_precision(name, dtype, x, y, mask, randomize):
    exact = EVERY[name]()
    mixed = EVERY[name](dtype=f"mixed_{dtype}")
    call(name, exact, x, y)
    mixed_outputs = call(name, mixed, x, y)
    assert keras.tree.flatten(mixed_outputs)[0].dtype == dtype
    assert all(w.dtype == "float32" for w in mixed.weights)
    mixed.set_weights(exact.get_weights())
    tolerance = {"bfloat16": 0.1, "float16": 0.02}[dtype]
    for got, want in zip(
        arrays_of(call(name, mixed, x, y, mask)),
        arrays_of(call(name, exact, x, y, mask)),
        strict=True,
    ):
        np.testing.assert_allclose(got, want, atol=tolerance)


@attentions
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_mixed_precision_keeps_masked_weights_at_zero(name, dtype, x, y, mask):
    layer = ATTENTIONS[name](dtype=f"mixed_{dtype}")
    context, weights = call(name, layer, 8 * x, 8 * y, mask)
    weights = weights.numpy().reshape((B, -1, S))
    assert weights.dtype == "float32"
    assert (weights[0][:, ~mask[0]] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    assert np.isfinite(arrays_of(context)[0]).all()


@pytest.mark.fast_for("additive", "multi_head")
@every_layer
def test_unknown_lengths(name, rng):
    layer = EVERY[name]()
    spec = tf.TensorSpec([None, None, D])

    @tf.function(input_signature=[spec, spec])
    def compiled(x, y):
        return call(name, layer, x, y)

    for batch, target_length, source_length in ((2, 3, 5), (1, 7, 1)):
        x = rng.normal(size=(batch, target_length, D)).astype("float32")
        y = rng.normal(size=(batch, source_length, D)).astype("float32")
        for got, want in zip(
            arrays_of(compiled(x, y)),
            arrays_of(call(name, layer, x, y)),
            strict=True,
        ):
            np.testing.assert_allclose(got, want, atol=1e-5)


MASKED = [*ATTENTIONS, *(n for n in EVERY if n.startswith(("enc", "dec")))]


@pytest.mark.parametrize("name", MASKED)
def test_masked_positions_change_nothing(name, x, y, mask, randomize):
    layer = EVERY[name]()
    call(name, layer, x, y)
    randomize(layer)
    corrupted = np.where(mask[..., None], y, 1e4).astype("float32")
    before = arrays_of(call(name, layer, x, y, mask))
    after = arrays_of(call(name, layer, x, corrupted, mask))
    if name.startswith("encoder"):  # Its masked positions are queries too.
        for outputs in (before, after):
            outputs[0] = outputs[0][mask]
            outputs[1] = np.moveaxis(outputs[1], 1, 2)[mask]
    # Masked tokens go to other experts then, and products of another number of
    # rows round in another order.
    tolerance = 1e-6 if "experts" in name else 0
    for got, want in zip(after, before, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", MASKED)
def test_weights_sum_to_one_and_are_zero_at_masked_keys(name, x, y, mask):
    _, weights = call(name, EVERY[name](), x, y, mask)
    weights = weights.numpy().reshape((B, -1, S))
    assert (weights[0][:, ~mask[0]] == 0).all()
    assert (weights[0][:, mask[0]] > 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)


@attentions
def test_attention_mask_by_query(name, x, y, rng, randomize):
    layer = ATTENTIONS[name]()
    allowed = rng.random((B, T, S)) < 0.6
    allowed[..., 2] = True
    _, weights = layer(query=x, value=y, attention_mask=allowed)
    weights = weights.numpy()
    if weights.ndim == 4:
        allowed = np.stack([allowed] * weights.shape[1], axis=1)
    np.testing.assert_array_equal(weights > 0, allowed)


@pytest.mark.parametrize("name", MASKED)
def test_fully_masked_row(name, x, y, randomize):
    layer = EVERY[name]()
    call(name, layer, x, y)
    randomize(layer)
    mask = np.array([[False] * S, [True] * S])
    x, y = tf.constant(x), tf.constant(y)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        outputs, weights = call(name, layer, x, y, mask)
        loss = tf.reduce_sum(outputs**2)
    assert (weights[0].numpy() == 0).all()
    assert np.isfinite(outputs).all()
    sources = [x, y, *(w.value for w in layer.trainable_weights)]
    for gradient in tape.gradient(loss, sources):
        if gradient is not None:  # An encoder layer does not see x.
            assert np.isfinite(tf.convert_to_tensor(gradient)).all()
    alone = call(name, layer, x[1:], y[1:], mask[1:])[0]
    np.testing.assert_allclose(outputs[1:], alone, atol=1e-5)
    if name in ATTENTIONS and not name.startswith("multi_head"):
        assert (outputs[0].numpy() == 0).all()


@pytest.mark.parametrize(
    "name", ["feed_forward", "maxout", "position_encoding"]
)
def test_keras_masks_pass_what_acts_on_each_token(name):
    token_ids = np.array([[1, 2], [1, 2]])
    padded = np.pad(token_ids, [(0, 0), (0, 3)])
    model = keras.Sequential(
        [
            keras.layers.Embedding(4, D, mask_zero=True),
            EVERY[name](),
            keras.layers.GRU(3),
        ]
    )
    np.testing.assert_allclose(model(padded), model(token_ids), atol=1e-6)


@attentions
@pytest.mark.parametrize("wrong", ["query", "value", "key"])
def test_a_vector_is_not_taken_for_a_sequence(name, wrong, x, y):
    inputs = {"query": x, "value": y, "key": y}
    with pytest.raises(ValueError, match=f"`{wrong}` must have the shape"):
        EVERY[name]()(**{**inputs, wrong: inputs[wrong][0]})
    layer = EVERY[name]()
    layer(**inputs)
    symbols = {key: keras.Input(z.shape[1:]) for key, z in inputs.items()}
    for called in (inputs, symbols):
        with pytest.raises(ValueError, match=f"`{wrong}` must have the shape"):
            layer(**{**called, wrong: called[wrong][:, 0]})


@pytest.mark.parametrize(
    "name, message",
    [
        ("encoder_pre_norm", "`inputs` must have the shape"),
        ("position_encoding", "expected ndim=3, found ndim=2"),
    ],
)
def test_a_layer_of_sequences_refuses_a_vector(name, message, x):
    with pytest.raises(ValueError, match=message):
        EVERY[name]()(x[0])


LISTS = {
    **dict.fromkeys(ATTENTIONS, r"layer\(query=query, value=value\)"),
    "residual_pre_norm": r"layer\(inputs=inputs, outputs=outputs\)",
    "encoder_pre_norm": r"layer\(inputs=inputs\)",
    "decoder_pre_norm": r"layer\(inputs=inputs, memory=memory\)",
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_of_tensors_is_told_how_to_call(name, symbolic, kind, x, y):
    tensors = kind([x, y])
    if symbolic:
        tensors = kind([keras.Input((T, D)), keras.Input((S, D))])
    message = f"{LISTS[name]}. Received: a {kind.__name__} of 2"
    with pytest.raises(ValueError, match=message):
        EVERY[name]()(tensors)


@attentions
def test_a_list_by_keyword_is_told_how_to_call(name, x, y):
    with pytest.raises(ValueError, match="Received: a list of 2"):
        EVERY[name]()(query=[x, y], value=y)
    with pytest.raises(ValueError, match="Received: a dict of 2"):
        EVERY[name]()({"query": x, "value": y})
