"""A model's logits in factors are its logits."""

import keras
import numpy as np
import pytest
import tiny

from keras_attention import layers

VOCABULARY = 13
# Their logits are no product, or their objective is their own.
OTHERS = (
    "diagonal_neural_gpu",
    "rnn_transducer",
    "intra_attention_summarizer",
)
TRANSLATORS = tiny.names("translation", "transduction")
NAMES = [*TRANSLATORS, *tiny.names("language_modelling")]


def product(factors):
    kernel = np.array(factors.kernel)
    kernel = kernel.T if factors.is_turned else kernel
    bias = 0 if factors.bias is None else np.array(factors.bias)
    return np.array(factors.inputs) @ kernel + bias


@pytest.mark.fast_for("transformer", "rnnsearch", "luong", "lstmn")
@pytest.mark.parametrize("name", NAMES)
def test_factors_multiply_to_the_logits(name):
    model = tiny.create(name, VOCABULARY)
    model.build()
    inputs = np.array([[2, 4, 5, 6], [2, 7, 12, 3]], "int32")
    if name in TRANSLATORS:
        inputs = {"source_ids": inputs[:, 1:], "target_ids": inputs}
    logits = model(inputs)
    with layers.left_in_factors():
        factors = model(inputs)
    if name in OTHERS:
        np.testing.assert_array_equal(factors, logits)
    else:
        np.testing.assert_allclose(product(factors), logits, atol=1e-5)


@pytest.mark.parametrize(
    "output",
    [
        keras.layers.Dense(5, activation="tanh"),
        keras.layers.ReversibleEmbedding(5, 3, tie_weights=False),
        keras.layers.ReversibleEmbedding(5, 3, logit_soft_cap=2.0),
        keras.layers.Dense(5),  # It is not built yet.
    ],
)
def test_what_is_no_product_of_its_weights_gives_logits(output):
    if not isinstance(output, keras.layers.Dense) or output.activation is (
        keras.activations.tanh
    ):
        output.build((None, 3))
    inputs = np.ones((2, 3), "float32")
    with layers.left_in_factors():
        logits = layers.logits(output, inputs)
    np.testing.assert_allclose(logits, layers.logits(output, inputs))


def test_an_int8_layer_gives_logits():
    output = keras.layers.Dense(5)
    output.build((None, 3))
    output.quantize("int8")
    with layers.left_in_factors():
        assert layers.logits(output, np.ones((2, 3), "float32")).shape == (2, 5)
