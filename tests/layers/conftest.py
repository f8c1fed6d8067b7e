"""Seeds, and weights that hide no mistake."""

import keras
import pytest


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(0)


@pytest.fixture
def randomize(rng):
    """Gives all weights random values: biases start at 0, scales at 1."""

    def set_random_weights(layer):
        layer.set_weights(
            [rng.normal(scale=0.5, size=w.shape) for w in layer.weights]
        )
        return layer

    return set_random_weights


@pytest.fixture
def save_and_load(tmp_path):
    """Writes a functional model to a `.keras` file and reads it again."""

    def through_a_file(inputs, outputs):
        model = keras.Model(inputs, outputs)
        path = tmp_path / "model.keras"
        model.save(path)
        return model, keras.models.load_model(path)

    return through_a_file
