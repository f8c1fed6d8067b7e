"""What chapters 15 and 16 print as formulas, in numpy.

Each function reads like its formula, and is written from the chapter's text
alone. The weights are those of the package's layers, drawn at random, biases
too. Vectors are rows, as in the code.
"""

import itertools
import math

import numpy as np
import pytest
from keras import ops

from keras_attention import layers, models
from keras_attention.evaluation import hmm_alignment
from keras_attention.models import neural_turing_machine
from keras_attention.tokens import END, START

rng = np.random.default_rng(1)


def drawn(layer):
    """The layer, its weights drawn."""
    for weight in layer.weights:
        weight.assign(rng.normal(0, 0.4, weight.shape))
    return layer


def inputs(*shape):
    return rng.normal(size=shape).astype("float32")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log(1 + np.exp(x))


def softmax(scores):
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def close(found, expected):
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("tying", ["adjacent", "layer_wise"])
def test_chapter_15_hops(tying):
    """Sentences of unlike lengths; the last one has the first row of T."""
    V, d, K = 11, 6, 2
    model = models.EndToEndMemoryNetwork(
        V, 4, d, K, tying=tying, memory_size=5, noise=0.0
    )
    model.build()
    drawn(model)
    story, question = [[4, 5, 6], [7, 4], [8, 9, 10, 5]], [5, 9]

    def l(j, J):  # noqa: E743
        k = np.arange(1, d + 1)
        return (1 - j / J) - k / d * (1 - 2 * j / J)

    def encode(table, words):
        J = len(words)
        return sum(l(j, J) * table[x] for j, x in enumerate(words, 1))

    tables = [one.get_weights()[0] for one in model.embeddings]
    times = [one.get_weights()[0] for one in model.times]
    (W,) = model.output_projection.get_weights()
    is_adjacent = tying == "adjacent"
    u = encode(tables[0] if is_adjacent else tables[2], question)
    p = []
    for hop in range(K):
        a = hop if is_adjacent else 0
        m, c = (
            np.array(
                [
                    encode(tables[n], words) + times[n][len(story) - 1 - i]
                    for i, words in enumerate(story)
                ]
            )
            for n in (a, a + 1)
        )
        p.append(softmax(m @ u))
        o = p[-1] @ c
        if not is_adjacent:
            u = u @ model.hop_projection.get_weights()[0]
        u = u + o

    ids = [id for words in story for id in (*words, END)]
    logits, found = model.attend(
        {
            "story_ids": np.array([ids]),
            "question_ids": np.array([[*question, END]]),
        }
    )
    close(logits[0], u @ W)
    ends = [i for i, id in enumerate(ids) if id == END]
    close(np.array(found)[0][:, ends], p)


def test_chapter_15_an_address():
    N, M = 6, 5
    head = neural_turing_machine.MemoryHead(M)
    head.build((None, 7), (None, N, M), (None, N))
    drawn(head)
    x, memory, before = inputs(7), inputs(N, M), softmax(inputs(N))
    W, b = head.projection.get_weights()
    said = x @ W + b
    k, beta, g = said[:M], softplus(said[M]), sigmoid(said[M + 1])
    s, gamma = softmax(said[M + 2 : M + 5]), 1 + softplus(said[M + 5])

    cosine = [
        k @ row / (np.linalg.norm(k) * np.linalg.norm(row)) for row in memory
    ]
    w_g = g * softmax(beta * np.array(cosine)) + (1 - g) * before
    # s[0] is that of a step back, s_-1, and the cells form a ring.
    shifted = np.array(
        [
            sum(s[shift + 1] * w_g[(i - shift) % N] for shift in (-1, 0, 1))
            for i in range(N)
        ]
    )
    w = shifted**gamma / np.sum(shifted**gamma)
    found = head(x[None], memory[None], before[None].astype("float32"))
    close(found[0], w)


