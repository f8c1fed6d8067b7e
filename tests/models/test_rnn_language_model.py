"""The recurrent language model: its papers' equations and sizes."""

import math

import keras
import numpy as np
import pytest

from keras_attention import decoding, models
from keras_attention.data.embedded import sentences
from keras_attention.tokens import END, PAD, START
from keras_attention.training import losses

V, EMBEDDING, UNITS = 23, 7, 11
TOKEN_IDS = np.array([[2, 19, 5, 9, 7], [2, 22, 4, 0, 0]])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def simple(x, state, weights):
    """Mikolov et al. 2010, section 2, with tanh and a bias."""
    w, u, b = weights
    h = np.tanh(x @ w + state[0] @ u + b)
    return h, [h]


def lstm(x, state, weights):
    """Zaremba et al. 2014, section 3.1; Keras's order is i, f, g, o."""
    h, c = state
    w, u, b = weights
    i, f, g, o = np.split(x @ w + h @ u + b, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return h, [h, c]


def gru(x, state, weights):
    """Cho et al. 2014, with the reset gate after the matrix."""
    (h,) = state
    w, u = (np.split(matrix, 3, axis=1) for matrix in weights[:2])
    b, d = (np.split(bias, 3) for bias in weights[2])
    z = sigmoid(x @ w[0] + b[0] + h @ u[0] + d[0])
    r = sigmoid(x @ w[1] + b[1] + h @ u[1] + d[1])
    n = np.tanh(x @ w[2] + b[2] + r * (h @ u[2] + d[2]))
    h = z * h + (1 - z) * n
    return h, [h]


def factorized_lstm(x, state, weights):
    """Kuchaiev & Ginsburg 2017, section 2.2."""
    w_1, w_2, b = weights
    w, u = np.split(w_1 @ w_2, [len(x)])
    return lstm(x, state, [w, u, b])


def group_lstm(x, state, weights):
    """Kuchaiev & Ginsburg 2017, section 2.3: with one group, an LSTM."""
    (kernel,), (b,) = weights
    w, u = np.split(kernel, [len(x)])
    return lstm(x, state, [w, u, b])


EQUATIONS = {
    "rnn": (simple, 1),
    "gru": (gru, 1),
    "lstm": (lstm, 2),
    "factorized_lstm_5": (factorized_lstm, 2),
    "group_lstm_1": (group_lstm, 2),
}


def read(model, tokens, cell, num_layers, tied):
    """Logits of one text: the equations of the class."""
    equation, num_tensors = EQUATIONS[cell]
    embeddings = model.embedding.get_weights()[0]
    states = [[np.zeros(UNITS)] * num_tensors for _ in range(num_layers)]
    logits = []
    for token in tokens:
        x = embeddings[token]
        for index in range(num_layers):
            weights = model.recurrent_layers[index].get_weights()
            x, states[index] = equation(x, states[index], weights)
        if tied:
            logits.append([x @ row for row in embeddings])
        else:
            w, b = model.output_projection.get_weights()
            logits.append(x @ w + b)
    return logits


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("cell", EQUATIONS)
def test_equals_the_equations(cell, num_layers, tied, randomize):
    width = UNITS if tied else EMBEDDING
    model = randomize(
        models.RNNLanguageModel(
            V, width, UNITS, num_layers=num_layers, cell=cell, tied=tied
        )
    )
    logits = model(TOKEN_IDS)
    for row, tokens in enumerate(TOKEN_IDS):
        np.testing.assert_allclose(
            logits[row], read(model, tokens, cell, num_layers, tied), atol=1e-5
        )


def lstm_language_model(vocabulary_size, width, num_layers=2):
    """Weights of Zaremba's model: embeddings, LSTMs, softmax."""
    layer = 4 * (width * width + width * width + width)
    softmax = width * vocabulary_size + vocabulary_size
    return vocabulary_size * width + num_layers * layer + softmax


@pytest.mark.parametrize(
    "size, width, millions",
    [("small", 200, None), ("medium", 650, 20), ("large", 1500, 66)],
)
def test_papers_sizes(size, width, millions, without_memory):
    """Section 4.1: two layers of 200, 650 and 1500 units, 10,000 words.

    The paper prints no totals. Those in millions are what later papers write
    of it (Merity et al. 2016, https://arxiv.org/abs/1609.07843, table 2).
    """
    with without_memory():
        model = models.RNNLanguageModel.from_size(size, 10_000)
        model.build()
    assert model.count_params() == lstm_language_model(10_000, width)
    if millions:
        assert round(model.count_params() / 1e6) == millions


@pytest.mark.parametrize("size", ["mini", "tiny"])
def test_small_sizes(size, without_memory):
    with without_memory():
        model = models.RNNLanguageModel.from_size(size, V, units=13)
        model.build()
    assert model.get_config()["units"] == 13
    assert model.count_params() < 2e6


def test_tied_has_one_matrix_of_the_vocabulary():
    tied = models.RNNLanguageModel(V, UNITS, UNITS, tied=True)
    free = models.RNNLanguageModel(V, UNITS, UNITS)
    for model in (tied, free):
        model.build()
    assert free.count_params() - tied.count_params() == UNITS * V + V


def test_dropout_acts_between_layers_and_never_in_time(monkeypatch):
    """Zaremba et al. 2014, figure 2: one rate on L + 1 connections."""
    model = models.RNNLanguageModel(V, EMBEDDING, UNITS, num_layers=2)
    seen = []

    def record(x, training=None):
        if training:
            seen.append(tuple(x.shape))
        return x

    monkeypatch.setattr(model, "dropout", record)
    model(TOKEN_IDS)
    assert seen == []
    model(TOKEN_IDS, training=True)
    assert seen == [(2, 5, EMBEDDING), (2, 5, UNITS), (2, 5, UNITS)]
    assert all(
        layer.dropout == layer.recurrent_dropout == 0
        for layer in model.recurrent_layers
    )


def test_words_may_have_a_dropout_of_their_own():
    """With 0, the first LSTM reads them whole, and the logits change."""
    keras.utils.set_random_seed(1)
    arguments = {"num_layers": 1, "dropout": 0.5}
    whole = models.RNNLanguageModel(
        V, EMBEDDING, UNITS, embedding_dropout=0.0, **arguments
    )
    part = models.RNNLanguageModel(V, EMBEDDING, UNITS, **arguments)
    for model, is_whole in ((whole, True), (part, False)):
        first = model.initial_state(2)
        logits, ((state, _),) = model.advance(TOKEN_IDS, first)
        noisy_logits, ((noisy, _),) = model.advance(
            TOKEN_IDS, first, training=True
        )
        assert np.allclose(state, noisy) == is_whole
        assert not np.allclose(logits, noisy_logits)


def test_words_may_have_dropout_alone():
    model = models.RNNLanguageModel(
        V, EMBEDDING, UNITS, dropout=0.0, embedding_dropout=0.5
    )
    assert not np.allclose(model(TOKEN_IDS), model(TOKEN_IDS, training=True))
    copy = models.RNNLanguageModel.from_config(model.get_config())
    assert copy.embedding_dropout.rate == 0.5


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"cell": "cnn"}, "one of rnn, gru, lstm, .* Received: cell='cnn'"),
        ({"cell": "group_lstm"}, "a number at the end .* cell='group_lstm'"),
        ({"cell": "lstm_4"}, "a number at the end .* cell='lstm_4'"),
        ({"cell": "group_lstm_3"}, "`units` must be a multiple .* of 650, num"),
        ({"num_layers": 0}, "at least 1. Received: num_layers=0"),
        (
            {"embedding_dim": 7, "units": 11, "tied": True},
            "equal to units.* Received: embedding_dim=7, units=11",
        ),
    ],
)
def test_arguments_that_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        models.RNNLanguageModel(V, **arguments)


