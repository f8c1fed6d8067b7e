"""Guided alignment: the loss, its gradient, and who can be guided."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny

from keras_attention import models
from keras_attention.models import catalog, seq2seq
from keras_attention.training import losses, objectives

V = 13
each_guided = pytest.mark.parametrize("name", catalog.GUIDED)
# Their attention is a rule, or a draw, or they have another objective.
NOT_GUIDED = {"diagonal_rnnsearch", "hard_rnnsearch"}
MONOTONIC = "monotonic_rnnsearch"


class Fixed:
    """A model that gives the logits and the attention that it was told."""

    def __init__(self, logits, attention_weights):
        self.answer = logits, attention_weights

    def call_with_attention(self, inputs, training):
        return self.answer


def drawn(rng, *shape):
    weights = rng.random(shape).astype("float32")
    return weights / weights.sum(axis=-1, keepdims=True)


LABELS = np.array([[5, 6, 7, 3], [8, 3, 0, 0], [0, 0, 0, 0]])
# Of two sources for one label, of two labels for one source, and of nothing.
LINKS = [[(0, 0), (2, 0), (1, 1), (1, 2)], [(4, 0)], []]
SHARES = np.zeros((3, 4, 5))
SHARES[0, 0, [0, 2]] = 0.5
SHARES[0, [1, 2], 1] = 1
SHARES[1, 0, 4] = 1


def rows_of(links):
    """Links as a model gets them, padded."""
    rows = [[place for link in row for place in link] for row in links]
    width = max(map(len, rows))
    return np.array([row + [-1] * (width - len(row)) for row in rows], "int32")


@pytest.mark.parametrize("heads", [(), (3,)])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
def test_the_loss_is_that_of_a_loop(rng, heads, label_smoothing):
    logits = rng.normal(size=(3, 4, V)).astype("float32")
    attention_weights = drawn(rng, 3, *heads, 4, 5)
    real = LABELS > 0
    inputs = {"links": rows_of(LINKS)}
    objective = objectives.GuidedObjective(0.7, label_smoothing)
    measured = objective(
        Fixed(logits, attention_weights), (inputs, LABELS, real / 6), True
    )
    assert tuple(measured) == objective.names
    mean = attention_weights.mean(axis=1) if heads else attention_weights
    for row, t in np.ndindex(3, 4):
        alignment = 0.0
        for s in range(5):
            alignment -= SHARES[row, t, s] * np.log(mean[row, t, s])
        log_p = tf.nn.log_softmax(logits[row, t]).numpy()
        q = np.full(V, label_smoothing / V)
        q[LABELS[row, t]] += 1 - label_smoothing
        expected = -np.sum(q * log_p) + 0.7 * alignment
        loss, counts = measured["loss"]
        assert float(loss[row, t]) == pytest.approx(expected, rel=1e-5)
        assert counts[row, t] == real[row, t]
        value, counts = measured["alignment"]
        assert float(value[row, t]) == pytest.approx(alignment, abs=1e-5)
        assert counts[row, t] == (SHARES[row, t].sum() > 0)


def test_the_gradient_pulls_attention_to_the_links(rng):
    """That of scores e is (a - a*) at a linked label, and else 0."""
    scores = tf.constant(rng.normal(size=(3, 4, 5)), "float32")
    with tf.GradientTape() as tape:
        tape.watch(scores)
        attention_weights = tf.nn.softmax(scores)
        loss = tf.reduce_sum(
            losses.attention_cross_entropy(attention_weights, SHARES)
        )
    linked = SHARES.sum(axis=-1, keepdims=True)
    expected = linked * attention_weights.numpy() - SHARES
    np.testing.assert_allclose(tape.gradient(loss, scores), expected, atol=1e-6)


def test_a_weight_of_0_has_a_finite_loss_and_gradient():
    weights = tf.constant([[[0.0, 1.0]]])
    with tf.GradientTape() as tape:
        tape.watch(weights)
        loss = losses.attention_cross_entropy(weights, np.array([[[1.0, 0.0]]]))
    assert 20 < float(loss[0, 0]) < 100
    assert np.isfinite(tape.gradient(loss, weights)).all()


def batch_of(links, num_rows=3):
    """Random pairs whose labels are real at the first places of `LABELS`."""
    rng = np.random.default_rng(1)
    source_ids = rng.integers(4, V, (num_rows, 5), "int32")
    source_ids[:, 4] = 3
    labels = rng.integers(4, V, (num_rows, 4), "int32")
    target_ids = np.roll(labels, 1, axis=1)
    target_ids[:, 0] = 2
    weights = np.ones(labels.shape, "float32") / labels.size
    inputs = {"source_ids": source_ids, "target_ids": target_ids}
    return {**inputs, "links": rows_of(links)}, labels, weights


def make_model(name):
    keras.utils.set_random_seed(1)
    model = tiny.create(name, V)
    model.build()
    return model


def loss_of(model, batch):
    objective = objectives.GuidedObjective(0.7)
    values, counts = objective(model, batch, False)["loss"]
    return tf.reduce_sum(values * counts) / tf.reduce_sum(counts)


# Without noise, the weights of the monotonic one are 0 and 1.
@pytest.mark.parametrize("name", sorted({*catalog.GUIDED} - {MONOTONIC}))
@pytest.mark.fast_for("rnnsearch", "transformer")
def test_the_gradient_is_that_of_finite_differences(name):
    model, batch = make_model(name), batch_of(LINKS)
    weights = [variable.value for variable in model.trainable_variables]
    with tf.GradientTape() as tape:
        loss = loss_of(model, batch)
    gradients = [
        tf.convert_to_tensor(gradient)
        for gradient in tape.gradient(loss, weights, None, "zero")
    ]
    norm = float(tf.linalg.global_norm(gradients))
    # Short: maxout has a kink wherever two of its inputs are equal.
    step = 3e-4 / norm
    start = [weight.numpy() for weight in weights]

    def moved(by):
        for variable, first, gradient in zip(
            model.trainable_variables, start, gradients, strict=True
        ):
            variable.assign(first + by * gradient)
        return float(loss_of(model, batch))

    slope = (moved(step) - moved(-step)) / (2 * step)
    assert slope == pytest.approx(norm**2, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rnnsearch"])
def test_micro_batches_and_replicas_are_exact(step_of, name):
    links = [*LINKS, [(3, 3)], [], [(0, 1), (1, 1), (2, 1)], [(1, 0)], [(0, 2)]]
    batch = batch_of(links, 8)
    objective = objectives.GuidedObjective(0.7)

    def create():
        return make_model(name)

    whole, logs = step_of(objective, create, batch)
    parts, other = step_of(objective, create, batch, 2, 2)
    for key in ("loss", "alignment", "perplexity"):
        assert other[key] == pytest.approx(logs[key], rel=1e-5)
    for ours, expected in zip(parts, whole, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_without_any_link_it_is_cross_entropy():
    model, batch = make_model("rnnsearch"), batch_of([[], [], []])
    assert batch[0]["links"].shape == (3, 0)
    guided = objectives.GuidedObjective()(model, batch, False)
    plain = objectives.TokenObjective()(model, batch, False)
    for name, (values, counts) in plain.items():
        np.testing.assert_allclose(guided[name][0], values, rtol=1e-5)
        np.testing.assert_array_equal(guided[name][1], counts)
    assert not np.any(guided["alignment"][1])


@each_guided
@pytest.mark.fast_for("rnnsearch", "transformer")
def test_attention_of_a_call_is_that_of_the_steps(name):
    model, (inputs, _, _) = make_model(name), batch_of(LINKS)
    logits, attention_weights = model.call_with_attention(inputs)
    assert attention_weights.dtype == "float32"
    np.testing.assert_allclose(logits, model(inputs), atol=1e-5)
    memory = model.encode(inputs["source_ids"])
    state = model.initial_state(memory, 4)
    for t in range(4):
        token_ids = inputs["target_ids"][:, t]
        _, state, expected = model.step(token_ids, memory, state)
        np.testing.assert_allclose(
            attention_weights[..., t, :], expected, atol=1e-5
        )


@each_guided
@pytest.mark.slow
def test_attention_has_the_dropout_of_the_call(name):
    """The same draws give the same logits."""
    (inputs, _, _) = batch_of(LINKS)
    model = tiny.create(name, V, dropout=0.4)
    model.build()

    def drawn_with(call):
        for layer in model._flatten_layers():
            if hasattr(layer, "seed_generator"):
                layer.seed_generator.state.assign([0, 3])
        return call(inputs, training=True)

    expected = drawn_with(model)
    logits, _ = drawn_with(model.call_with_attention)
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    assert not np.allclose(model(inputs), expected, atol=1e-3)


def test_the_catalogue_knows_who_can_be_guided():
    for name in tiny.names("translation"):
        kind = getattr(models, catalog.CATALOG[name].class_name)
        base = seq2seq.Seq2Seq.call_with_attention
        is_able = kind.call_with_attention is not base
        assert (name in catalog.GUIDED) == (is_able and name not in NOT_GUIDED)
        if name in catalog.GUIDED:
            assert kind.objective is None
