"""Tensors of gRPC: to arrays, and no memory for a lie about their size."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention.server import errors, tensor_protos


@pytest.mark.parametrize(
    "array",
    [
        np.array([b"a", b"\xff"], object),
        np.array([], object),
        np.zeros((2, 0), object),
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array(3, np.int64),
        np.array([True, False]),
    ],
)
def test_arrays_go_there_and_back(array):
    proto = tensor_protos.from_array(array)
    dtype = tf.dtypes.as_dtype(proto.dtype)
    found = tensor_protos.to_array(proto, dtype, "x", 10**6)
    assert found.shape == array.shape
    np.testing.assert_array_equal(found, array)


def proto(dtype=tf.float32, shape=(2,), **values):
    made = tf.make_tensor_proto([1.0], shape=[1]).__class__(**values)
    made.dtype = dtype.as_datatype_enum
    for size in shape:
        made.tensor_shape.dim.add(size=size)
    return made


@pytest.mark.parametrize(
    "wrong",
    [
        proto(shape=[10**6, 10**6], float_val=[1.0]),
        proto(shape=[-1], float_val=[1.0]),
        proto(shape=[1] * 40, float_val=[1.0]),
        proto(dtype=tf.int32, int_val=[1, 2]),
        proto(dtype=tf.string, string_val=[b"a", b"b"]),
        proto(tensor_content=b"123"),
        proto(shape=[1], float_val=[1.0, 2.0, 3.0]),
    ],
)
def test_a_tensor_that_is_not_what_it_says_is_refused(wrong):
    with pytest.raises(errors.RequestError) as refused:
        tensor_protos.to_array(wrong, tf.float32, "x", 10**6)
    assert refused.value.code == errors.Code.INVALID_ARGUMENT


def test_strings_that_are_missing_are_refused():
    wrong = proto(tf.string, [3], string_val=[])
    with pytest.raises(errors.RequestError):
        tensor_protos.to_array(wrong, tf.string, "x", 10**6)
