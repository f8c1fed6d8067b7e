"""The neural Turing machine against its equations, slot by slot."""

import numpy as np
import pytest

from keras_attention import models
from keras_attention.models import neural_turing_machine

V, SOURCE_V, EMBEDDING, UNITS, N, M = 23, 19, 7, 11, 6, 5


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(x))


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


def cosine(u, v):
    return u @ v / (np.linalg.norm(u) * np.linalg.norm(v))


def lstm(x, state, weights):
    h, c = state
    kernel, recurrent, bias = weights
    i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def address(layer, h, memory, before):
    """Equations 5 to 9, one slot after another."""
    kernel, bias = layer.get_weights()
    outputs = h @ kernel + bias
    max_shift, slot_dim = layer.max_shift, layer.slot_dim
    k, beta, g = outputs[:slot_dim], outputs[slot_dim], outputs[slot_dim + 1]
    s, gamma = softmax(outputs[slot_dim + 2 : -1]), 1 + softplus(outputs[-1])
    content = softmax(
        np.array([softplus(beta) * cosine(k, slot) for slot in memory])
    )
    gated = sigmoid(g) * content + (1 - sigmoid(g)) * before
    size = len(memory)
    shifted = np.zeros(size)
    for i in range(size):
        for j in range(size):
            for shift in range(-max_shift, max_shift + 1):
                if (i - j - shift) % size == 0:
                    shifted[i] += gated[j] * s[shift + max_shift]
    return shifted**gamma / (shifted**gamma).sum()


def control(model, x, state):
    """The controller's output, and what an LSTM keeps behind it."""
    weights = model.controller.get_weights()
    if len(weights) == 3:
        return lstm(x, state, weights)
    kernel, bias = weights
    return np.tanh(x @ kernel + bias), None


def translate(model, source, target):
    """Logits and attention of one pair: the equations of the class."""
    state = np.zeros(UNITS), np.zeros(UNITS)
    memory, read = np.full((N, M), 1e-6), np.zeros(M)
    reads = writes = np.eye(N)[0]
    source_table = model.source_embedding.get_weights()[0]
    target_table = model.target_embedding.get_weights()[0]
    written, logits, attention = [], [], []
    tokens = [source_table[one] for one in source]
    tokens += [target_table[one] for one in target]
    for place, x in enumerate(tokens):
        state = control(model, np.concatenate([x, read]), state)
        h = state[0]
        writes = address(model.write_head, h, memory, writes)
        (w_e, b_e), (w_a, b_a) = (
            layer.get_weights() for layer in (model.erase, model.add)
        )
        erase, add = sigmoid(h @ w_e + b_e), np.tanh(h @ w_a + b_a)
        memory = memory * (1 - np.outer(writes, erase))  # 3
        memory = memory + np.outer(writes, add)  # 4
        reads = address(model.read_head, h, memory, reads)
        read = reads @ memory  # 2
        if place < len(source):
            written.append(writes)
            continue
        w_o, b_o = model.output_projection.get_weights()
        logits.append(np.concatenate([h, read]) @ w_o + b_o)
        shares = np.array([reads @ one for one in written])
        attention.append(shares / shares.sum())
    return np.array(logits), np.array(attention)


@pytest.mark.parametrize(
    "max_shift, controller", [(1, "lstm"), (2, "lstm"), (1, "feed_forward")]
)
def test_equals_the_equations(randomize, max_shift, controller):
    model = models.NeuralTuringMachine(
        V, SOURCE_V, EMBEDDING, UNITS, N, M, max_shift, controller
    )
    randomize(model)
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
        np.testing.assert_allclose(logits[row], expected, atol=1e-4)
        for t, (one, weights) in enumerate(steps):
            np.testing.assert_allclose(one[row], expected[t], atol=1e-4)
            np.testing.assert_allclose(
                weights[row, :length], attention[t], atol=1e-4
            )


def test_what_is_written_is_read_again():
    """A head that is sure of its place: the memory holds what was added."""
    head = neural_turing_machine.MemoryHead(M)
    here = np.eye(N, dtype="float32")[[2]]
    memory = np.zeros((1, N, M), "float32")
    head.build((1, UNITS))
    kernel, bias = head.get_weights()
    # No content, a shift of one place forward, no sharpening.
    bias[M + 1] = -50
    bias[M + 2 : M + 5] = [-50, -50, 50]
    head.set_weights([0 * kernel, bias])
    moved = head(np.zeros((1, UNITS), "float32"), memory, here)
    np.testing.assert_allclose(moved, np.eye(N)[[3]], atol=1e-6)


def test_an_address_by_content_finds_its_slot(rng):
    head = neural_turing_machine.MemoryHead(M)
    head.build((1, UNITS))
    kernel, bias = head.get_weights()
    memory = rng.normal(size=(1, N, M)).astype("float32")
    bias[:M], bias[M], bias[M + 1] = memory[0, 4], 500, 50
    bias[M + 2 : M + 5] = [-50, 50, -50]
    head.set_weights([0 * kernel, bias])
    start = np.eye(N, dtype="float32")[[0]]
    found = head(np.zeros((1, UNITS), "float32"), memory, start)
    np.testing.assert_allclose(found, np.eye(N)[[4]], atol=1e-3)


def test_another_controller_is_refused():
    with pytest.raises(ValueError, match='"lstm" or "feed_forward".*\'gru\''):
        models.NeuralTuringMachine(V, controller="gru")


def test_papers_memory(without_memory):
    """Table 2: the copy task has 128 slots of 20 and a controller of 100."""
    v, d, n, m = 10, 64, 100, 20
    head = (n + 1) * (m + 1 + 1 + 3 + 1)
    expected = (
        2 * v * d
        + 4 * n * (d + m + n + 1)
        + 2 * head
        + 2 * (n + 1) * m
        + (n + m + 1) * v
    )
    with without_memory():
        model = models.NeuralTuringMachine.from_size("base", v, v)
        model.build()
    assert model.num_slots == 128
    assert model.count_params() == expected
