"""The long short-term memory-network: its equations and what it recalls."""

import keras
import numpy as np
import pytest

from keras_attention import models
from keras_attention.models import lstmn
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
        model = getattr(lstmn, size)(10_000)
        model.build()
    assert model.count_params() == formula(10_000, e, u)


PAIRS, KEYS, VALUES = 4, 8, 8


def recall(rng, count):
    """START, pairs of key and value, and a key whose value is asked for."""
    first_value = START + 2 + KEYS
    keys = np.array(
        [rng.permutation(KEYS)[:PAIRS] for _ in range(count)], "int32"
    )
    values = rng.integers(0, VALUES, (count, PAIRS), "int32")
    asked = rng.integers(0, PAIRS, count)
    rows = np.arange(count)
    pairs = np.stack([keys + START + 2, values + first_value], axis=-1)
    token_ids = np.concatenate(
        [
            np.full((count, 1), START),
            pairs.reshape(count, -1),
            keys[rows, asked, None] + START + 2,
        ],
        axis=1,
    )
    return token_ids.astype("int32"), values[rows, asked] + first_value


@pytest.mark.slow
def test_recalls_what_an_lstm_forgets():
    """Of like parameters: the value of one key among four, unseen texts."""
    size = START + 2 + KEYS + VALUES
    token_ids, answers = recall(np.random.default_rng(1), 12_000)
    held_out, truth = recall(np.random.default_rng(2), 1_000)
    accuracy = {}
    candidates = {
        "lstmn": models.LSTMN(size, 16, 40),
        "lstm": models.RNNLanguageModel(size, 16, 48, 1, dropout=0.0),
    }
    for name, model in candidates.items():
        model.build()
        inputs = keras.Input((None,), dtype="int32")
        last = keras.Model(inputs, model(inputs)[:, -1])
        last.compile(
            keras.optimizers.Adam(5e-3, global_clipnorm=1.0),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            jit_compile=False,
        )
        last.fit(token_ids, answers, batch_size=100, epochs=20, verbose=0)
        found = np.argmax(last.predict(held_out, verbose=0), axis=-1)
        accuracy[name] = np.mean(found == truth)
    counts = [model.count_params() for model in candidates.values()]
    assert counts[0] < 1.05 * counts[1]
    assert accuracy["lstmn"] > accuracy["lstm"] + 0.1
