"""RNNsearch that reads through a window, against its equations."""

import keras
import numpy as np
import pytest
import test_rnnsearch

from keras_attention import models

V, SOURCE_V, EMBEDDING, UNITS, READOUT, K = 23, 19, 7, 11, 5, 3
INPUTS = {
    "source_ids": np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]]),
    "target_ids": np.array([[2, 19, 5, 9], [2, 22, 4, 7]]),
}


@pytest.fixture
def model(randomize):
    model = models.WindowRNNSearch(
        *(V, SOURCE_V, EMBEDDING, UNITS, READOUT),
        num_components=K,
        step_size=0.7,
    )
    return randomize(model, 0.5)


def gliding():
    """A `look` of `test_rnnsearch`: equations 46 to 51, and its places."""
    places = []

    def look(model, s, h, before):
        kernel, bias = model.attention.get_weights()
        kappa = places[-1] if before else [-1.0] * K
        phi = np.zeros(len(h))
        moved = []
        for k in range(K):
            a, b, step = (
                s @ kernel[:, part * K + k] + bias[part * K + k]
                for part in range(3)
            )
            moved.append(kappa[k] + 0.7 * np.exp(step))
            for j in range(len(h)):
                distance = moved[k] - j
                phi[j] += np.exp(a) * np.exp(-np.exp(b) * distance**2)
        places.append(moved)
        return phi

    return look, places


def test_equals_the_equations(model):
    logits = model(INPUTS)
    memory = model.encode(INPUTS["source_ids"])
    state = model.initial_state(memory)
    expected = []
    for row, length in enumerate([5, 3]):
        look, places = gliding()
        source, target = (
            INPUTS["source_ids"][row, :length],
            INPUTS["target_ids"][row],
        )
        expected.append(
            (*test_rnnsearch.translate(model, source, target, look), places)
        )
        np.testing.assert_allclose(
            logits[row], expected[row][0], rtol=1e-5, atol=1e-4
        )
    # The paper's window is no distribution.
    assert np.ptp([phi.sum() for phi in expected[0][1]]) > 0.1
    for t in range(4):
        step_logits, state, weights = model.step(
            INPUTS["target_ids"][:, t], memory, state
        )
        for row, length in enumerate([5, 3]):
            want_logits, phi, places = (one[t] for one in expected[row])
            np.testing.assert_allclose(
                step_logits[row], want_logits, rtol=1e-5, atol=1e-4
            )
            np.testing.assert_allclose(state["places"][row], places, rtol=1e-4)
            np.testing.assert_allclose(
                weights[row, :length], phi / phi.sum(), atol=1e-4
            )


def test_the_window_never_goes_back(randomize, rng):
    model = randomize(models.WindowRNNSearch(V, V, 7, 11, 5), 0.5)
    source_ids = rng.integers(4, V, (50, 9))
    memory = model.encode(source_ids)
    state = model.initial_state(memory)
    found = [(state["places"][:, 0], np.zeros(50, int))]
    for token_ids in rng.integers(4, V, (8, 50)):
        _, state, weights = model.step(token_ids, memory, state)
        found.append((state["places"][:, 0], np.argmax(weights, axis=1)))
    places, largest = (np.array(one) for one in zip(*found, strict=True))
    assert (np.diff(places, axis=0) > 0).all()
    assert (np.diff(largest, axis=0) >= 0).all()
    assert (np.diff(largest, axis=0) > 0).any()


def test_two_gaussians_may_turn_two_words_round():
    """Both stand still, one at each word; the state says which is higher."""
    model = models.WindowRNNSearch(
        V, V, 7, 11, 5, num_components=2, step_size=1e-6
    )
    model.build()
    kernel, bias = np.zeros((11, 6)), np.array([0, 0, 2, 2, 0, 0])
    kernel[0, :2] = [-5, 5]
    model.attention.set_weights([kernel, bias])
    memory = model.encode(np.array([[5, 7]]))
    state = model.initial_state(memory)
    state["places"] = keras.ops.convert_to_tensor([[1.0, 0.0]])
    looked = []
    for hidden in (-1.0, 1.0):
        state["hidden"] = hidden * np.eye(1, 11, dtype="float32")
        _, state, weights = model.step(np.array([2]), memory, state)
        looked.append(int(np.argmax(weights)))
    assert looked == [1, 0]


def test_behind_the_source_it_reads_nothing(randomize):
    model = randomize(models.WindowRNNSearch(V, V, 7, 11, 5))
    memory = model.encode(INPUTS["source_ids"])
    state = model.initial_state(memory)
    state["places"] = state["places"] + 100.0
    logits, state, weights = model.step(np.array([2, 2]), memory, state)
    assert not np.any(state["context"])
    assert np.isfinite(logits).all()
    # What is told is a distribution all the same: END is nearest.
    np.testing.assert_allclose(weights, np.eye(5)[[4, 2]], atol=1e-6)


def test_an_untrained_window_passes_a_token_for_each_token():
    model = models.WindowRNNSearch(V, V, 7, 11, 5, step_size=2.0)
    model.build()
    model.attention.set_weights(
        [0 * weight for weight in model.attention.get_weights()]
    )
    memory = model.encode(INPUTS["source_ids"])
    state, places = model.initial_state(memory), []
    for _ in range(3):
        _, state, _ = model.step(np.array([2, 2]), memory, state)
        places.append(state["places"][:, 0])
    np.testing.assert_allclose(places, [[1, 1], [3, 3], [5, 5]])


@pytest.mark.parametrize(
    "arguments", [{"num_components": 0}, {"step_size": 0.0}]
)
def test_sizes_are_positive(arguments):
    with pytest.raises(ValueError, match="must be positive. Received: "):
        models.WindowRNNSearch(V, **arguments)