def test_chapter_15_a_machine_writes_and_then_reads():
    N, M, units, width = 6, 5, 7, 3
    model = models.NeuralTuringMachine(
        9, embedding_dim=width, units=units, num_slots=N, slot_dim=M
    )
    model.build()
    drawn(model)
    memory = inputs(N, M)
    places = softmax(inputs(2, N)).astype("float32")
    state = {
        "controller": tuple(inputs(2, 1, units)),
        "memory": memory[None],
        "read": inputs(1, M),
        "write_weights": places[:1],
        "read_weights": places[1:],
    }
    x = inputs(1, width)
    after = model._advance(x, state)
    h = np.array(after["controller"][0])
    (W_e, b_e), (W_a, b_a) = (
        part.get_weights() for part in (model.erase, model.add)
    )
    e, a = sigmoid(h @ W_e + b_e)[0], np.tanh(h @ W_a + b_a)[0]
    w = np.array(model.write_head(h, memory[None], places[:1]))[0]
    written = [
        M_i * (1 - w_i * e) + w_i * a
        for w_i, M_i in zip(w, memory, strict=True)
    ]
    written = np.array(written)
    w = np.array(model.read_head(h, written[None], places[1:]))[0]
    r = sum(w_i * M_i for w_i, M_i in zip(w, written, strict=True))
    close(after["memory"][0], written)
    close(after["read"][0], r)


