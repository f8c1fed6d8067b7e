"""Look-ups against NumPy's, on TensorFlow and in the way of other backends."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention.decoding import lookup


@pytest.fixture(params=["tensorflow", "jax"])
def backend(request, monkeypatch):
    """Which backend the look-ups take to be Keras's."""
    monkeypatch.setattr(lookup.keras.backend, "backend", lambda: request.param)


def test_rows(rng, backend):
    matrix = rng.normal(size=(5, 3)).astype("float32")
    vector = rng.integers(9, size=5)
    places = [4, 0, 0, 2]
    found = lookup.rows((tf.constant(matrix), [tf.constant(vector)]), places)
    np.testing.assert_array_equal(found[0], matrix[places])
    np.testing.assert_array_equal(found[1][0], vector[places])


@pytest.mark.parametrize("rest", [(), (7,), (7, 2)])
def test_within_rows(rng, backend, rest):
    values = rng.normal(size=(3, 5, *rest)).astype("float32")
    places = np.array([[4, 4], [0, 3], [1, 2]], "int32")
    found = lookup.within_rows(tf.constant(values), tf.constant(places))
    expected = [values[row, chosen] for row, chosen in enumerate(places)]
    np.testing.assert_array_equal(found, expected)


def test_one_operation_each():
    """Keras's `take` makes six of them, as a place may be negative there."""

    def found(values, places):
        return lookup.rows(values, places), lookup.within_rows(values, places)

    specs = [tf.TensorSpec([None, None]), tf.TensorSpec([None, None], tf.int32)]
    graph = tf.function(found).get_concrete_function(*specs).graph
    types = [operation.type for operation in graph.get_operations()]
    assert types.count("GatherV2") == 2
    assert {*types} == {"Placeholder", "GatherV2", "Const", "Identity"}
