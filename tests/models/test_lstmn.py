"""The long short-term memory-network: its equations and what it recalls."""

import keras
import numpy as np
import pytest

from keras_attention import models
from keras_attention.tokens import START

V, EMBEDDING, UNITS = 23, 7, 11
TOKEN_IDS = np.array([[2, 19, 5, 9, 7], [2, 22, 4, 0, 0]])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def read(model, tokens):
    """Logits and weights of one text: Cheng et al. 2016, equations 4 to 9."""
    embeddings = model.embedding.get_weights()[0]
    w_query, w_h, v = model.attention.get_weights()
    w_x, w_summary = np.split(w_query, [EMBEDDING])
    w_in, w_hidden, b = model.cell.get_weights()
    w_o, b_o = model.output_projection.get_weights()
    hiddens, memories, summary = [], [], np.zeros(UNITS)
    logits, looks = [], []
    for token in tokens:
        x = embeddings[token]
        scores = [
            (v[:, 0] @ np.tanh(h @ w_h + x @ w_x + summary @ w_summary))
            for h in hiddens
        ]
        weights = np.exp(scores) / np.sum(np.exp(scores))
        summary, memory = np.zeros(UNITS), np.zeros(UNITS)
        for s, h, c in zip(weights, hiddens, memories, strict=True):
            summary, memory = summary + s * h, memory + s * c
        i, f, g, o = np.split(x @ w_in + summary @ w_hidden + b, 4)
        memory = sigmoid(f) * memory + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(memory)
        hiddens.append(hidden)
        memories.append(memory)
        logits.append(hidden @ w_o + b_o)
        looks.append([*weights, *[0] * (len(tokens) - len(weights))])
    return logits, looks


def test_equals_the_equations(randomize):
    model = randomize(models.LSTMN(V, EMBEDDING, UNITS))
    logits = model(TOKEN_IDS)
    weights = model.read(TOKEN_IDS)
    for row, tokens in enumerate(TOKEN_IDS):
        expected, looks = read(model, tokens)
        np.testing.assert_allclose(logits[row], expected, atol=1e-5)
        np.testing.assert_allclose(weights[row], looks, atol=1e-5)


def test_two_tokens_are_read_as_an_lstm_reads_them(randomize):
    """The second can only look at the first."""
    model = randomize(models.LSTMN(V, EMBEDDING, UNITS))
    peer = keras.layers.LSTM(UNITS, return_sequences=True)
    peer.build((None, None, EMBEDDING))
    peer.set_weights(model.cell.get_weights())
    hidden = peer(model.embedding(TOKEN_IDS[:, :2]))
    expected = model.output_projection(hidden)
    np.testing.assert_allclose(model(TOKEN_IDS[:, :2]), expected, atol=1e-5)


def formula(v, e, u):
    """Embeddings, the score, an LSTM, the softmax."""
    score = (e + u) * u + u * u + u
    lstm = 4 * (e + u + 1) * u
    return v * e + score + lstm + (u + 1) * v


@pytest.mark.parametrize(
    "size, e, u", [("mini", 64, 128), ("tiny", 150, 300), ("base", 150, 300)]
)
def test_sizes(size, e, u, without_memory):
    """The paper's: words 150 wide, 300 hidden units (section 5.1).

    So has the first author's code for the Penn Treebank:
    https://github.com/cheng6076/mlm, train_baseline.lua.
    """
    with without_memory():
        model = models.LSTMN.from_size(size, 10_000)
        model.build()
    assert model.count_params() == formula(10_000, e, u)


NUMBERS = 8
# FIRST + n: number n. FIRST_PAIR + k * NUMBERS + v: the pair (k, v).
FIRST = START + 2
FIRST_PAIR = FIRST + NUMBERS


def recall(rng, count):
    """START, a pair (k, v) for each k in any order, and one k. Then its v."""
    keys = rng.permuted(np.tile(np.arange(NUMBERS), (count, 1)), axis=1)
    values = rng.integers(0, NUMBERS, (count, NUMBERS))
    rows, asked = np.arange(count), rng.integers(0, NUMBERS, count)
    token_ids = np.concatenate(
        [
            np.full((count, 1), START),
            FIRST_PAIR + keys * NUMBERS + values,
            FIRST + keys[rows, asked, None],
        ],
        axis=1,
    )
    return token_ids.astype("int32"), FIRST + values[rows, asked]


@pytest.mark.slow
def test_recalls_what_an_lstm_forgets():
    """Eight pairs. An LSTM of as many parameters, trained alike, fails."""
    size = FIRST_PAIR + NUMBERS**2
    token_ids, answers = recall(np.random.default_rng(1), 60_000)
    held_out, truth = recall(np.random.default_rng(2), 1_000)
    candidates = {
        "lstmn": models.LSTMN(size, 16, 14),
        "lstm": models.RNNLanguageModel(size, 16, 16, 1, dropout=0.0),
    }
    accuracy = {}
    for name, model in candidates.items():
        model.build()
        inputs = keras.Input((None,), dtype="int32")
        last = keras.Model(inputs, model(inputs)[:, -1])
        last.compile(
            keras.optimizers.Adam(1e-2, global_clipnorm=1.0),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            jit_compile=False,
        )
        last.fit(token_ids, answers, batch_size=100, epochs=8, verbose=0)
        found = np.argmax(last.predict(held_out, verbose=0), axis=-1)
        accuracy[name] = np.mean(found == truth)
    counts = [model.count_params() for model in candidates.values()]
    assert counts[0] < 1.05 * counts[1]
    assert accuracy["lstmn"] >= 0.99
    assert accuracy["lstm"] < 0.7
