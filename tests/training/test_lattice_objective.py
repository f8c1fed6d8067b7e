"""The objective of a transducer, against the sum over its paths one by one."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_attention import config as configuration
from keras_attention import models, tasks
from keras_attention.tokens import PAD, START
from keras_attention.training import trainer

VOCABULARY = 7
# Every length up to 4 on each side, END included. The last row was added for
# the replicas.
SOURCES = ((4, 5, 6, 3), (6, 4, 3), (5, 3), (4, 4, 5, 3), (6, 5, 3), (3,))
TARGETS = ((6, 3), (4, 6, 5, 3), (5, 4, 3), (3,), (6, 5, 3), ())


def padded(rows, width=4):
    return np.array([[*row, *[0] * (width - len(row))] for row in rows])


def sum_over_paths(log_p, source_lengths, labels):
    """log p(y | x), summed over all paths from step to step of the source.

    `a(s, u) = a(s-1, u) blank(s-1, u) + a(s, u-1) label(s, u-1)`
    (Graves 2012, equation 16), in logarithms.

    Args:
        log_p: [B, S, U+1, V+1], the blank last.
        source_lengths: int [B].
        labels: int [B, U], then padding.

    Returns:
        float32 [B].
    """
    emitted = ops.take_along_axis(
        log_p[:, :, :-1], labels[:, None, :, None], axis=3
    )[..., 0]  # [B, S, U]
    # emitted up to u: [B, S, U+1]
    emitted = ops.pad(ops.cumsum(emitted, axis=2), [(0, 0), (0, 0), (1, 0)])
    size = ops.shape(emitted)[2]
    below = ops.arange(size)[:, None] >= ops.arange(size)[None]

    def step(alpha, place):
        blank, here = place
        # From k labels at the step before to u labels here.
        arrived = (alpha + blank - here)[:, None, :] + here[:, :, None]
        arrived = ops.where(below, arrived, -1e9)  # [B, U+1, U+1]
        alpha = ops.logsumexp(arrived, axis=2)
        return alpha, alpha

    blank = ops.transpose(log_p[..., -1], (1, 0, 2))
    here = ops.transpose(emitted, (1, 0, 2))
    _, later = ops.scan(step, here[0], (blank[:-1], here[1:]))
    alphas = ops.concatenate([here[:1], later], axis=0) + blank  # [S, B, U+1]
    num_labels = ops.sum(ops.cast(labels != PAD, "int32"), axis=1)
    last = ops.one_hot(source_lengths - 1, ops.shape(blank)[0])  # [B, S]
    end = ops.one_hot(num_labels, size)  # [B, U+1]
    return ops.einsum("sbu,bs,bu->b", alphas, last, end)


class Transducer(models.Seq2Seq):
    """Embeddings in place of both networks: V + 1 outputs, the blank last."""

    def __init__(self, vocabulary_size, units=6):
        super().__init__(name="transducer")
        self.source = keras.layers.Embedding(vocabulary_size, units)
        self.target = keras.layers.Embedding(vocabulary_size, units)
        self.output_layer = keras.layers.Dense(vocabulary_size + 1)

    def build(self, input_shape=None):
        self.source.build()
        self.target.build()
        self.output_layer.build((None, self.source.output_dim))
        self.built = True

    def lattice(self, source_ids, labels):
        """log p of each label, and of the blank: [B, S, U+1, V+1]."""
        starts = ops.full_like(labels[:, :1], START)
        before = ops.concatenate([starts, labels], axis=1)
        hidden = self.source(source_ids)[:, :, None]
        hidden = ops.tanh(hidden + self.target(before)[:, None])
        return ops.log_softmax(self.output_layer(hidden), axis=-1)

    def log_probability(self, source_ids, labels, training=False):
        lengths = ops.sum(ops.cast(source_ids != PAD, "int32"), axis=1)
        lattice = self.lattice(source_ids, labels)
        return sum_over_paths(lattice, lengths, labels)

    def objective(self, batch, training):
        """-log p(y | x) of each text."""
        inputs, labels, weights = batch
        real = ops.cast(ops.any(weights > 0, axis=1), "float32")
        log_p = self.log_probability(inputs["source_ids"], labels, training)
        return {"loss": (-log_p, real)}


def path_by_path(log_p, labels):
    """The sum over each path, and how often each arc is passed.

    Args:
        log_p: of one text, without padding: [S, U+1, V+1].
        labels: [U].

    Returns:
        `(log_probability, arcs)`. `arcs` [S, U+1, V+1] is the gradient of the
        first with respect to `log_p`: the mean number of passes.
    """
    log_p = np.asarray(log_p, "float64")
    size, num_labels, blank = len(log_p), len(labels), log_p.shape[2] - 1
    total, arcs = 0.0, np.zeros_like(log_p)
    steps = range(size - 1 + num_labels)
    for writes in itertools.combinations(steps, num_labels):
        s = u = 0
        path = []
        for step in steps:
            if step in writes:
                path.append((s, u, labels[u]))
                u += 1
            else:
                path.append((s, u, blank))
                s += 1
        path.append((s, u, blank))
        probability = np.exp(sum(log_p[arc] for arc in path))
        total += probability
        for arc in path:
            arcs[arc] += probability
    return np.log(total), arcs / total


def lattice_batch():
    labels = padded(TARGETS)
    inputs = {"source_ids": padded(SOURCES), "target_ids": 0 * labels}
    weights = (labels > 0) / np.float32((labels > 0).sum())
    return inputs, labels, weights


def make_transducer():
    keras.utils.set_random_seed(1)
    model = Transducer(VOCABULARY)
    model.build()
    rng = np.random.default_rng(1)
    model.set_weights([rng.normal(size=w.shape) for w in model.weights])
    return model


def sums_and_arcs(model):
    """Path by path: log p(y | x) of the real rows, and d (sum) / d lattice."""
    lattice = model.lattice(padded(SOURCES), padded(TARGETS)).numpy()
    arcs = np.zeros_like(lattice)
    sums = []
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        if target:
            part = np.s_[row, : len(source), : len(target) + 1]
            log_p, arcs[part] = path_by_path(lattice[part], target)
            sums.append(log_p)
    return np.array(sums), arcs


def test_the_lattice_sums_over_all_paths():
    model = make_transducer()
    expected, arcs = sums_and_arcs(model)
    assert np.ptp(expected) > 1
    ids = padded(SOURCES), padded(TARGETS)
    lattice = tf.constant(model.lattice(*ids))
    with tf.GradientTape() as tape:
        tape.watch(lattice)
        lengths = np.array([len(row) for row in SOURCES])
        sums = sum_over_paths(lattice, lengths, ids[1])
        loss = tf.reduce_sum(sums[:-1])
    np.testing.assert_allclose(sums[:-1], expected, rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(loss, lattice), arcs, atol=1e-6)


@pytest.mark.parametrize(
    "replicas, micro_batches",
    [
        *(pytest.param(1, n, marks=pytest.mark.slow) for n in (1, 3)),
        (2, 2),
    ],
)
def test_the_trainer_lowers_a_loss_of_whole_texts(
    step_of, replicas, micro_batches
):
    """Replicas and micro-batches hold texts of unlike lengths, and none."""
    model = make_transducer()
    sums, arcs = sums_and_arcs(model)
    with tf.GradientTape() as tape:
        lattice = model.lattice(padded(SOURCES), padded(TARGETS))
        loss = -tf.reduce_sum(lattice * arcs) / len(sums)
    weights = [weight.value for weight in model.trainable_weights]
    expected = tape.gradient(loss, weights)
    steps, logs = step_of(
        Transducer.objective,
        make_transducer,
        lattice_batch(),
        replicas,
        micro_batches,
    )
    for step, gradient in zip(steps, expected, strict=True):
        gradient = tf.convert_to_tensor(gradient)
        np.testing.assert_allclose(step, gradient, atol=1e-6)
    assert logs == {"loss": pytest.approx(-sums.mean(), rel=1e-6)}


def test_a_transducer_learns():
    model = make_transducer()
    fitted = trainer.Trainer(model, objective=Transducer.objective)
    fitted.compile(keras.optimizers.Adam(0.1), jit_compile=False)
    batches = tf.data.Dataset.from_tensors(lattice_batch()).repeat(100)
    before = sums_and_arcs(model)[0]
    fitted.fit(batches, verbose=0, shuffle=False)
    after = sums_and_arcs(model)[0]
    assert before.mean() < -8 and after.mean() > -1


def test_a_task_takes_the_objective_of_the_model():
    task, choices = tasks.get("translation"), configuration.make()
    assert task.objective(choices, make_transducer()) is Transducer.objective
