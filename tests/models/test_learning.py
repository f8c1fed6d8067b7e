"""Each architecture learns to copy and to reverse what it has not seen."""

import math

import keras
import numpy as np
import pytest
import tiny

from keras_attention import decoding
from keras_attention.models import catalog
from keras_attention.tokens import END, PAD, START
from keras_attention.training import losses, trainer

V = 24


def pairs(rng, count, longest, task):
    """`source_ids`, `target_ids` and `labels` of random sequences."""
    source_ids = np.full((count, longest + 1), PAD, "int32")
    target_ids, labels = source_ids.copy(), source_ids.copy()
    for row, length in enumerate(rng.integers(1, longest + 1, count)):
        source = rng.integers(END + 1, V, length)
        target = source[::-1] if task == "reverse" else source
        source_ids[row, : length + 1] = [*source, END]
        target_ids[row, : length + 1] = [START, *target]
        labels[row, : length + 1] = [*target, END]
    return source_ids, target_ids, labels


def exact_matches(model, source_ids, labels):
    """The share of rows that greedy search answers without a mistake."""
    longest = labels.shape[1]
    memory = model.encode(source_ids)
    result = decoding.greedy_search(
        model.step,
        memory,
        model.initial_state(memory, longest),
        source_ids != PAD,
        np.full(len(source_ids), longest),
    )
    ids = np.zeros_like(labels)
    found = result.ids.numpy()[:, 0]
    ids[:, : found.shape[1]] = found
    return np.mean((ids == labels).all(axis=1))


def share_learned(name, task, rng, **others):
    """The share of new rows that a model answers right after its training."""
    size, arguments, longest, count, epochs, learning_rate = tiny.TRAININGS[
        name
    ]
    source_ids, target_ids, labels = pairs(rng, count, longest, task)
    new_sources, _, new_labels = pairs(rng, 1000, longest, task)
    seen = {tuple(row) for row in source_ids}
    new = [tuple(row) not in seen for row in new_sources]
    batch_size = 64
    steps = epochs * math.ceil(count / batch_size)
    model = catalog.create(
        name, size, vocabulary_size=V, dropout=0.0, **arguments, **others
    )
    learner, loss, counts = model, losses.TokenCrossEntropy(), None
    if model.objective is not None:
        model.build()
        learner = trainer.Trainer(model, objective=type(model).objective)
        loss, counts = None, (labels != PAD).astype("float32")
    learner.compile(
        keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(learning_rate, steps),
            global_clipnorm=1.0,
        ),
        loss=loss,
        jit_compile=False,  # XLA compiles a loop for longer than it saves.
    )
    learner.fit(
        {"source_ids": source_ids, "target_ids": target_ids},
        labels,
        sample_weight=counts,
        batch_size=batch_size,
        epochs=epochs,
        verbose=0,
    )
    assert sum(new) > 500
    return exact_matches(model, new_sources[new], new_labels[new])


@pytest.mark.slow
@pytest.mark.parametrize("task", ["copy", "reverse"])
@pytest.mark.parametrize("name", tiny.TRAININGS)
def test_learns(name, task, rng):
    assert share_learned(name, task, rng) >= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["local-m", "local-p"])
def test_a_narrow_window_is_enough_to_copy(attention, rng):
    """Token t of the target is token t of the source.

    With such a window, learning takes longer: after as many epochs, up to 3 %
    of the rows are still wrong.
    """
    arguments = {"attention": attention, "half_width": 2}
    assert share_learned("luong", "copy", rng, **arguments) >= 0.95
