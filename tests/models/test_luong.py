import itertools

import numpy as np
import pytest

from keras_attention import models

V, SOURCE_V, EMBEDDING, UNITS = 23, 19, 7, 10


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(x, state, weights):
    h, c = state
    kernel, recurrent, bias = weights
    i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def score(scoring, h_t, h_s, weights):
    """Equation 8; "general" divided by the width."""
    if scoring == "dot":
        return h_t @ h_s
    if scoring == "general":
        w_a = weights[0] / UNITS
        return h_t @ (w_a.T @ h_s)
    query_kernel, key_kernel, v = weights
    return v[:, 0] @ np.tanh(query_kernel.T @ h_t + key_kernel.T @ h_s)


def read(inputs, weights):
    """An LSTM's hidden states and its last state."""
    units = weights[1].shape[0]
    state, hidden = (np.zeros(units), np.zeros(units)), []
    for x in inputs:
        state = lstm(x, state, weights)
        hidden.append(state[0])
    return hidden, state


def encode(model, source):
    """All top states and each layer's last; two directions side by side."""
    xs = [model.source_embedding.get_weights()[0][token] for token in source]
    states = []
    for layer in model.encoder:
        weights = layer.get_weights()
        xs_forward, state = read(xs, weights[:3])
        if len(weights) == 3:
            xs = xs_forward
        else:
            xs_backward, (h, c) = read(xs[::-1], weights[3:])
            xs = np.concatenate([xs_forward, xs_backward[::-1]], axis=1)
            state = np.append(state[0], h), np.append(state[1], c)
        states.append(state)
    return xs, states


def align(model, kind, t, h_t, scores):
    """Global: equation 7. Local: section 3.2, around the place p_t."""
    if kind == "global":
        return np.exp(scores) / np.exp(scores).sum()
    place, width = t, model.attention.half_width
    if kind == "local-p":
        w_p, place_vector = model.attention.get_weights()[-2:]
        share = np.tanh(h_t @ w_p) @ (place_vector / UNITS)
        place = len(scores) * sigmoid(share).item()
    apart = np.arange(len(scores)) - place
    e = np.exp(scores) * (abs(apart) <= width)
    a = e / max(e.sum(), 1e-30)
    return a * np.exp(-2 * (apart / width) ** 2) if kind == "local-p" else a


def translate(model, scoring, input_feeding, source, target, kind="global"):
    """Logits and attention of one pair: the equations of the class."""
    top, states = encode(model, source)
    attention_vector = np.zeros(UNITS)
    logits, attention = [], []
    for t, token in enumerate(target):
        x = model.target_embedding.get_weights()[0][token]
        if input_feeding:
            x = np.concatenate([x, attention_vector])
        for n, cell in enumerate(model.decoder):
            states[n] = lstm(x, states[n], cell.get_weights())
            x = states[n][0]
        weights = model.attention.get_weights()
        scores = [score(scoring, x, h_s, weights) for h_s in top]
        a = align(model, kind, t, x, np.array(scores))
        c = sum(a_s * h_s for a_s, h_s in zip(a, top, strict=True))
        (w_c,) = model.attention_projection.get_weights()
        attention_vector = np.tanh(np.concatenate([c, x]) @ w_c)  # 5
        w_s, b = model.output_projection.get_weights()
        logits.append(attention_vector @ w_s + b)  # 6
        attention.append(a)
    return logits, attention


@pytest.mark.parametrize(
    ("scoring", "input_feeding", "bidirectional"),
    [
        *itertools.product(
            ["dot", "general", "concat"], [True, False], [False]
        ),
        ("general", True, True),
    ],
)
def test_equals_the_equations(randomize, scoring, input_feeding, bidirectional):
    model = randomize(
        models.Luong(
            V,
            SOURCE_V,
            EMBEDDING,
            UNITS,
            num_layers=2,
            scoring=scoring,
            input_feeding=input_feeding,
            bidirectional=bidirectional,
        )
    )
    source_ids = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])
    target_ids = np.array([[2, 19, 5], [2, 22, 4]])
    logits = model({"source_ids": source_ids, "target_ids": target_ids})
    memory = model.encode(source_ids)
    state = model.initial_state(memory)
    expected = [
        translate(
            model,
            scoring,
            input_feeding,
            source_ids[row, :length],
            target_ids[row],
        )
        for row, length in enumerate([5, 3])
    ]
    for row in range(2):
        np.testing.assert_allclose(logits[row], expected[row][0], atol=1e-5)
    for t in range(3):
        _, state, weights = model.step(target_ids[:, t], memory, state)
        for row, length in enumerate([5, 3]):
            np.testing.assert_allclose(
                weights[row, :length], expected[row][1][t], atol=1e-5
            )


