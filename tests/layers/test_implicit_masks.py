"""The masks that Keras passes along: `Embedding(mask_zero=True)` and such.

Where the caller gives none, they do what the same mask does when it is given.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers

B, T, S, D = 2, 3, 5, 14
QUERY_IDS = np.array([[3, 1, 0], [2, 4, 1]])
VALUE_IDS = np.array([[5, 2, 6, 0, 0], [1, 1, 2, 3, 0]])
OTHER_MASK = np.array([[1, 0, 1, 1, 1], [0, 1, 1, 1, 1]], bool)
ATTENTIONS = {
    "additive": lambda: layers.AdditiveAttention(11),
    "dot": lambda: layers.MultiplicativeAttention("dot"),
    "general": lambda: layers.MultiplicativeAttention("general"),
    "concat": lambda: layers.MultiplicativeAttention("concat", 11),
    "multi_head": lambda: layers.MultiHeadAttention(3, 11),
}


def attend(layer, x, y, mask=None):
    return layer(query=x, value=y, padding_mask=mask)


def attend_by_key(layer, x, y, mask=None):
    return layer(query=x, value=keras.ops.sin(y), key=y, padding_mask=mask)


def attend_with_another_mask(layer, x, y, mask=None):
    allowed = np.tri(T, S, 2, dtype=bool)
    return layer(query=x, value=y, padding_mask=mask, attention_mask=allowed)


def attend_to_itself(layer, x, y, mask=None):
    return layer(y, padding_mask=mask)


def attend_to_the_past(layer, x, y, mask=None):
    return layer(y, padding_mask=mask, use_causal_mask=True)


def attend_to_itself_with_another_mask(layer, x, y, mask=None):
    allowed = np.tri(S, S, 2, dtype=bool)
    return layer(y, padding_mask=mask, attention_mask=allowed)


def decode(layer, x, y, mask=None):
    return layer(x, y, memory_mask=mask)


def decode_padded_inputs(layer, x, y, mask=None):
    memory = keras.ops.sin(y)
    return layer(inputs=y, memory=memory, padding_mask=mask)


ENCODERS = {
    "encoder": lambda: layers.TransformerEncoderLayer(7, 11),
    "encoder_pre_norm": lambda: layers.TransformerEncoderLayer(
        7, 11, norm_first=True
    ),
}
DECODERS = {
    "decoder": lambda: layers.TransformerDecoderLayer(7, 11),
    "decoder_pre_norm": lambda: layers.TransformerDecoderLayer(
        7, 11, norm_first=True
    ),
}
ALONE = [
    attend_to_itself,
    attend_to_the_past,
    attend_to_itself_with_another_mask,
]
CASES = [
    *(
        (make, use)
        for make in ATTENTIONS.values()
        for use in (attend, attend_by_key, attend_with_another_mask)
    ),
    *((ATTENTIONS["multi_head"], use) for use in ALONE),
    *((make, use) for make in ENCODERS.values() for use in ALONE),
    *(
        (make, use)
        for make in DECODERS.values()
        for use in (decode, decode_padded_inputs)
    ),
]
IDS = [
    *(f"{n}-{u}" for n in ATTENTIONS for u in ("value", "key", "other_mask")),
    *(f"multi_head-{use.__name__}" for use in ALONE),
    *(f"{name}-{use.__name__}" for name in ENCODERS for use in ALONE),
    *(f"{name}-{u}" for name in DECODERS for u in ("memory", "inputs")),
]
each_case = pytest.mark.parametrize("make, use", CASES, ids=IDS)
FAST = {
    "additive-value",
    "multi_head-key",
    "multi_head-attend_to_the_past",
    "encoder-attend_to_itself",
    "decoder-memory",
    "decoder-inputs",
}
assert {*IDS} >= FAST
fast_cases = pytest.mark.parametrize(
    "make, use",
    [
        pytest.param(*one, marks=() if name in FAST else pytest.mark.slow)
        for one, name in zip(CASES, IDS, strict=True)
    ],
    ids=IDS,
)


@pytest.fixture
def embeddings():
    """Two of the same values: one has a mask for its ids, one has none."""
    masked = keras.layers.Embedding(7, D, mask_zero=True)
    plain = keras.layers.Embedding(7, D)
    masked.build()
    plain.build()
    plain.set_weights(masked.get_weights())
    return masked, plain


@pytest.fixture
def case(make, use, embeddings, randomize):
    """A layer with weights, and what it gives for explicit masks."""
    _, plain = embeddings
    layer = make()
    x, y = plain(QUERY_IDS), plain(VALUE_IDS)
    use(layer, x, y)
    randomize(layer)
    expected = use(layer, x, y, VALUE_IDS > 0)
    without = use(layer, x, y)
    assert max(np.abs(without[i] - expected[i]).max() for i in (0, 1)) > 1e-3
    return layer, expected


def assert_equal(outputs, expected):
    for got, want in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-5)


@each_case
def test_eager(case, use, embeddings):
    layer, expected = case
    masked, plain = embeddings
    assert_equal(use(layer, plain(QUERY_IDS), masked(VALUE_IDS)), expected)


@pytest.mark.slow
@each_case
def test_in_a_graph(case, use, embeddings):
    layer, expected = case
    masked, plain = embeddings

    @tf.function(input_signature=[tf.TensorSpec([None, None], "int64")] * 2)
    def graph(x, y):
        return use(layer, plain(x), masked(y))

    assert_equal(graph(QUERY_IDS, VALUE_IDS), expected)


@fast_cases
def test_in_a_functional_model(case, use, embeddings, save_and_load):
    layer, expected = case
    masked, plain = embeddings
    x = keras.Input((T,), dtype="int32", name="x")
    y = keras.Input((S,), dtype="int32", name="y")
    outputs = use(layer, plain(x), masked(y))
    is_read = use not in (*ALONE, decode_padded_inputs)
    inputs = {"x": x, "y": y} if is_read else {"y": y}
    ids = {"x": QUERY_IDS, "y": VALUE_IDS}
    ids = {name: ids[name] for name in inputs}
    model, loaded = save_and_load(inputs, outputs)
    assert_equal(model(ids), expected)
    assert_equal(loaded(ids), expected)
    assert_equal(model.predict(ids, verbose=0), expected)


@fast_cases
def test_an_explicit_mask_wins(case, use, embeddings):
    layer, _ = case
    masked, plain = embeddings
    x = plain(QUERY_IDS)
    got = use(layer, x, masked(VALUE_IDS), OTHER_MASK)
    assert_equal(got, use(layer, x, plain(VALUE_IDS), OTHER_MASK))


@pytest.mark.parametrize("name", ATTENTIONS)
def test_value_and_key_with_two_masks(name, embeddings):
    masked, plain = embeddings
    x, layer = plain(QUERY_IDS), ATTENTIONS[name]()
    key = keras.layers.Masking()(
        plain(VALUE_IDS) * OTHER_MASK[..., None].astype("float32")
    )
    _, weights = layer(query=x, value=masked(VALUE_IDS), key=key)
    weights = np.reshape(weights, (B, -1, S))
    both = OTHER_MASK & (VALUE_IDS > 0)
    for row in range(B):
        assert (weights[row][:, ~both[row]] == 0).all()
        assert (weights[row][:, both[row]] > 0).all()


@pytest.mark.parametrize("name", [*ATTENTIONS, *DECODERS])
def test_the_mask_of_the_query_goes_on(name, embeddings):
    """A GRU after the layer stops where the queries end; nothing warns."""
    masked, plain = embeddings
    make = {**ATTENTIONS, **DECODERS}[name]
    layer, gru = make(), keras.layers.GRU(3)
    y = plain(VALUE_IDS)
    outputs, _ = layer(masked(QUERY_IDS), y)
    state = gru(outputs)
    short, _ = layer(plain(QUERY_IDS[:1, :2]), y[:1])
    np.testing.assert_allclose(state[:1], gru(short), atol=1e-6)


@pytest.mark.parametrize("norm_first", [False, True])
def test_residual_passes_the_mask(norm_first, embeddings):
    masked, plain = embeddings
    layer, gru = layers.Residual(norm_first=norm_first), keras.layers.GRU(3)
    state = gru(layer(masked(VALUE_IDS), plain(VALUE_IDS)))
    short = plain(VALUE_IDS[:1, :3])
    np.testing.assert_allclose(state[:1], gru(layer(short, short)), atol=1e-6)
