"""Seeds, weights that hide no mistake, and sizes without memory."""

import contextlib

import keras
import pytest
import tensorflow as tf


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(0)


@pytest.fixture
def randomize(rng):
    """Builds a model and gives all its weights random values."""

    def set_random_weights(model, scale=0.3):
        model.build()
        for weight in model.trainable_weights:
            weight.assign(rng.normal(scale=scale, size=weight.shape))
        return model

    return set_random_weights


@pytest.fixture
def without_memory():
    """A context in which weights are only shapes: to count the great ones."""

    @contextlib.contextmanager
    def scope():
        with keras.StatelessScope(initialize_variables=False):
            with tf.Graph().as_default():
                yield

    yield scope
    # Keras would initialize them all as soon as a later scope wants weights.
    # No search for garbage, which takes longer than the test.
    keras.utils.clear_session(free_memory=False)
