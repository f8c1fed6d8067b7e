"""The objective of the memory network, over replicas and micro-batches."""

import keras
import numpy as np
import pytest

from keras_attention import config as configuration
from keras_attention import models, tasks

# The last row was added for the replicas.
STORIES = np.array(
    [[5, 7, 3, 8, 3], [6, 3, 0, 0, 0], [7, 3, 5, 3, 0], [3, 0, 0, 0, 0]]
)
QUESTIONS = np.array([[4, 3], [9, 3], [6, 3], [3, 0]])
FACTS = np.array([[2, 1, 1], [1, 1, 1], [1, 2, 2], [0, 0, 0]], "float32")
LABELS = np.array([1, 2, 0, 0])
COUNTS = np.array([1, 1, 1, 0], "float32")


def make_model():
    keras.utils.set_random_seed(1)
    model = models.MemoryNetwork(10, 3, 7, margin=2.0)
    model.build()
    return model


@pytest.mark.fast_for(2)
@pytest.mark.parametrize("replicas, micro_batches", [(1, 1), (1, 3), (2, 2)])
def test_a_step_is_that_of_each_story_alone(step_of, replicas, micro_batches):
    inputs = {"story_ids": STORIES, "question_ids": QUESTIONS, "facts": FACTS}
    batch = inputs, LABELS, COUNTS / 3
    objective = models.MemoryNetwork.objective
    steps, logs = step_of(objective, make_model, batch, replicas, micro_batches)
    rows = [
        step_of(
            objective,
            make_model,
            # Without the padding.
            (
                {
                    name: ids[row : row + 1, : np.count_nonzero(ids[row])]
                    for name, ids in inputs.items()
                },
                LABELS[row : row + 1],
                np.ones(1, "float32"),
            ),
        )
        for row in range(3)
    ]
    losses = [logs["loss"] for _, logs in rows]
    expected = [
        np.mean(of_weight, axis=0)
        for of_weight in zip(*(steps for steps, _ in rows), strict=True)
    ]
    assert min(losses) > 0.5
    assert logs["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    for found, one in zip(steps, expected, strict=True):
        np.testing.assert_allclose(found, one, atol=1e-6)


def test_the_task_takes_it():
    task, choices = tasks.get("question_answering"), configuration.make()
    objective = task.objective(choices, make_model())
    assert objective is models.MemoryNetwork.objective
