"""The summariser beside its equations, written as loops."""

import numpy as np
import pytest

from keras_attention import models
from keras_attention.models import intra_attention_summarizer as paper
from keras_attention.tokens import END, PAD, START

V, EMBEDDING, UNITS = 9, 3, 5
SOURCES = np.array([[4, 5, 4, 6, END], [7, 8, END, PAD, PAD]], "int32")
TARGETS = np.array([[START, 6, 4, 8], [START, 5, 5, 7]], "int32")
INPUTS = {"source_ids": SOURCES, "target_ids": TARGETS}


@pytest.fixture
def model(randomize):
    return randomize(
        models.IntraAttentionSummarizer(
            V, embedding_dim=EMBEDDING, units=UNITS
        ),
        scale=1,
    )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


def lstm(inputs, weights, h, c):
    """Hochreiter and Schmidhuber's, with Keras's order of gates."""
    w, u, b = weights
    outputs = []
    for x in inputs:
        i, f, candidate, o = np.split(x @ w + h @ u + b, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(candidate)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs), h, c


def probabilities(model, source, target):
    """p(y_t) of one pair, [T, V], and alpha^e, [T, S]."""
    (embeddings,) = model.embedding.get_weights()
    zeros = np.zeros(UNITS)
    x = embeddings[source]
    layer = model.encoder
    forward, h, c = lstm(x, layer.forward_layer.get_weights(), zeros, zeros)
    backward, *last = lstm(
        x[::-1], layer.backward_layer.get_weights(), zeros, zeros
    )
    encoded = np.concatenate([forward, backward[::-1]], axis=1)
    h_d, _, _ = lstm(
        embeddings[target],
        model.decoder.get_weights(),
        np.concatenate([h, last[0]]),
        np.concatenate([c, last[1]]),
    )
    (w_e,), (w_d,) = (
        layer.get_weights()
        for layer in (model.temporal_query, model.decoder_query)
    )
    (w_proj,) = model.output_projection.get_weights()
    w_out = np.tanh(embeddings @ w_proj)  # Equation 13.
    b_out = model.output_bias.numpy()
    w_u, b_u = model.switch.get_weights()
    width, num_source = 2 * UNITS, len(source)
    e = np.zeros((len(target), num_source))
    p, alpha = np.zeros((len(target), V)), np.zeros_like(e)
    for t, h in enumerate(h_d):
        for i in range(num_source):  # Equations 1 to 4.
            e[t, i] = (h @ w_e) @ encoded[i] / np.sqrt(width)
        e_prime = np.exp(e[t])
        if t > 0:
            e_prime = e_prime / np.exp(e[:t]).sum(axis=0)
        alpha[t] = e_prime / e_prime.sum()
        c_e = sum(alpha[t, i] * encoded[i] for i in range(num_source))
        c_d = np.zeros(width)
        if t > 0:  # Equations 6 to 8.
            own = softmax(
                np.array([(h @ w_d) @ h_d[j] for j in range(t)])
                / np.sqrt(width)
            )
            c_d = sum(own[j] * h_d[j] for j in range(t))
        f = np.concatenate([h, c_e, c_d])
        generated = softmax(w_out @ f + b_out)  # Equation 9.
        u = sigmoid(f @ w_u + b_u)[0]  # Equation 11.
        for k in range(V):
            copied = alpha[t, source == k].sum()  # Equation 10.
            p[t, k] = u * copied + (1 - u) * generated[k]
    return p, alpha


def test_every_equation(model):
    logits = model(INPUTS).numpy()
    memory = model.encode(SOURCES)
    state = model.initial_state(memory, 4)
    weights = []
    for t in range(4):
        _, state, step_weights = model.step(TARGETS[:, t], memory, state)
        weights.append(step_weights)
    weights = np.stack(weights, axis=1)
    for row, length in enumerate((5, 3)):
        p, alpha = probabilities(model, SOURCES[row, :length], TARGETS[row])
        np.testing.assert_allclose(np.exp(logits[row]), p, atol=2e-6)
        np.testing.assert_allclose(weights[row, :, :length], alpha, atol=2e-6)


def test_logits_are_log_probabilities(model):
    p = np.exp(model(INPUTS).numpy())
    np.testing.assert_allclose(p.sum(axis=-1), 1, atol=1e-5)


def test_what_was_looked_at_has_less_weight():
    """Scores of 4 to 1 at each step.

    The first step looks 4 to 1. Then e' is 4/4 and 1/1: equal weights. The
    third step has the sums 8 and 2, and equal weights, too.
    """
    scores = np.log([[[4.0, 1.0]] * 3]).astype("float32")
    before, after = paper.past_scores(scores)
    np.testing.assert_allclose(
        np.exp(before[0, 1:]), [[4, 1], [8, 2]], rtol=1e-5
    )
    np.testing.assert_allclose(np.exp(after), [[12, 3]], rtol=1e-5)
    weights = paper.temporal_weights(scores, before, np.ones((1, 2), "bool"))
    expected = [[[0.8, 0.2], [0.5, 0.5], [0.5, 0.5]]]
    np.testing.assert_allclose(weights, expected, atol=1e-6)


def test_great_scores_do_not_overflow():
    """Their exponentials are no numbers of float32."""
    scores = np.array([[[900.0, 0.0], [900.0, 899.0], [0.0, 0.0]]], "float32")
    before, _ = paper.past_scores(scores)
    np.testing.assert_allclose(before[0, 1:], [[900, 0], [900.6931, 899]])
    weights = paper.temporal_weights(scores, before, np.ones((1, 2), "bool"))
    # The second step has e' of exp(0) and exp(899).
    np.testing.assert_allclose(
        weights[0], [[1, 0], [0, 1], [0.1551, 0.8449]], atol=1e-3
    )


def test_two_vocabularies_have_no_pointer(randomize):
    model = randomize(
        models.IntraAttentionSummarizer(
            V, 11, embedding_dim=EMBEDDING, units=UNITS
        )
    )
    assert model.switch is None
    joint = models.IntraAttentionSummarizer(
        V, embedding_dim=EMBEDDING, units=UNITS
    )
    joint.build()
    # Without the switch, its bias, and with the source's embeddings.
    difference = 11 * EMBEDDING - (6 * UNITS + 1)
    assert model.count_params() - joint.count_params() == difference


@pytest.mark.parametrize("reward_weight", [-0.1, 1.5])
def test_a_share_of_reward_is_a_share(reward_weight):
    with pytest.raises(ValueError, match="must be from 0 to 1"):
        models.IntraAttentionSummarizer(V, reward_weight=reward_weight)
