"""RNNsearch with a cursor, against all ways that it can go."""

import itertools

import keras
import numpy as np
import pytest
import test_rnn_transducer
import test_rnnsearch
from keras import ops

from keras_attention import models
from keras_attention.tokens import END

V, SOURCE_V, EMBEDDING, UNITS, READOUT = 23, 19, 7, 11, 5
INPUTS = {
    "source_ids": np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]]),
    "target_ids": np.array([[2, 19, 5, 9, 8], [2, 22, 4, 7, 6]]),
}


@pytest.fixture
def model(randomize):
    model = models.MonotonicRNNSearch(
        V, SOURCE_V, EMBEDDING, UNITS, READOUT, noise=0.0
    )
    model = randomize(model, 1)
    # Of either sign, not all 0 or 1.
    model.attention.scale.assign(3.0)
    model.attention.level.assign(-0.3)
    return model


def energies(model, s, h):
    w = {w.name: np.array(w) for w in model.attention.weights}
    v = w["score_vector"][:, 0]
    hidden = [
        np.tanh(w["query_kernel"].T @ s + w["key_kernel"].T @ h_j + w["bias"])
        for h_j in h
    ]
    e = w["scale"] * np.array(hidden) @ (v / np.linalg.norm(v))
    return e + w["level"]


def soft(model, s, h, before):
    """a_i: from each place where the cursor may be, each way on to a stop."""
    p = 1 / (1 + np.exp(-energies(model, s, h)))
    p[-1] = 1  # END
    start = before[-1] if before else np.eye(len(h))[0]
    found = np.zeros(len(h))
    for first, there in enumerate(start):
        for j in range(first, len(h)):
            found[j] += there * p[j]
            there *= 1 - p[j]
    return found


def hard(model, s, h, before):
    """The first place from the last stop on whose e is above 0."""
    e = energies(model, s, h)
    place = int(np.argmax(before[-1])) if before else 0
    while e[place] <= 0 and place < len(h) - 1:
        place += 1
    return np.eye(len(h))[place]


@pytest.mark.parametrize("training", [True, False])
def test_equals_the_equations(model, training):
    """All ways in training, and one way elsewhere."""
    logits = model(INPUTS, training=training)
    places = set()
    for row, length in enumerate([5, 3]):
        expected, attention = test_rnnsearch.translate(
            model,
            INPUTS["source_ids"][row, :length],
            INPUTS["target_ids"][row],
            soft if training else hard,
        )
        np.testing.assert_allclose(logits[row], expected, atol=1e-4)
        if training:
            assert np.all(np.max(attention, axis=1)[1:] < 0.999)
        places |= {*np.argmax(attention, axis=1)}
    assert len(places) > 1


def test_noise_is_for_training_alone(randomize):
    model = randomize(models.MonotonicRNNSearch(V, SOURCE_V, 7, 11, 5))
    still = model(INPUTS)
    np.testing.assert_array_equal(model(INPUTS, training=False), still)
    first, second = (model(INPUTS, training=True) for _ in range(2))
    assert np.abs(first - second).max() > 1e-4


def test_the_cursor_never_goes_back(randomize, rng):
    model = randomize(models.MonotonicRNNSearch(V, V, 7, 11, 5), 1)
    model.attention.scale.assign(3.0)
    model.attention.level.assign(-1.0)
    source_ids = rng.integers(4, V, (50, 9))
    memory = model.encode(source_ids)
    state, places = model.initial_state(memory), []
    for token_ids in rng.integers(4, V, (6, 50)):
        _, state, weights = model.step(token_ids, memory, state)
        assert {*np.unique(weights)} == {0, 1}
        places.append(np.argmax(weights, axis=1))
    assert (np.diff(places, axis=0) >= 0).all()
    assert (np.diff(places, axis=0) > 0).any()


def test_noise_below_0_is_refused():
    with pytest.raises(ValueError, match="`noise` must be at least 0"):
        models.MonotonicRNNSearch(V, noise=-1.0)


def of_single_words(model_class):
    """The model, but an annotation knows its own token alone."""

    class OfSingleWords(model_class):
        def encode(self, source_ids, training=None):
            memory = super().encode(source_ids, training)
            x = self.source_embedding(source_ids)
            # Times 0: the encoder has gradients all the same.
            annotations = 0 * memory["annotations"]
            annotations += ops.concatenate([x, x], axis=-1)
            return {
                **memory,
                "annotations": annotations,
                "keys": self.attention.project(annotations),
                "backward": 0 * memory["backward"],
            }

    return OfSingleWords


@pytest.mark.slow
def test_a_cursor_cannot_turn_a_pair_round():
    """Twenty-one is one-and-twenty: of N tens and N ones, the ones come first.

    Whether the cursor stops at the tens depends on these alone. If it stops at
    k of the N tens, it writes ones that it does not know: k texts are right. It
    passes the others and never sees them: at most one text for each of the N
    ones is right. Attention that may go back has all right, and with a
    recurrent encoder the cursor has, too: each annotation knows both.
    """
    keras.utils.set_random_seed(1)
    num_words, width = 8, 64
    tens = END + 1 + np.arange(num_words)
    pairs = np.array([*itertools.product(tens, tens + num_words)])
    source_ids = np.pad(pairs, ((0, 0), (0, 1)), constant_values=END)

    def share_right(model_class, texts, num_steps=300):
        model = model_class(
            END + 1 + 2 * num_words,
            embedding_dim=width,
            units=width,
            readout_dim=32,
        )
        _, right = test_rnn_transducer.trained(
            model, source_ids, texts, num_steps
        )
        return right

    turned = pairs[:, ::-1]
    cursor = of_single_words(models.MonotonicRNNSearch)
    # The noise of training lets it decide late.
    assert share_right(cursor, pairs, 1000) == 1
    assert share_right(cursor, turned) <= (2 * num_words - 1) / num_words**2
    assert share_right(of_single_words(models.RNNSearch), turned) == 1
    assert share_right(models.MonotonicRNNSearch, turned) == 1
