"""Adam in one operation equals Keras's own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention.training import optimizers, schedules

SHAPES = ((3, 5), (7,))
OPTIONS = {
    "learning_rate": 0.3,
    "beta_1": 0.8,
    "beta_2": 0.95,
    "epsilon": 1e-3,
}


def train(optimizer_class, gradients, **options):
    """Variables and their averages after a step for each gradient."""
    optimizer = optimizer_class(**{**OPTIONS, **options})
    variables = [keras.Variable(np.ones(shape)) for shape in SHAPES]
    optimizer.build(variables)
    for step in gradients:
        optimizer.apply([tf.constant(one) for one in step], variables)
    averages = getattr(optimizer, "_model_variables_moving_average", [])
    return [variable.numpy() for variable in (*variables, *averages)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_ema": True, "ema_momentum": 0.7},
        {"learning_rate": schedules.InverseSquareRoot(0.3, 4)},
        {"clipnorm": 0.5},
        {"weight_decay": 0.1},
    ],
    ids=lambda options: "".join(options) or "plain",
)
def test_equals_keras(options, rng):
    gradients = [
        [rng.normal(size=shape).astype("float32") for shape in SHAPES]
        for _ in range(11)
    ]
    ours = train(optimizers.Adam, gradients, **options)
    theirs = train(keras.optimizers.Adam, gradients, **options)
    assert len(ours) == len(theirs)
    for got, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
        assert np.abs(expected - 1).min() > 1e-3  # All of it moved.


def test_a_sparse_gradient_is_that_of_all_rows():
    results = []
    for gradient in (
        tf.IndexedSlices(tf.ones((2, 5)), [2, 0], (3, 5)),
        tf.constant([[1.0] * 5, [0.0] * 5, [1.0] * 5]),
    ):
        optimizer = optimizers.Adam(**OPTIONS)
        variable = keras.Variable(np.ones((3, 5)))
        for _ in range(3):
            optimizer.apply([gradient], [variable])
        results.append(variable.numpy())
    np.testing.assert_array_equal(*results)


def test_amsgrad_is_refused():
    with pytest.raises(ValueError, match="amsgrad=True"):
        optimizers.Adam(amsgrad=True)
