"""Learning rates against their equations."""

import math

import keras
import numpy as np
import pytest

from keras_attention import config
from keras_attention.training import schedules

# The optimizer counts from 0, the papers from 1.
STEPS = [0, 1, 5, 9, 10, 11, 29, 99, 100, 5000]


def test_the_papers_equation():
    # Vaswani et al. 2017, equation 3:
    # d^-0.5 min(step^-0.5, step warmup^-1.5)
    schedule = schedules.InverseSquareRoot.for_width(512, warmup_steps=11)
    for count in STEPS:
        step = count + 1
        rate = 512**-0.5 * min(step**-0.5, step * 11**-1.5)
        np.testing.assert_allclose(schedule(count), rate, rtol=1e-6)


def test_the_papers_warmup_is_the_default():
    schedule = schedules.InverseSquareRoot.for_width(512)
    peak = 512**-0.5 * 4000**-0.5
    np.testing.assert_allclose(schedule(3999), peak, rtol=1e-6)
    assert schedule(3998) < schedule(3999) > schedule(4000)


def test_inverse_square_root():
    schedule = schedules.InverseSquareRoot(0.3, warmup_steps=10)
    for count in STEPS:
        step = count + 1
        rate = 0.3 * min(step / 10, math.sqrt(10 / step))
        np.testing.assert_allclose(schedule(count), rate, rtol=1e-6)


def test_cosine():
    schedule = schedules.Cosine(0.3, warmup_steps=10, num_steps=100)
    for count in STEPS:
        step = count + 1
        if step < 10:
            rate = 0.3 * step / 10
        elif step < 100:
            rate = 0.3 * (1 + math.cos(math.pi * (step - 10) / 90)) / 2
        else:
            rate = 0.0
        np.testing.assert_allclose(schedule(count), rate, rtol=1e-5, atol=1e-8)


SCHEDULES = [
    schedules.InverseSquareRoot(0.02, 7),
    schedules.InverseSquareRoot.for_width(64, 5),
    schedules.Cosine(0.05, 3, 17),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
def test_an_optimizer_brings_it_back(schedule):
    optimizer = keras.optimizers.Adam(schedule)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    again.build([keras.Variable([1.0, 2.0])])
    for count in (0, 4, 12):
        again.iterations.assign(count)
        np.testing.assert_allclose(
            again.learning_rate, schedule(count), rtol=1e-6
        )


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
def test_it_follows_the_optimizers_steps(schedule):
    # With a gradient of 1, SGD moves a weight by the rate.
    weight = keras.Variable([0.0])
    optimizer = keras.optimizers.SGD(schedule)
    for count in range(20):
        before = weight.numpy()[0]
        optimizer.apply([keras.ops.ones((1,))], [weight])
        np.testing.assert_allclose(
            before - weight.numpy()[0], schedule(count), rtol=1e-4, atol=1e-7
        )


def test_no_warmup_is_refused():
    with pytest.raises(ValueError, match="Received: warmup_steps=0"):
        schedules.InverseSquareRoot(0.1, 0)


@pytest.mark.parametrize("warmup_steps, num_steps", [(0, 5), (5, 5), (6, 5)])
def test_a_warmup_that_never_ends_is_refused(warmup_steps, num_steps):
    with pytest.raises(ValueError, match=f"num_steps={num_steps}"):
        schedules.Cosine(0.1, warmup_steps, num_steps)


def rates(scores, **choices):
    """The rate of each epoch, and that of one more."""
    choices = config.Optimizer(learning_rate=8.0, **choices)
    history = [{"val_perplexity": score} for score in scores]
    return [
        schedules.rate_of_epoch(choices, history[:done])
        for done in range(len(history) + 1)
    ]


def test_a_rate_is_constant_and_then_halved_each_epoch():
    choices = {"schedule": "decay", "constant_epochs": 3}
    assert rates([9] * 5, **choices) == [8, 8, 8, 4, 2, 1]
    choices |= {"constant_epochs": 1, "decay_factor": 0.25}
    assert rates([9] * 2, **choices) == [8, 2, 0.5]


def test_a_rate_is_halved_where_the_perplexity_stalls():
    """Where it does not fall by more than 1 from one epoch to the next."""
    scores = [300, 200, 199.5, 190, 191, 189.5, 188.5]
    found = rates(scores, schedule="plateau")
    assert found == [8, 8, 8, 4, 4, 2, 2, 2]
    assert rates([100, 99.5, 99.25], schedule="plateau") == [8, 8, 4, 2]


def test_other_schedules_have_no_epochs():
    for schedule in ("cosine", "inverse_sqrt", "constant"):
        assert rates([5.0], schedule=schedule) == [None, None]
