"""Rewards beside a loop, and their gradient beside that of every text."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import decoding, models
from keras_attention.models import self_critical
from keras_attention.tokens import END, PAD, START

V, T = 6, 3
SOURCE, LABELS = [4, 5, END], [5, 4, END]


@pytest.fixture
def model(randomize):
    return randomize(
        models.IntraAttentionSummarizer(
            V, embedding_dim=2, units=2, reward_weight=0.5
        ),
        scale=1,
    )


def common_subsequence(x, y):
    """The length of the longest one, by its definition."""
    lengths = np.zeros((len(x) + 1, len(y) + 1), "int32")
    for i, j in np.ndindex(len(x), len(y)):
        lengths[i + 1, j + 1] = (
            lengths[i, j] + 1
            if x[i] == y[j]
            else max(lengths[i, j + 1], lengths[i + 1, j])
        )
    return lengths[-1, -1]


def padded(rows, width):
    return np.array([[*row, *[PAD] * (width - len(row))] for row in rows])


def test_common_subsequences(rng):
    texts = [rng.integers(4, 8, rng.integers(0, 9)) for _ in range(40)]
    others = [rng.integers(4, 8, rng.integers(0, 7)) for _ in range(40)]
    found = self_critical.longest_common_subsequence(
        padded(texts, 9), padded(others, 7)
    )
    expected = list(map(common_subsequence, texts, others))
    np.testing.assert_array_equal(found, expected)


def test_rouge_l():
    """Lin 2004: "police kill the gunman" and "police killed the gunman"."""
    police, kill, killed, the, gunman = range(4, 9)
    texts = [[police, kill, the, gunman, END], [END], [END], [gunman, police]]
    references = [
        [police, killed, the, gunman, END],
        [END],
        [the, END],
        [police, gunman, END],
    ]
    found = self_critical.rouge_l(padded(texts, 6), padded(references, 5))
    np.testing.assert_allclose(found, [3 / 4, 1, 0, 1 / 2])


def test_greedy_texts_are_those_of_the_search(model, rng):
    sources = padded(
        [[*rng.integers(4, V, length), END] for length in (1, 3, 5)], 7
    )
    memory = model.encode(sources)
    result = decoding.greedy_search(
        model.step,
        memory,
        model.initial_state(memory, 6),
        sources != PAD,
        np.full(3, 6),
        forbidden_ids=(PAD, START),
    )
    texts = np.array(self_critical.write(model, sources, 6))
    expected = np.array(result.ids)[:, 0]
    # A search ends a text at its limit; `write` leaves it open.
    for text, ids in zip(texts, expected, strict=True):
        count = np.sum(ids != PAD)
        if count < 6:
            np.testing.assert_array_equal(text[: len(ids)], ids)
        else:
            np.testing.assert_array_equal(text[:5], ids[:5])


def every_text():
    """All that may be written: to END, or T tokens."""
    tokens = [token for token in range(V) if token not in (PAD, START)]
    return sorted(
        {
            text[: text.index(END) + 1] if END in text else text
            for text in itertools.product(tokens, repeat=T)
        }
    )


def log_probability(model, text):
    """log p(text), of tokens but PAD and START."""
    logits = model(
        {
            "source_ids": np.array([SOURCE]),
            "target_ids": np.array([[START, *text[:-1]]]),
        }
    )
    may = np.ones(V, bool)
    may[[PAD, START]] = False
    log_p = tf.nn.log_softmax(tf.boolean_mask(logits, may, axis=2), axis=-1)
    places = [np.flatnonzero(may).tolist().index(token) for token in text]
    return tf.reduce_sum(tf.one_hot(places, may.sum()) * log_p[0])


def gradient_of(function, model):
    variables = [weight.value for weight in model.trainable_weights]
    with tf.GradientTape() as tape:
        loss = function()
    return loss, np.concatenate(
        [
            np.ravel(tf.convert_to_tensor(one))
            for one in tape.gradient(loss, variables)
        ]
    )


def test_the_mean_gradient_is_that_of_all_texts(model):
    """Of -r(text), over a batch of samples and over every text."""
    count = 20_000
    texts = every_text()
    pairs = [
        gradient_of(lambda text=text: log_probability(model, text), model)
        for text in texts
    ]
    p = np.exp([float(log_p) for log_p, _ in pairs])
    assert p.sum() == pytest.approx(1, abs=1e-5)
    gradients = np.array([gradient for _, gradient in pairs])
    references = padded([LABELS] * len(texts), T)
    rewards = self_critical.rouge_l(padded(texts, T), references).numpy()
    greedy = self_critical.write(model, np.array([SOURCE]), T)
    best = float(self_critical.rouge_l(greedy, np.array([LABELS]))[0])
    each = (best - rewards)[:, None] * gradients
    expected = p @ each
    # Whatever the greedy text has, its share is zero.
    np.testing.assert_allclose(
        expected, -p @ (rewards[:, None] * gradients), atol=1e-5
    )
    error = np.sqrt((p @ each**2 - expected**2) / count)
    sources, labels = (np.tile([row], (count, 1)) for row in (SOURCE, LABELS))
    _, found = gradient_of(
        lambda: tf.reduce_mean(
            self_critical.self_critical_loss(model, sources, labels)
        ),
        model,
    )
    assert np.all(np.abs(found - expected) <= 5 * error + 1e-5)
    assert np.max(np.abs(expected) / (error + 1e-5)) > 20


@pytest.mark.parametrize("training", [True, False])
def test_the_objective_mixes_reward_and_likelihood(model, training):
    """With one reward for all texts, the reward's part is zero."""
    sources = padded([SOURCE, [4, END]], 4)
    labels = padded([LABELS, [5, END]], 4)
    weights = (labels != PAD).astype("float32")
    weights[1] = 0  # A row that does not count.
    batch = {"source_ids": sources, "target_ids": labels}, labels, weights
    measured = self_critical.mixed_objective(
        model,
        batch,
        training,
        reward_weight=0.25,
        reward=lambda texts, references: tf.ones(2),
    )
    values, counts = measured["loss"]
    likelihood = -model.log_probability(sources, labels)
    share = 0.75 if training else 1
    np.testing.assert_allclose(values, share * likelihood, rtol=1e-5)
    np.testing.assert_array_equal(counts, [1, 0])


def test_the_models_objective_has_its_reward_weight(model):
    batch = (
        {"source_ids": np.array([SOURCE]), "target_ids": np.array([LABELS])},
        np.array([LABELS]),
        np.ones((1, T), "float32"),
    )
    model.seeds.state.assign([0, 1])
    values, _ = model.objective(batch, True)["loss"]
    model.seeds.state.assign([0, 1])
    expected = self_critical.mixed_objective(model, batch, True, 0.5)
    np.testing.assert_allclose(values, expected["loss"][0])
