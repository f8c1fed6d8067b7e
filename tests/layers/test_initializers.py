import keras
import numpy as np

from keras_attention.layers import initializers


def test_a_clone_draws_other_values():
    initializer = keras.initializers.GlorotUniform()
    clone = initializers.clone(initializer)
    assert type(clone) is type(initializer)
    assert not np.allclose(initializer((5, 7)), clone((5, 7)))


def test_a_seed_is_kept():
    initializer = keras.initializers.RandomNormal(stddev=0.3, seed=11)
    np.testing.assert_array_equal(
        initializer((5, 7)), initializers.clone(initializer)((5, 7))
    )
