import numpy as np

from keras_attention import models

V, SOURCE_V, EMBEDDING, UNITS, READOUT = 23, 19, 7, 11, 5


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(x, h, weights):
    """Bahdanau et al. 2014, A.1.1, with biases and Keras's sense of z."""
    w, u, b = (np.split(matrix, 3, axis=-1) for matrix in weights)
    z = sigmoid(x @ w[0] + h @ u[0] + b[0])
    r = sigmoid(x @ w[1] + h @ u[1] + b[1])
    candidate = np.tanh(x @ w[2] + (r * h) @ u[2] + b[2])
    return z * h + (1 - z) * candidate


def annotate(model, source):
    """h_j = [forward GRU(x)_j; backward GRU(x)_j]."""
    x = model.source_embedding.get_weights()[0][source]
    forward, backward = [np.zeros(UNITS)], [np.zeros(UNITS)]
    for x_j in x:
        weights = model.encoder.forward_layer.get_weights()
        forward.append(gru(x_j, forward[-1], weights))
    for x_j in x[::-1]:
        weights = model.encoder.backward_layer.get_weights()
        backward.append(gru(x_j, backward[-1], weights))
    return np.concatenate([forward[1:], backward[:0:-1]], axis=-1)


def search(model, s, h, before):
    """alpha_i: the softmax of e_ij."""
    w, u, v = model.attention.get_weights()
    e = np.array([v[:, 0] @ np.tanh(w.T @ s + u.T @ h_j) for h_j in h])
    return np.exp(e) / np.exp(e).sum()


def translate(model, source, target, look=search):
    """Logits and attention of one pair: the equations of the class.

    `look(model, s, h, before)` gives alpha_i; `before` are those before.
    """
    h = annotate(model, source)
    w, b = model.bridge.get_weights()
    s = np.tanh(h[0, UNITS:] @ w + b)
    logits, attention = [], []
    for token in target:
        alpha = look(model, s, h, attention)
        c = sum(alpha_j * h_j for alpha_j, h_j in zip(alpha, h, strict=True))
        y = model.target_embedding.get_weights()[0][token]
        s = gru(np.concatenate([y, c]), s, model.decoder.get_weights())
        w, b = model.maxout.get_weights()
        u = np.concatenate([s, y, c]) @ w + b
        t = np.array([max(u[2 * j], u[2 * j + 1]) for j in range(READOUT)])
        w, b = model.output_projection.get_weights()
        logits.append(t @ w + b)
        attention.append(alpha)
    return logits, attention


def test_equals_the_equations(randomize):
    model = randomize(models.RNNSearch(V, SOURCE_V, EMBEDDING, UNITS, READOUT))
    source_ids = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])
    target_ids = np.array([[2, 19, 5], [2, 22, 4]])
    logits = model({"source_ids": source_ids, "target_ids": target_ids})
    memory = model.encode(source_ids)
    state = model.initial_state(memory)
    expected = [
        translate(model, source_ids[row, :length], target_ids[row])
        for row, length in enumerate([5, 3])
    ]
    for row in range(2):
        np.testing.assert_allclose(logits[row], expected[row][0], atol=1e-5)
    for t in range(3):
        step_logits, state, weights = model.step(
            target_ids[:, t], memory, state
        )
        for row, length in enumerate([5, 3]):
            want_logits, want_weights = expected[row]
            np.testing.assert_allclose(
                step_logits[row], want_logits[t], atol=1e-5
            )
            np.testing.assert_allclose(
                weights[row, :length], want_weights[t], atol=1e-5
            )


def test_papers_size(without_memory):
    """Appendix A.2.3: n = 1000, m = 620, l = 500, n' = 1000, K = 30,000.

    The paper prints no total, and its equations no biases.
    """
    k, m, n, n_score, deep = 30_000, 620, 1000, 1000, 500
    expected = (
        2 * k * m  # E of both languages.
        + 2 * 3 * (m * n + n * n)  # Both directions: W, U for z, r and h.
        + n * n  # W_s
        + n_score * n + n_score * 2 * n + n_score  # W_a, U_a, v_a
        + 3 * (m * n + n * n + 2 * n * n)  # The decoder: W, U and C.
        + 2 * deep * (n + m + 2 * n)  # U_o, V_o, C_o
        + k * deep  # W_o
    )  # fmt: skip
    biases = 2 * 3 * n + n + 3 * n + 2 * deep + k
    with without_memory():
        model = models.RNNSearch.from_size("base", k, k)
        model.build()
    assert model.count_params() == expected + biases
    assert biases < 0.001 * expected