def test_chapter_16_the_forward_sum_of_a_transducer():
    """Of letters and sounds: log p(y | x), to the last blank."""
    V, units = 8, 4
    model = models.RNNTransducer(
        V, embedding_dim=3, units=units, num_layers=1, joint_dim=5
    )
    model.build()
    drawn(model)
    source, target = [4, 6, 5, END], [7, 4, 7]
    S, T = len(source), len(target)
    lstms = [model.encoder[0].forward_layer, model.encoder[0].backward_layer]
    embedded = model.source_embedding.get_weights()[0][source]
    forward, backward = (
        lstm_states(lstm, rows)
        for lstm, rows in zip(lstms, (embedded, embedded[::-1]), strict=True)
    )
    W_f, b_f = model.source_projection.get_weights()
    f = np.concatenate([forward, backward[::-1]], axis=1) @ W_f + b_f
    (W_g,) = model.prediction_projection.get_weights()
    read = model.target_embedding.get_weights()[0][[START, *target]]
    g = lstm_states(model.prediction, read) @ W_g
    W, b = model.output_projection.get_weights()
    p = softmax(np.tanh(f[:, None] + g[None]) @ W + b)  # [S, T + 1, V]

    alpha = np.zeros((S + 1, T + 1))  # alpha[0] is outside.
    for j in range(1, S + 1):
        for i in range(T + 1):
            if (j, i) == (1, 0):
                alpha[j, i] = 1
                continue
            alpha[j, i] = alpha[j - 1, i] * p[j - 2, i, END] if j > 1 else 0
            if i:
                y = p[j - 1, i - 1, target[i - 1]]
                alpha[j, i] += alpha[j, i - 1] * y
    expected = math.log(alpha[S, T] * p[S - 1, T, END])

    logits = model(
        {
            "source_ids": np.array([source]),
            "target_ids": np.array([[START, *target]]),
        }
    )
    log_p = np.array(ops.log_softmax(logits))[0]
    found = sum(log_p[i, k] for i, k in enumerate([*target, END]))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def lstm_states(lstm, x):
    """h after each row of x, from zeros: [T, units]."""
    kernel, recurrent, bias = lstm.get_weights()
    h, c, states = np.zeros(lstm.units), np.zeros(lstm.units), []
    for row in x:
        i, f, g, o = np.split(row @ kernel + h @ recurrent + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return np.array(states)


def test_chapter_16_the_sums_of_a_hidden_markov_model():
    """The package's with no empty word: posteriors of places and of jumps."""
    S, T = 4, 5
    t = rng.uniform(size=(T, S))  # t(y_i | x_j)
    c = rng.uniform(size=2 * S - 1)  # Of the jumps 1 - S ... S - 1.

    def p(j, j_before):
        counts = [c[other - j_before + S - 1] for other in range(S)]
        return c[j - j_before + S - 1] / sum(counts)

    alpha, beta = np.zeros((T, S)), np.ones((T, S))
    alpha[0] = t[0] / S
    for i, j in itertools.product(range(1, T), range(S)):
        alpha[i, j] = t[i, j] * sum(
            alpha[i - 1, other] * p(j, other) for other in range(S)
        )
    for i, j in itertools.product(reversed(range(T - 1)), range(S)):
        beta[i, j] = sum(
            p(other, j) * t[i + 1, other] * beta[i + 1, other]
            for other in range(S)
        )
    total = alpha[-1].sum()
    jumped = np.zeros(2 * S - 1)
    for i, j, other in itertools.product(range(1, T), range(S), range(S)):
        jumped[j - other + S - 1] += (
            alpha[i - 1, other] * p(j, other) * t[i, j] * beta[i, j] / total
        )

    emissions = np.concatenate([np.zeros((T, 1)), t], axis=1)
    links, made = hmm_alignment._posteriors(emissions[None], c, empty=0.0)
    close(links[0, :, 1:], alpha * beta / total)
    close(made, jumped)


def test_chapter_16_graves_window():
    """The text counts from 1 and begins at 0, the layer from 0 and at -1."""
    K, S, T = 2, 5, 4
    layer = layers.GaussianWindow(num_components=K)
    s, h = inputs(1, T, 3), inputs(1, S, 6)
    layer(query=s, value=h)
    drawn(layer)
    W, b = layer.get_weights()
    kappa, phi = np.zeros(K), np.zeros((T, S))
    for i in range(T):
        a_hat, b_hat, kappa_hat = np.split(s[0, i] @ W + b, 3)
        kappa = kappa + np.exp(kappa_hat)
        for j in range(1, S + 1):
            phi[i, j - 1] = np.sum(
                np.exp(a_hat) * np.exp(-np.exp(b_hat) * (kappa - j) ** 2)
            )
    found, weights = layer(query=s, value=h)
    close(weights[0], phi)
    close(found[0], phi @ h[0])


def test_chapter_16_monotonic_attention():
    """The mean over all ways to stop, from the score to the context."""
    S, T, units = 5, 3, 4
    layer = layers.MonotonicAttention(units)
    s, h = inputs(1, T, 3), inputs(1, S, 6)
    layer(query=s, value=h)
    drawn(layer)
    W, U, v, b, g, r = (
        np.array(one)
        for one in (
            layer.query_kernel,
            layer.key_kernel,
            layer.score_vector,
            layer.bias,
            layer.scale,
            layer.level,
        )
    )
    unit = v.ravel() / np.linalg.norm(v)
    a = np.zeros((T + 1, S))
    a[0, 0] = 1
    for i in range(1, T + 1):
        q = 0.0
        for j in range(S):
            e = g * unit @ np.tanh(s[0, i - 1] @ W + h[0, j] @ U + b) + r
            p = sigmoid(e)
            q = q + a[i - 1, j]
            a[i, j] = p * q
            q = (1 - p) * q
    found, weights = layer(query=s, value=h)
    close(weights[0], a[1:])
    close(found[0], a[1:] @ h[0])


def test_chapter_16_marginals_of_a_chain():
    S = 6
    theta, table = inputs(S), inputs(2, 2)
    alpha, beta = np.ones((2, S, 2))
    for j, z in itertools.product(range(S - 1), range(2)):
        alpha[j + 1, z] = sum(
            alpha[j, other] * np.exp(theta[j] * other + table[other, z])
            for other in range(2)
        )
    for j, z in itertools.product(reversed(range(1, S)), range(2)):
        beta[j - 1, z] = sum(
            np.exp(table[z, other] + theta[j] * other) * beta[j, other]
            for other in range(2)
        )
    on = alpha[:, 1] * np.exp(theta) * beta[:, 1]
    marginals = on / (alpha[:, 0] * beta[:, 0] + on)
    close(layers.structured_attention.chain_marginals(theta, table), marginals)