def ids_of(texts, words):
    """`token_ids` and `labels` of sentences."""
    longest = max(len(text.split()) for text in texts) + 1
    token_ids = np.full((len(texts), longest), PAD, "int32")
    labels = token_ids.copy()
    for row, text in enumerate(texts):
        ids = [words[word] for word in text.split()]
        token_ids[row, : len(ids) + 1] = [START, *ids]
        labels[row, : len(ids) + 1] = [*ids, END]
    return token_ids, labels


@pytest.mark.slow
# With the size's own dropout, 0.1, the simple cell stays 2.6 % above.
@pytest.mark.parametrize(
    ("cell", "dropout"),
    [
        ("rnn", 0.0),
        ("lstm", 0.1),
        ("gru", 0.1),
        ("factorized_lstm_32", 0.1),
        ("group_lstm_4", 0.1),
    ],
)
def test_learns_the_entropy_of_the_source(cell, dropout):
    """Within 2 %, from a part of the corpus; the best bigrams are 79 % off."""
    words = {word: END + 1 + i for i, word in enumerate(sentences.vocabulary())}
    corpus = sentences.generate(train=40_000)
    token_ids, labels = ids_of(corpus["train"], words)
    epochs, batch_size = 5, 64
    steps = epochs * math.ceil(len(labels) / batch_size)
    model = models.RNNLanguageModel.from_size(
        "mini", END + 1 + len(words), cell=cell, dropout=dropout
    )
    model.compile(
        keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(5e-3, steps),
            global_clipnorm=1.0,
        ),
        losses.TokenCrossEntropy(),
    )
    model.fit(
        token_ids, labels, batch_size=batch_size, epochs=epochs, verbose=0
    )
    token_ids, labels = ids_of(corpus["test"], words)
    log_probs = keras.ops.log_softmax(model.predict(token_ids, verbose=0))
    chosen = np.take_along_axis(np.array(log_probs), labels[..., None], -1)
    num_tokens = (labels != PAD).sum()
    loss = -chosen[..., 0][labels != PAD].sum() / num_tokens
    least = -sum(map(sentences.log_probability, corpus["test"])) / num_tokens
    assert least < loss < least + 0.02
    assert loss == pytest.approx(sentences.entropy_rate(), abs=0.02)
    # And what it writes are sentences.
    result = decoding.sampling_search(
        decoding.without_source(model.step),
        memory=(),
        state=model.initial_state(200, 30),
        source_mask=None,
        max_lengths=np.full(200, 30),
        seed=1,
    )
    names = {index: word for word, index in words.items()}
    texts = [
        " ".join(names[i] for i in row if i > END)
        for row in result.ids.numpy()[:, 0]
    ]
    right = [sentences.log_probability(text) > -math.inf for text in texts]
    assert np.mean(right) > 0.8
