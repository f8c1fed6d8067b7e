"""GNMT against its equations, and its size against a count by hand."""

import numpy as np
import pytest

from keras_attention import models

V, SOURCE_V, EMBEDDING, UNITS = 23, 19, 7, 10


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, state, weights):
    h, c = state
    kernel, recurrent, bias = weights
    i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def read(xs, weights):
    state, hidden = (np.zeros(UNITS), np.zeros(UNITS)), []
    for x in xs:
        state = lstm(x, state, weights)
        hidden.append(state[0])
    return np.array(hidden)


def encode(model, source):
    """Equations 1 and 6: bottom layer both ways, residual from the third."""
    xs = model.source_embedding.get_weights()[0][source]
    for number, layer in enumerate(model.encoder, start=1):
        weights = layer.get_weights()
        if number == 1:
            backward = read(xs[::-1], weights[3:])[::-1]
            outputs = np.concatenate([read(xs, weights[:3]), backward], axis=1)
        else:
            outputs = read(xs, weights)
        xs = outputs + xs if number >= 3 else outputs
    return xs


def translate(model, source, target):
    """Logits and attention of one pair: the equations of the class."""
    values = encode(model, source)
    w, u, v = model.attention.get_weights()
    y = np.zeros(UNITS)
    states = [(np.zeros(UNITS), np.zeros(UNITS)) for _ in model.decoder]
    logits, attention = [], []
    for token in target:
        scores = np.array([np.tanh(y @ w + x @ u) @ v[:, 0] for x in values])
        p = np.exp(scores) / np.exp(scores).sum()  # 4
        a = p @ values
        x = model.target_embedding.get_weights()[0][token]
        for k, cell in enumerate(model.decoder):
            inputs = np.concatenate([x, a])
            states[k] = lstm(inputs, states[k], cell.get_weights())
            m = states[k][0]
            x = m + x if k + 1 >= 3 else m  # 6
        y = states[0][0]
        w_o, b = model.output_projection.get_weights()
        logits.append(x @ w_o + b)
        attention.append(p)
    return np.array(logits), np.array(attention)


@pytest.mark.parametrize("num_layers", [1, 2, 4])
def test_equals_the_equations(randomize, num_layers):
    model = randomize(models.GNMT(V, SOURCE_V, EMBEDDING, UNITS, num_layers))
    source_ids = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])
    target_ids = np.array([[2, 19, 5], [2, 22, 4]])
    logits = model({"source_ids": source_ids, "target_ids": target_ids})
    memory = model.encode(source_ids)
    state, steps = model.initial_state(memory), []
    for t in range(3):
        one, state, weights = model.step(target_ids[:, t], memory, state)
        steps.append((one, weights))
    for row, length in enumerate([5, 3]):
        expected, attention = translate(
            model, source_ids[row, :length], target_ids[row]
        )
        np.testing.assert_allclose(logits[row], expected, atol=1e-5)
        for t, (one, weights) in enumerate(steps):
            np.testing.assert_allclose(one[row], expected[t], atol=1e-5)
            np.testing.assert_allclose(
                weights[row, :length], attention[t], atol=1e-5
            )


def test_dropout_between_layers_is_one_mask_a_sentence(monkeypatch):
    model = models.GNMT(V, SOURCE_V, EMBEDDING, 101, 3, dropout=0.5)
    ids = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])
    inputs = {"source_ids": ids, "target_ids": ids}
    model.build()
    original, seen = model._advance, []

    def advance(embedded, memory, state, dropout_masks):
        seen.append(dropout_masks)
        return original(embedded, memory, state, dropout_masks)

    monkeypatch.setattr(model, "_advance", advance)
    for training, values in ((False, {1.0}), (True, {0.0, 2.0})):
        seen.clear()
        model(inputs, training=training)
        assert all(masks is seen[0] for masks in seen)
        assert len(seen[0]) == 2
        for mask in seen[0]:
            assert mask.shape == (2, 101)
            assert set(np.unique(mask)) == values


def test_papers_size(without_memory):
    """8 + 8 layers of 1,024, the bottom one both ways, 32,000 wordpieces."""
    v, n = 32_000, 1024

    def of_lstm(inputs):
        return 4 * n * (inputs + n + 1)

    expected = (
        2 * v * n  # The embeddings.
        + 2 * of_lstm(n)  # The encoder's bottom layer, both ways.
        + of_lstm(2 * n)  # The layer above it.
        + 6 * of_lstm(n)
        + 8 * of_lstm(2 * n)  # The decoder: each layer also reads the context.
        + 2 * n * n  # W and U
        + n  # v
        + v * n  # W_o
        + v
    )
    with without_memory():
        model = models.GNMT.from_size("base", v, v)
        model.build()
    assert model.count_params() == expected


def test_first_weights_let_a_small_input_through():
    """Four times Glorot's range, and all of them drawn apart."""
    model = models.GNMT(1009, 1009, 31, 37, num_layers=3)
    model.build()
    embeddings = [
        layer.get_weights()[0]
        for layer in (model.source_embedding, model.target_embedding)
    ]
    for embedding in embeddings:
        np.testing.assert_allclose(embedding.std(), 1, atol=0.05)
    assert not np.allclose(*embeddings)
    kernels = [
        weight.numpy()
        for weight in model.trainable_weights
        if "coder_" in weight.path and weight.path.endswith("/kernel")
    ]
    assert len(kernels) == 4 + 3  # The encoder's bottom layer has two.
    for kernel in kernels:
        glorot = np.sqrt(6 / sum(kernel.shape))
        np.testing.assert_allclose(abs(kernel).max(), 4 * glorot, rtol=0.01)
    assert len({float(kernel[0, 0]) for kernel in kernels}) == len(kernels)
