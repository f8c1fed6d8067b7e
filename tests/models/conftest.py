"""Seeds, and weights that hide no mistake."""

import keras
import pytest


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
