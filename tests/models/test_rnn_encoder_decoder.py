import numpy as np
import pytest

from keras_attention import models

V, SOURCE_V, EMBEDDING, UNITS, READOUT = 23, 19, 7, 11, 5


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(x, h, weights):
    """Cho et al. 2014, equations 5 to 8, with biases."""
    w, u, b = (np.split(matrix, 3, axis=-1) for matrix in weights)
    z = sigmoid(x @ w[0] + h @ u[0] + b[0])
    r = sigmoid(x @ w[1] + h @ u[1] + b[1])
    candidate = np.tanh(x @ w[2] + (r * h) @ u[2] + b[2])
    return z * h + (1 - z) * candidate


def translate(model, source, target):
    """Logits of one pair without padding: the equations of the class."""
    source_embedding = model.source_embedding.get_weights()[0]
    embedding = model.target_embedding.get_weights()[0]
    h = np.zeros(UNITS)
    for token in source:
        h = gru(source_embedding[token], h, model.encoder.get_weights())
    w, b = model.summary_projection.get_weights()
    c = np.tanh(h @ w + b)
    w, b = model.bridge.get_weights()
    h = np.tanh(c @ w + b)
    logits = []
    for token in target:
        y = embedding[token]
        h = gru(np.concatenate([y, c]), h, model.decoder.get_weights())
        w, b = model.maxout.get_weights()
        u = np.concatenate([h, y, c]) @ w + b
        s = np.array([max(u[2 * j], u[2 * j + 1]) for j in range(READOUT)])
        w, b = model.output_projection.get_weights()
        logits.append(s @ w + b)
    return logits


def test_equals_the_equations(randomize):
    model = randomize(
        models.RNNEncoderDecoder(V, SOURCE_V, EMBEDDING, UNITS, READOUT)
    )
    source_ids = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])
    target_ids = np.array([[2, 19, 5], [2, 22, 4]])
    logits = model({"source_ids": source_ids, "target_ids": target_ids})
    for row, length in enumerate([5, 3]):
        np.testing.assert_allclose(
            logits[row],
            translate(model, source_ids[row, :length], target_ids[row]),
            atol=1e-5,
        )


def test_weights_are_one_at_the_word_read_last():
    model = models.RNNEncoderDecoder(V, SOURCE_V, EMBEDDING, UNITS, READOUT)
    memory = model.encode(np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]]))
    np.testing.assert_array_equal(
        memory["attention_weights"], [[0, 0, 0, 0, 1], [0, 0, 1, 0, 0]]
    )


def test_papers_size(without_memory):
    """Section 4.1: 15,000 words, 100 wide, 1000 hidden units, 500 maxout.

    The paper prints no total. It writes no biases and gives its output a
    low rank; ours has biases (the last line) and full rank.
    """
    v, e, n, m = 15_000, 100, 1000, 500
    expected = (
        2 * v * e  # The embeddings.
        + 3 * (e * n + n * n)  # The encoder: W, U for z, r and h.
        + n * n  # V
        + n * n  # V'
        + 3 * ((e + n) * n + n * n)  # The decoder: W, C and U.
        + (n + e + n) * 2 * m  # O_h, O_y, O_c
        + m * v  # G
    )
    biases = 3 * n + n + n + 3 * n + 2 * m + v
    with without_memory():
        model = models.RNNEncoderDecoder.from_size("base", v)
        model.build()
    assert model.count_params() == expected + biases
    assert biases < 0.002 * expected


@pytest.mark.parametrize("size", ["mini", "tiny"])
def test_small_sizes(size, without_memory):
    with without_memory():
        model = models.RNNEncoderDecoder.from_size(size, V, units=13)
        model.build()
    assert model.get_config()["units"] == 13
    assert model.count_params() < 2e6
