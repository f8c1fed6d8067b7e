"""The self-attentive embedding: the paper's equations and its penalty."""

import keras
import numpy as np
import pytest

from keras_attention import models
from keras_attention.models import self_attentive_embedding
from keras_attention.tokens import END, PAD

V, CLASSES, UNITS, HOPS = 23, 5, 11, 2
# Planted words: two kinds of sixteen, among thirty others that say nothing.
KIND, FILLERS, LONGEST = 16, 30, 40
IDS = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])


def make(**arguments):
    return models.SelfAttentiveEmbedding(
        V,
        CLASSES,
        embedding_dim=7,
        units=UNITS,
        attention_units=13,
        num_hops=HOPS,
        hidden_dim=17,
        **arguments,
    )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(xs, layer):
    """States of one direction; Keras's gates are i, f, g, o."""
    w, u, b = layer.get_weights()
    h, c, states = np.zeros(UNITS), np.zeros(UNITS), []
    for x in xs:
        i, f, g, o = np.split(x @ w + h @ u + b, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return states


def read(model, tokens):
    """Logits and A of one text: the equations of the class."""
    xs = [model.embedding.get_weights()[0][token] for token in tokens]
    forward = lstm(xs, model.recurrence.forward_layer)
    backward = lstm(xs[::-1], model.recurrence.backward_layer)[::-1]
    h = np.concatenate([forward, backward], axis=1)  # [n, 2u]
    (w_1,) = model.attention_hidden.get_weights()
    (w_2,) = model.attention_scores.get_weights()
    a = []
    for hop in range(HOPS):
        scores = [np.tanh(h_t @ w_1) @ w_2[:, hop] for h_t in h]
        exponentials = np.exp(scores)
        a.append(exponentials / exponentials.sum())
    m = np.concatenate([row @ h for row in a])
    w, b = model.hidden.get_weights()
    y = np.maximum(m @ w + b, 0)
    w, b = model.output_projection.get_weights()
    return y @ w + b, np.array(a)


def penalty(a):
    """P, entry by entry."""
    total = 0
    for i, first in enumerate(a):
        for j, second in enumerate(a):
            product = sum(x * y for x, y in zip(first, second, strict=True))
            total += (product - (i == j)) ** 2
    return total


def test_equals_the_equations(randomize):
    model = randomize(make())
    logits, weights = model.attend({"source_ids": IDS})
    for row, tokens in enumerate(IDS):
        tokens = tokens[tokens > 0]
        expected, a = read(model, tokens)
        np.testing.assert_allclose(logits[row], expected, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(weights[row, :, : len(tokens)], a, atol=1e-5)


def test_the_penalty_is_a_loss_of_the_model(randomize):
    model = randomize(make(penalty=0.3, dropout=0.0))
    inputs = {"source_ids": IDS}
    _, weights = model.attend(inputs)
    expected = 0.3 * np.mean([penalty(a) for a in weights.numpy()])
    model(inputs, training=True)
    assert len(model.losses) == 1
    np.testing.assert_allclose(model.losses[0], expected, rtol=1e-5)
    # It belongs to training alone, and is not kept.
    model(inputs)
    assert model.losses == []


def test_hops_with_a_token_each_are_not_redundant():
    apart = np.eye(5)[None, [3, 1]]
    together = np.eye(5)[None, [3, 3]]
    redundancy = self_attentive_embedding.redundancy
    np.testing.assert_allclose(redundancy(apart), [0])
    # A A^T is all ones: two entries are wrong by 1.
    np.testing.assert_allclose(redundancy(together), [2])
    uniform = np.full((1, 2, 5), 0.2)
    np.testing.assert_allclose(
        redundancy(uniform), [2 * 0.8**2 + 2 * 0.2**2], rtol=1e-6
    )


def test_the_papers_sizes():
    """Sections 4.1 and 4.2, for reviews."""
    config = models.SelfAttentiveEmbedding.from_size("base", 23).get_config()
    assert (config["units"], config["attention_units"]) == (300, 350)
    assert (config["num_hops"], config["penalty"]) == (30, 1.0)
    assert (config["hidden_dim"], config["dropout"]) == (3000, 0.5)


def planted(rng, count):
    """Texts with a word of each kind; the label is which two; their places."""
    first, rows = END + 1, np.arange(count)
    lengths = rng.integers(30, LONGEST + 1, count)
    token_ids = first + 2 * KIND + rng.integers(0, FILLERS, (count, LONGEST))
    token_ids = np.pad(token_ids, [(0, 0), (0, 1)])
    token_ids[rows, lengths] = END
    token_ids[np.arange(LONGEST + 1) > lengths[:, None]] = PAD
    places = np.array([rng.permutation(length)[:2] for length in lengths])
    words = rng.integers(0, KIND, (count, 2))
    token_ids[rows[:, None], places] = first + words + [0, KIND]
    return token_ids.astype("int32"), words @ [KIND, 1], places


def forget(lstm):
    """Begins without memory, so that a state tells of its own word."""
    kernel, recurrent_kernel, bias = lstm.get_weights()
    bias[lstm.units : 2 * lstm.units] = -6.0
    lstm.set_weights([kernel, recurrent_kernel, bias])


@pytest.mark.slow
def test_two_hops_find_two_planted_words(rng):
    """The penalty comes after three epochs.

    From the start, it makes the hops sharp before they have found the words.
    """
    keras.utils.set_random_seed(1)
    token_ids, labels, _ = planted(rng, 16_000)
    inputs = {"source_ids": token_ids}
    held_out, truth, places = planted(rng, 1_000)
    model = models.SelfAttentiveEmbedding.from_size(
        "mini", END + 1 + 2 * KIND + FILLERS, num_classes=KIND**2, penalty=0.0
    )
    model.build()
    forget(model.recurrence.forward_layer)
    forget(model.recurrence.backward_layer)
    steps = 8 * len(labels) // 64
    optimizer = keras.optimizers.Adam(
        keras.optimizers.schedules.CosineDecay(
            0.0, steps, warmup_target=2e-3, warmup_steps=steps // 10
        ),
        global_clipnorm=1.0,
    )
    redundancy = []
    for penalty, epochs in ((0.0, 3), (1.0, 5)):
        model.penalty = penalty
        # Anew, as the penalty is a constant of the traced step.
        model.compile(
            optimizer,
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            jit_compile=False,
        )
        model.fit(inputs, labels, batch_size=64, epochs=epochs, verbose=0)
        logits, weights = model.attend({"source_ids": held_out})
        redundancy.append(np.mean(self_attentive_embedding.redundancy(weights)))
    assert redundancy[1] < 0.1 < redundancy[0]
    assert np.mean(np.argmax(logits, axis=1) == truth) >= 0.99
    found = np.sort(np.argmax(weights, axis=2), axis=1)
    right = (found == np.sort(places, axis=1)).all(axis=1)
    assert np.mean(right) >= 0.9
