"""What chapters 17 and 18 print as formulas, in numpy.

Each function reads like its formula, and is written from the chapter's text
alone. The weights are those of the package's layers, drawn at random, biases
too. Vectors are rows, as in the code.
"""

import itertools
import math

import numpy as np
from keras import ops

from keras_attention import layers, models
from keras_attention.models import intra_attention_summarizer, self_critical
from keras_attention.tokens import END, PAD, START

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


def lstm(z, c):
    """Keras's order of the four, as chapter 17 says."""
    i, f, g, o = np.split(z, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def test_chapter_17_an_lstm_of_two_factors():
    n, r = 6, 3
    cell = layers.FactorizedLSTMCell(n, rank=r)
    cell.build((None, n))
    drawn(cell)
    W_1, W_2, b = cell.get_weights()
    x, h, c = inputs(3, 2, n)
    expected = lstm(np.concatenate([x, h], axis=1) @ (W_1 @ W_2) + b, c)
    _, found = cell(x, [h, c])
    for one, other in zip(found, expected, strict=True):
        close(one, other)


def test_chapter_17_an_lstm_of_groups():
    n, k = 8, 2
    cell = layers.GroupLSTMCell(n, num_groups=k)
    cell.build((None, n))
    drawn(cell)
    W, b = cell.get_weights()
    x, h, c = inputs(3, 2, n)
    of_groups = []
    for j in range(k):
        part = slice(j * n // k, (j + 1) * n // k)
        read = np.concatenate([x[:, part], h[:, part]], axis=1)
        of_groups.append(lstm(read @ W[j] + b[j], c[:, part]))
    expected = [
        np.concatenate(one, axis=1) for one in zip(*of_groups, strict=True)
    ]
    _, found = cell(x, [h, c])
    for one, other in zip(found, expected, strict=True):
        close(one, other)


def test_chapter_17_gates_choose_experts():
    D, n, k = 4, 5, 2
    layer = layers.MixtureOfExperts(n, 6, k)
    layer.build((None, D))
    drawn(layer)
    W_g, _, W_1, b_1, W_2, b_2 = layer.get_weights()
    x = inputs(7, D)
    expected, G = np.zeros((7, D)), np.zeros((7, n))
    for row in range(7):
        scores = x[row] @ W_g
        chosen = np.argsort(-scores)[:k]
        G[row, chosen] = softmax(scores[chosen])
        for i in chosen:
            E = np.maximum(0, x[row] @ W_1[i] + b_1[i, 0]) @ W_2[i] + b_2[i, 0]
            expected[row] += G[row, i] * E
    close(layer.gates(x), G)
    close(layer(x), expected)


def test_chapter_17_loads():
    """The chance that x chooses i, if only the noise of i is drawn again."""
    n, k = 5, 2
    scores, d = inputs(6, n), softplus(inputs(6, n))
    noisy = (scores + inputs(6, n) * d).astype("float32")
    load = np.zeros(n)
    for row, i in itertools.product(range(6), range(n)):
        others = np.delete(noisy[row], i)
        t = np.sort(others)[-k]
        z = (scores[row, i] - t) / d[row, i]
        load[i] += (1 + math.erf(z / math.sqrt(2))) / 2
    found = layers.mixture_of_experts.choice_probability(
        scores, d.astype("float32"), noisy, k
    )
    close(np.sum(found, axis=0), load)


def test_chapter_17_an_online_softmax():
    """One key after the other, as the text goes; the layer has blocks."""
    S, d, width = 7, 4, 3
    q, k, v = inputs(1, d), inputs(S, d), inputs(S, width)
    x = (q @ k.T)[0] / math.sqrt(d)
    m, above, below = -np.inf, np.zeros(width), 0.0
    for j in range(S):
        greater = max(m, x[j])
        above = above * np.exp(m - greater) + np.exp(x[j] - greater) * v[j]
        below = below * np.exp(m - greater) + np.exp(x[j] - greater)
        m = greater
    found = layers.online_softmax_attention(
        *(one[None, None] for one in (q, k, v)), block_size=3
    )
    close(found[0, 0, 0], above / below)


def summarizer(V=9, units=3):
    model = models.IntraAttentionSummarizer(V, embedding_dim=4, units=units)
    model.build()
    return drawn(model)


def test_chapter_18_intra_temporal_attention():
    T, S = 4, 5
    e = inputs(1, T, S)
    before, _ = intra_attention_summarizer.past_scores(e)
    weights = intra_attention_summarizer.temporal_weights(
        ops.convert_to_tensor(e), before, np.ones((1, S), bool)
    )
    for t in range(T):
        e_prime = np.exp(e[0, t])
        if t:
            e_prime = e_prime / sum(np.exp(e[0, j]) for j in range(t))
        close(weights[0, t], e_prime / e_prime.sum())


def test_chapter_18_a_summary_word_by_word():
    """Both attentions, the pointer and the switch (scores by root of D)."""
    model, D = summarizer(), 6
    source, target = [4, 7, 4, 5, END], [START, 7, 4, 8]
    T = len(target)
    embedded = model.embedding.get_weights()[0]
    lstms = model.encoder.forward_layer, model.encoder.backward_layer
    memory = model.encode(np.array([source]))
    h_e = np.concatenate(
        [
            lstm_states(lstms[0], embedded[source]),
            lstm_states(lstms[1], embedded[source][::-1])[::-1],
        ],
        axis=1,
    )
    close(memory["states"][0], h_e)
    h_d = np.array(
        model._decode(np.array([target]), [memory["hidden"], memory["cell"]])[0]
    )[0]
    (W_e,), (W_d,) = (
        part.get_weights()
        for part in (model.temporal_query, model.decoder_query)
    )
    e = (h_d @ W_e) @ h_e.T / math.sqrt(D)
    e_d = (h_d @ W_d) @ h_d.T / math.sqrt(D)
    (W_proj,) = model.output_projection.get_weights()
    W_out, b_out = np.tanh(embedded @ W_proj), np.array(model.output_bias)
    w_u, b_u = model.switch.get_weights()
    expected = np.zeros((T, len(embedded)))
    for t in range(T):
        e_prime = np.exp(e[t])
        if t:
            e_prime = e_prime / sum(np.exp(e[j]) for j in range(t))
        alpha = e_prime / e_prime.sum()
        c_e, c_d = alpha @ h_e, np.zeros(D)
        if t:
            c_d = softmax(e_d[t, :t]) @ h_d[:t]
        f = np.concatenate([h_d[t], c_e, c_d])
        u = sigmoid(f @ w_u + b_u)
        expected[t] = (1 - u) * softmax(W_out @ f + b_out)
        for i, word in enumerate(source):
            expected[t, word] += u[0] * alpha[i]
    log_p = model(
        {"source_ids": np.array([source]), "target_ids": np.array([target])}
    )
    close(np.exp(log_p)[0], expected)


def test_chapter_18_the_self_critical_loss(monkeypatch):
    """(r(greedy) - r(sample)) log p(sample), the texts and marks given."""
    model = summarizer()
    source, label = np.array([[4, 7, END]]), np.array([[4, 5, END]])
    sample, greedy = [[5, 7, END]], [[4, END, PAD]]
    marks = {tuple(sample[0]): 0.3, tuple(greedy[0]): 0.8}
    monkeypatch.setattr(
        self_critical,
        "write",
        lambda model, ids, length, uniforms=None: ops.convert_to_tensor(
            greedy if uniforms is None else sample, "int32"
        ),
    )

    def reward(texts, labels):
        return ops.convert_to_tensor(
            [marks[tuple(row)] for row in np.array(texts)], "float32"
        )

    log_p = np.array(
        model({"source_ids": source, "target_ids": np.array([[START, 5, 7]])})
    )[0]
    # A text has neither PAD nor START.
    log_p[:, [PAD, START]] = -np.inf
    of_words = [
        log_p[t, word] - np.log(np.sum(np.exp(log_p[t])))
        for t, word in enumerate(sample[0])
    ]
    found = self_critical.self_critical_loss(model, source, label, reward)
    close(found, [(0.8 - 0.3) * sum(of_words)])
    mixed = self_critical.mixed_objective(
        model,
        ({"source_ids": source}, label, np.ones((1, 3))),
        training=True,
        reward_weight=0.25,
        reward=reward,
    )
    L_ml = -ops.convert_to_numpy(model.log_probability(source, label))
    close(mixed["loss"][0], 0.25 * np.array(found) + 0.75 * L_ml)
