"""The bag of vectors: its equations, and what it cannot see."""

import keras
import numpy as np
import pytest

from keras_attention import models

V, CLASSES = 23, 5
IDS = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])


def read(model, tokens):
    """Logits of one text: the equations of the class."""
    embeddings = model.embedding.get_weights()[0]
    z = sum(embeddings[token] for token in tokens) / len(tokens)
    for layer in model.hidden_layers:
        w, b = layer.get_weights()
        z = np.maximum(z @ w + b, 0)
    w, b = model.output_projection.get_weights()
    return z @ w + b


def test_equals_the_equations(randomize):
    model = randomize(models.BagOfVectors(V, CLASSES, 7, 11, num_layers=2))
    expected = [read(model, row[row > 0]) for row in IDS]
    np.testing.assert_allclose(
        model({"source_ids": IDS}), expected, rtol=1e-4, atol=1e-5
    )


def test_order_means_nothing(randomize):
    model = randomize(models.BagOfVectors(V, CLASSES, 7, 11))
    turned = IDS[:, ::-1].copy()
    np.testing.assert_allclose(
        model({"source_ids": turned}), model({"source_ids": IDS}), atol=1e-5
    )


def test_word_dropout_leaves_words_out_of_the_mean(randomize):
    """Of the words that are kept, the weights are equal."""
    model = randomize(models.BagOfVectors(V, CLASSES, 7, 11, word_dropout=0.5))
    ids = np.tile(np.arange(4, 14), (300, 1))
    weights = model.attend({"source_ids": ids}, training=True)[1].numpy()[:, 0]
    kept = weights > 0
    assert 0.45 < kept.mean() < 0.55
    counts = kept.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weights[kept], (kept / counts)[kept], rtol=1e-5)


@pytest.mark.parametrize("num_layers", [0, 1])
def test_xor_needs_a_layer(num_layers):
    """Two words, each of two: whether just one of them is the second."""
    keras.utils.set_random_seed(1)
    # 100 batches of the four, as an epoch of Keras has its price.
    ids = np.tile([[4, 6], [4, 7], [5, 6], [5, 7]], (100, 1))
    labels = np.tile([0, 1, 1, 0], 100)
    model = models.BagOfVectors(
        8, 2, 8, 16, num_layers=num_layers, word_dropout=0.0
    )
    model.compile(
        keras.optimizers.Adam(0.05),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    inputs = {"source_ids": ids}
    model.fit(inputs, labels, batch_size=4, shuffle=False, verbose=0)
    answers = np.argmax(model.predict(inputs, verbose=0), axis=1)
    assert np.all(answers == labels) == (num_layers > 0)


def test_the_papers_size():
    """The defaults of the authors' dan_sentiment.py."""
    config = models.BagOfVectors.from_size("base", 23).get_config()
    assert (config["embedding_dim"], config["units"]) == (300, 300)
    assert (config["num_layers"], config["word_dropout"]) == (3, 0.3)
