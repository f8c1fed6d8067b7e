"""Objectives of one's own: a reward, and what a trainer asks of each."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_attention import config as configuration
from keras_attention import models, tasks
from keras_attention.training import objectives, trainer

VOCABULARY = 7


class Policy(keras.Model):
    """Two tokens: p(y_1 | x) p(y_2 | y_1), by tables of logits."""

    def __init__(self):
        super().__init__()
        size = VOCABULARY, VOCABULARY
        rng = np.random.default_rng(0)
        self.first, self.second = (
            self.add_weight(
                shape=size,
                initializer=lambda shape, dtype: ops.convert_to_tensor(
                    rng.normal(size=shape), dtype
                ),
                name=name,
            )
            for name in ("first", "second")
        )
        self.seeds = keras.random.SeedGenerator(7)
        self.built = True

    def log_probability(self, x, y):
        """x [B], y [B, 2] -> [B]."""
        logits = (
            ops.take(self.first, x, axis=0),
            ops.take(self.second, y[:, 0], axis=0),
        )
        log_p = ops.log_softmax(ops.stack(logits, axis=1), axis=-1)
        return ops.sum(log_p * ops.one_hot(y, VOCABULARY), axis=(1, 2))

    def sample(self, x):
        """x [B] -> y [B, 2]."""
        tokens = []
        for table in (self.first, self.second):
            logits = ops.take(table, x, axis=0)
            x = keras.random.categorical(logits, 1, seed=self.seeds)[:, 0]
            tokens.append(x)
        return ops.stack(tokens, axis=1)


REWARDS = np.random.default_rng(3).normal(size=(VOCABULARY,) * 3)


class Reinforce:
    """The reward of a sample times its log-probability (Williams 1992)."""

    names = ("loss", "reward")

    def __call__(self, model, batch, training):
        x, _, counts = batch
        y = model.sample(x)
        rewards = ops.convert_to_tensor(REWARDS.astype("float32"))
        index = (x * VOCABULARY + y[:, 0]) * VOCABULARY + y[:, 1]
        reward = ops.take(ops.reshape(rewards, (-1,)), index)
        loss = -reward * model.log_probability(x, y)
        return {"loss": (loss, counts), "reward": (reward, counts)}

    def results(self, means):
        return {"reward": means["reward"]}


@pytest.mark.parametrize("replicas, micro_batches", [(1, 1), (2, 2)])
def test_the_mean_gradient_of_a_reward_is_that_of_all_samples(
    step_of, replicas, micro_batches
):
    num_rows = 20_000
    x = np.arange(num_rows, dtype="int32") // 4 % 2 + 2
    counts = np.ones(num_rows, "float32")
    steps, logs = step_of(
        Reinforce(), Policy, (x, x, counts), replicas, micro_batches
    )
    # Every sample of every x: its probability, reward and gradient.
    model = Policy()
    rows = np.array(list(np.ndindex(2, VOCABULARY, VOCABULARY)))
    rows[:, 0] += 2
    with tf.GradientTape() as tape:
        log_p = model.log_probability(rows[:, 0], rows[:, 1:])
    tables = [model.first.value, model.second.value]
    probabilities = np.exp(log_p) / 2  # Each x is as frequent.
    assert probabilities.sum() == pytest.approx(1, abs=1e-5)
    rewards = REWARDS[tuple(rows.T)]
    assert set(logs) == {"reward"}
    mean = np.sum(probabilities * rewards)
    error = np.sqrt(np.sum(probabilities * rewards**2) / num_rows)
    assert abs(logs["reward"] - mean) < 5 * error < 0.05
    for step, gradients in zip(
        steps, tape.jacobian(log_p, tables), strict=True
    ):
        gradients = -rewards[:, None, None] * tf.convert_to_tensor(gradients)
        chances = probabilities[:, None, None]
        expected = np.sum(chances * gradients, axis=0)
        # Two replicas may draw the same numbers: then half as many count.
        error = np.sqrt(
            np.sum(chances * gradients**2, axis=0) * replicas / num_rows
        )
        assert np.all(np.abs(step - expected) <= 5 * error + 1e-6)
        assert np.max(np.abs(expected) / (error + 1e-6)) > 20


def test_a_task_smooths_its_labels_by_choice():
    task = tasks.get("classification")
    config = configuration.make(label_smoothing=0.3)
    model = models.EncoderClassifier.from_size("mini", 9, 2)
    objective = task.objective(config, model)
    assert isinstance(objective, objectives.LabelObjective)
    assert objective.label_smoothing == 0.3


def test_what_does_not_count_may_have_any_value(step_of):
    """Weights that the loss does not depend on stay as they are."""

    def objective(model, batch, training):
        lost = ops.convert_to_tensor(np.array([1, np.inf, np.nan], "float32"))
        weights = ops.convert_to_tensor(np.array([1, 0, 0], "float32"))
        loss = ops.sum(model.first) * weights
        return {"loss": (loss + ops.stop_gradient(lost), weights)}

    batch = (np.zeros(1, "int32"),)
    steps, logs = step_of(objective, Policy, batch)
    np.testing.assert_allclose(steps[0], 1, rtol=1e-6)
    assert not steps[1].any()
    assert np.isfinite(logs["loss"])


@pytest.mark.parametrize(
    "measured, message",
    [
        ({"loss": (np.ones(2), np.ones((2, 1)))}, "have one shape"),
        ({"loss": (1.0, 1.0), "other": (1.0, 1.0)}, "measures loss, other"),
        ({}, "measures nothing"),
    ],
)
def test_an_objective_that_measures_something_else_is_refused(
    step_of, measured, message
):
    with pytest.raises(ValueError, match=message):
        step_of(lambda *_: measured, Policy, (np.zeros(1, "int32"),))


def test_a_label_smoothing_beside_an_objective_is_refused():
    with pytest.raises(ValueError, match="is for the default objective"):
        trainer.Trainer(Policy(), 0.1, objective=Reinforce())


@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
def test_a_text_has_one_label(label_smoothing):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 7)).astype("float32")
    labels = np.array([1, 6, 0])
    batch = None, labels, np.array([0.5, 0.5, 0])
    objective = objectives.LabelObjective(label_smoothing)
    measured = objective(lambda inputs, training: logits, batch, True)
    assert tuple(measured) == objective.names
    q = (1 - label_smoothing) * np.eye(7)[labels] + label_smoothing / 7
    expected = -np.sum(q * tf.nn.log_softmax(logits), axis=-1)
    np.testing.assert_allclose(measured["loss"][0], expected, rtol=1e-5)
    right = logits.argmax(axis=-1) == labels
    np.testing.assert_array_equal(measured["accuracy"][0], right)
    for _, counts in measured.values():
        np.testing.assert_array_equal(counts, [1, 1, 0])


@pytest.mark.slow
@pytest.mark.parametrize("replicas, micro_batches", [(2, 2)])
def test_hard_attention_on_replicas(step_of, replicas, micro_batches):
    """Without a draw, one step is that of the whole batch."""

    def create():
        keras.utils.set_random_seed(1)
        sizes = {"embedding_dim": 3, "units": 5, "readout_dim": 2}
        model = models.HardRNNSearch(
            VOCABULARY, **sizes, soft_share=1.0, entropy_weight=0.0
        )
        model.build()
        return model

    rng = np.random.default_rng(1)
    source_ids, target_ids, labels = rng.integers(
        4, VOCABULARY, (3, 8, 5), "int32"
    )
    inputs = {"source_ids": source_ids, "target_ids": target_ids}
    batch = inputs, labels, np.ones(labels.shape, "float32")
    objective = models.HardRNNSearch.objective
    whole, logs = step_of(objective, create, batch)
    parts, other = step_of(objective, create, batch, replicas, micro_batches)
    assert other["loss"] == pytest.approx(logs["loss"], rel=1e-5)
    for ours, expected in zip(parts, whole, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-5)


@pytest.mark.parametrize("replicas, micro_batches", [(2, 2)])
def test_a_saturation_cost_on_replicas(step_of, replicas, micro_batches):
    """The cost of a row is its own, however the batch is divided."""

    def create():
        keras.utils.set_random_seed(1)
        model = models.DiagonalNeuralGPU(
            VOCABULARY, filters=5, saturation_weight=0.5
        )
        model.build()
        # Wide inputs, which cost something.
        model.source_embedding.embeddings.assign(
            3 * model.source_embedding.embeddings
        )
        return model

    rng = np.random.default_rng(1)
    ids = rng.integers(4, VOCABULARY, (8, 5), "int32")
    ids[np.arange(5)[None] >= 1 + np.arange(8)[:, None]] = 0
    inputs = {"source_ids": ids, "target_ids": ids}
    batch = inputs, ids, (ids > 0).astype("float32")
    objective = models.DiagonalNeuralGPU.objective
    whole, logs = step_of(objective, create, batch)
    parts, other = step_of(objective, create, batch, replicas, micro_batches)
    assert other["loss"] == pytest.approx(logs["loss"], rel=1e-5)
    for ours, expected in zip(parts, whole, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-5)
