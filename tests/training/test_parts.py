"""The parts of a run are what its configuration says."""

import keras
import numpy as np
import pytest

from keras_attention import config
from keras_attention.training import parts


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        # Adam's first step has the length of the rate, whatever the gradient.
        ("adam", [0.5, 1.5]),
        ("sgd", [1 - 0.5 * 0.2, 2 - 0.5 * 4.0]),
    ],
)
def test_the_optimizer_is_the_chosen_one(optimizer, expected):
    choices = config.Optimizer(
        optimizer=optimizer, learning_rate=0.5, schedule="constant"
    )
    weight = keras.Variable([1.0, 2.0])
    gradient = keras.ops.convert_to_tensor([0.2, 4.0])
    parts.make_optimizer(choices, num_steps=10).apply([gradient], [weight])
    np.testing.assert_allclose(weight, expected, rtol=1e-5)
