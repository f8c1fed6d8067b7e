import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers

B, N, S, D, HEADS, INTERMEDIATE = 2, 3, 5, 14, 7, 11
WRAPPED = {
    "encoder": lambda **kw: layers.TransformerEncoderLayer(
        HEADS, INTERMEDIATE, **kw
    ),
    "multi_head": lambda **kw: layers.MultiHeadAttention(HEADS, 2, **kw),
}
each_layer = pytest.mark.parametrize("name", WRAPPED)


@pytest.fixture
def documents(rng):
    return rng.normal(size=(B, N, S, D)).astype("float32")


@each_layer
def test_outputs_are_the_layers(name, documents, randomize):
    layer = WRAPPED[name]()
    sentences = documents[0]
    layer.build(sentences.shape)
    randomize(layer)
    outputs = layers.OutputsOnly(layer)(sentences)
    np.testing.assert_array_equal(outputs, layer(sentences)[0])


@each_layer
@pytest.mark.parametrize("num_sentences", [N, None])
def test_each_sentence_of_a_document(
    name, num_sentences, documents, randomize, save_and_load
):
    """TimeDistributed, of a length that is known or not."""
    layer = WRAPPED[name]()
    inputs = keras.Input((num_sentences, S, D), name="x")
    outputs = keras.layers.TimeDistributed(layers.OutputsOnly(layer))(inputs)
    assert outputs.shape == (None, num_sentences, S, D)
    randomize(layer)
    model, loaded = save_and_load({"x": inputs}, outputs)
    got = model({"x": documents})
    for n in range(N):
        expected, _ = layer(documents[:, n])
        np.testing.assert_allclose(got[:, n], expected, atol=1e-5)
    np.testing.assert_array_equal(loaded({"x": documents}), got)


@each_layer
def test_a_mask_for_each_sentence(name, randomize):
    ids = np.array([[[1, 2, 3], [1, 2, 0]], [[4, 0, 0], [4, 3, 2]]])
    layer = WRAPPED[name]()
    embedding = keras.layers.Embedding(5, D, mask_zero=True)
    model = keras.Sequential(
        [
            embedding,
            keras.layers.TimeDistributed(layers.OutputsOnly(layer)),
        ]
    )
    model(ids)
    outputs = randomize(model)(ids)
    for row, column, length in ((0, 1, 2), (1, 0, 1), (1, 1, 3)):
        real = embedding(ids[row, column, :length])[None]
        expected, _ = layer(tf.convert_to_tensor(real.numpy()))
        np.testing.assert_allclose(
            outputs[row, column, :length], expected[0], atol=1e-5
        )


@each_layer
def test_in_a_sequential_model_with_the_mask(name):
    ids = np.array([[1, 2], [3, 2]])
    model = keras.Sequential(
        [
            keras.layers.Embedding(5, D, mask_zero=True),
            layers.OutputsOnly(WRAPPED[name]()),
            keras.layers.GRU(3),
        ]
    )
    padded = np.pad(ids, [(0, 0), (0, 3)])
    np.testing.assert_allclose(model(padded), model(ids), atol=1e-6)


def test_dropout_acts_in_training_only(documents):
    layer = layers.OutputsOnly(WRAPPED["encoder"](dropout=0.5))
    still = layer(documents[0])
    np.testing.assert_array_equal(layer(documents[0]), still)
    assert not np.allclose(layer(documents[0], training=True), still)
