import numpy as np
import pytest

from keras_attention import models

V, SOURCE_V, EMBEDDING, UNITS = 23, 19, 7, 11


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, state, weights):
    """Hochreiter and Schmidhuber's cell with forget gates."""
    h, c = state
    kernel, recurrent, bias = weights
    i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def translate(model, source, target):
    """Logits of one pair without padding: the equations of the class."""
    stack = list(zip(model.encoder, model.decoder, strict=True))
    states = [(np.zeros(UNITS), np.zeros(UNITS)) for _ in stack]
    for token in source:
        x = model.source_embedding.get_weights()[0][token]
        for n, (layer, _) in enumerate(stack):
            states[n] = lstm(x, states[n], layer.get_weights())
            x = states[n][0]
    logits = []
    for token in target:
        x = model.target_embedding.get_weights()[0][token]
        for n, (_, layer) in enumerate(stack):
            states[n] = lstm(x, states[n], layer.get_weights())
            x = states[n][0]
        w, b = model.output_projection.get_weights()
        logits.append(x @ w + b)
    return logits


@pytest.mark.parametrize("reverse_source", [True, False])
def test_equals_the_equations(randomize, reverse_source):
    model = randomize(
        models.LSTMEncoderDecoder(
            V, SOURCE_V, EMBEDDING, UNITS, 2, reverse_source
        )
    )
    source_ids = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])
    target_ids = np.array([[2, 19, 5], [2, 22, 4]])
    logits = model({"source_ids": source_ids, "target_ids": target_ids})
    for row, length in enumerate([5, 3]):
        source = source_ids[row, :length]
        np.testing.assert_allclose(
            logits[row],
            translate(
                model,
                source[::-1] if reverse_source else source,
                target_ids[row],
            ),
            atol=1e-5,
        )


@pytest.mark.parametrize(
    ("reverse_source", "expected"),
    [
        (True, [[1, 0, 0, 0, 0], [1, 0, 0, 0, 0]]),
        (False, [[0, 0, 0, 0, 1], [0, 0, 1, 0, 0]]),
    ],
)
def test_weights_are_one_at_the_word_read_last(reverse_source, expected):
    model = models.LSTMEncoderDecoder(
        V, SOURCE_V, EMBEDDING, UNITS, 1, reverse_source
    )
    memory = model.encode(np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]]))
    np.testing.assert_array_equal(memory["attention_weights"], expected)


def test_papers_size(without_memory):
    """Section 3.4: 384M parameters, 64M of them recurrent.

    The paper counts no biases: 4 for each of the 8 x 1000 cells and one for
    each of the 80,000 words, 0.03 % of the whole.
    """
    v, source_v, n, num_layers = 80_000, 160_000, 1000, 4
    recurrent = 2 * num_layers * 4 * (n * n + n * n)
    expected = source_v * n + v * n + recurrent + n * v
    assert recurrent == 64e6 and expected == 384e6
    biases = 2 * num_layers * 4 * n + v
    with without_memory():
        model = models.LSTMEncoderDecoder.from_size("base", v, source_v)
        model.build()
    assert model.count_params() == expected + biases
    stacks = [*model.encoder, *model.decoder]
    assert sum(layer.count_params() for layer in stacks) == pytest.approx(
        64e6, rel=0.001
    )