@pytest.mark.parametrize("kind", ["local-m", "local-p"])
@pytest.mark.parametrize("scoring", ["dot", "general"])
def test_local_attention_equals_the_equations(randomize, kind, scoring):
    model = randomize(
        models.Luong(
            V,
            SOURCE_V,
            EMBEDDING,
            UNITS,
            num_layers=2,
            scoring=scoring,
            attention=kind,
            half_width=1.5,
        )
    )
    clone = models.Luong.from_config(model.get_config())
    assert clone.attention.get_config() == model.attention.get_config()
    source_ids = np.array([[5, 7, 11, 13, 3], [17, 3, 0, 0, 0]])
    target_ids = np.array([[2, 19, 5, 8], [2, 22, 4, 6]])
    logits = model({"source_ids": source_ids, "target_ids": target_ids})
    memory = model.encode(source_ids)
    state = model.initial_state(memory)
    steps = []
    for t in range(4):
        one, state, weights = model.step(target_ids[:, t], memory, state)
        steps.append((one, weights))
    for row, length in enumerate([5, 2]):
        source = source_ids[row, :length]
        expected = translate(
            model, scoring, True, source, target_ids[row], kind
        )
        np.testing.assert_allclose(logits[row], expected[0], atol=1e-5)
        for t in range(4):
            one, weights = steps[t]
            np.testing.assert_allclose(one[row], expected[0][t], atol=1e-5)
            np.testing.assert_allclose(
                weights[row, :length], expected[1][t], atol=1e-5
            )
    # The last window of the short row is beside it.
    assert kind == "local-p" or not np.any(steps[3][1][1])


def test_local_p_of_infinite_width_is_global(randomize):
    ids = {
        "source_ids": np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]]),
        "target_ids": np.array([[2, 19, 5], [2, 22, 4]]),
    }
    sizes = (V, SOURCE_V, EMBEDDING, UNITS)
    local = models.Luong(
        *sizes, num_layers=1, attention="local-p", half_width=1e6
    )
    everywhere = models.Luong(*sizes, num_layers=1)
    randomize(local)
    everywhere.build()
    of_global = {w.path.partition("/")[2] for w in everywhere.weights}
    everywhere.set_weights(
        [
            value
            for weight, value in zip(
                local.weights, local.get_weights(), strict=True
            )
            if weight.path.partition("/")[2] in of_global
        ]
    )
    np.testing.assert_allclose(local(ids), everywhere(ids), atol=1e-5)


def test_another_attention_is_refused():
    with pytest.raises(ValueError, match="Received: attention='near'"):
        models.Luong(V, attention="near")


def test_dropout_between_layers_is_one_mask_a_sentence(monkeypatch):
    model = models.Luong(V, SOURCE_V, EMBEDDING, 101, 3, dropout=0.5)
    ids = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])
    inputs = {"source_ids": ids, "target_ids": ids}
    model(inputs)
    original, seen = model._advance, []

    def advance(embedded, memory, state, dropout_masks):
        seen.append(dropout_masks)
        return original(embedded, memory, state, dropout_masks)

    monkeypatch.setattr(model, "_advance", advance)
    for training, values in ((False, {1.0}), (True, {0.0, 2.0})):
        seen.clear()
        model(inputs, training=training)
        assert all(masks is seen[0] for masks in seen)
        assert len(seen[0]) == 2
        for mask in seen[0]:
            assert mask.shape == (2, 101)
            assert set(np.unique(mask)) == values


def test_odd_units_for_two_directions_are_refused():
    with pytest.raises(ValueError, match="Received: units=11"):
        models.Luong(V, units=11, bidirectional=True)


def test_another_scoring_is_refused():
    with pytest.raises(ValueError, match="Received: scoring='cosine'"):
        models.Luong(V, scoring="cosine")


def test_papers_size(without_memory):
    """Section 4.1: 50,000 words a language, 4 x 1000, global "general".

    The paper prints no total, and its equations no biases.
    """
    v, n, num_layers = 50_000, 1000, 4
    expected = (
        2 * v * n  # The embeddings.
        + 2 * num_layers * 4 * (n * n + n * n)  # Both stacks.
        + 4 * n * n  # Input feeding doubles the first layer's input.
        + n * n  # W_a
        + 2 * n * n  # W_c
        + v * n  # W_s
    )
    biases = 2 * num_layers * 4 * n + v
    with without_memory():
        model = models.Luong.from_size("base", v, v)
        model.build()
    assert model.count_params() == expected + biases
    assert biases < 0.001 * expected
