"""One step of a trainer, for the tests of objectives."""

import keras
import pytest
import tensorflow as tf

from keras_attention import devices
from keras_attention.training import trainer


@pytest.fixture
def step_of():
    """The function `step_of`, see there."""
    return _step_of


def _step_of(objective, make_model, batch, replicas=1, micro_batches=1):
    """What SGD at rate 1 takes from each weight, and the logs."""
    with devices.make_strategy(replicas).scope():
        model = make_model()
        before = [weight.numpy() for weight in model.trainable_weights]
        fitted = trainer.Trainer(
            model, objective=objective, micro_batches=micro_batches
        )
        fitted.compile(keras.optimizers.SGD(1.0), jit_compile=False)
    batches = tf.data.Dataset.from_tensors(batch)
    history = fitted.fit(batches, verbose=0, shuffle=False).history
    logs = {name: values[-1] for name, values in history.items()}
    steps = [
        old - new.numpy()
        for old, new in zip(before, model.trainable_weights, strict=True)
    ]
    return steps, logs
