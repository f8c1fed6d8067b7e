"""Tensors of gRPC: to arrays, and no memory for a lie about their size."""

import time

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies

from keras_attention.server import errors, protos, signatures


def to_array(proto, dtype, shape=None, max_bytes=10**6):
    spec = signatures.Spec(dtype, shape, is_exact=True)
    return protos.to_array(proto, spec, "x", 8, max_bytes)


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
    proto = protos.from_array(array)
    dtype = tf.dtypes.as_dtype(proto.dtype)
    found = to_array(proto, dtype)
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
        proto(tf.string, [2**40], string_val=[b"a"]),
        proto(shape=[0, 2**40]),
        proto(shape=[-1], float_val=[1.0]),
        proto(shape=[1] * 40, float_val=[1.0]),
        proto(dtype=tf.int32, int_val=[1, 2]),
        proto(dtype=tf.int32, string_val=[b"a", b"b"]),
        proto(tensor_content=b"123"),
        proto(shape=[1], float_val=[1.0, 2.0, 3.0]),
    ],
)
def test_a_tensor_that_is_not_what_it_says_is_refused(wrong):
    with pytest.raises(errors.RequestError) as refused:
        dtype = tf.string if wrong.string_val else tf.float32
        to_array(wrong, dtype)
    assert refused.value.code == errors.Code.INVALID_ARGUMENT


def test_strings_that_are_missing_are_refused():
    wrong = proto(tf.string, [3], string_val=[])
    with pytest.raises(errors.RequestError):
        to_array(wrong, tf.string)


@hypothesis.settings(max_examples=100, deadline=None)
@hypothesis.given(
    strategies.sampled_from([tf.string, tf.float32, tf.int64, tf.bool]),
    strategies.lists(strategies.integers(-2, 5) | strategies.just(2**40)),
    strategies.binary(max_size=20),
    strategies.lists(strategies.integers(-3, 3), max_size=5),
    strategies.lists(strategies.binary(max_size=3), max_size=5),
)
def test_any_message_is_an_array_or_refused(dtype, shape, content, ints, texts):
    made = proto(
        dtype,
        shape,
        tensor_content=content,
        float_val=ints,
        int64_val=ints,
        bool_val=[one > 0 for one in ints],
        string_val=texts,
    )
    try:
        array = to_array(made, dtype, max_bytes=1000)
    except errors.RequestError as refused:
        assert refused.code == errors.Code.INVALID_ARGUMENT
    else:
        assert array.shape == tuple(shape)


def test_a_shape_of_many_axes_takes_no_time():
    start = time.monotonic()
    with pytest.raises(errors.RequestError, match="20000 axes"):
        to_array(proto(shape=[2**62] * 20_000), tf.float32)
    assert time.monotonic() - start < 1


@pytest.mark.parametrize(
    "wrong, shape, message",
    [
        # One string that stands for all of them.
        (proto(tf.string, [8], string_val=[b"a" * 999]), None, "7000 bytes"),
        (proto(tf.string, [9], string_val=[b"a"]), (None,), "at most 8 are"),
        (proto(tf.string, [2, 2], string_val=[b"a"]), (None,), "of shape"),
        (proto(tf.int8, [1], int_val=[300]), None, "do not fit its type"),
    ],
)
def test_what_is_too_much_is_refused_at_once(wrong, shape, message):
    dtype = tf.dtypes.as_dtype(wrong.dtype)
    with pytest.raises(errors.RequestError, match=message):
        to_array(wrong, dtype, shape, max_bytes=7000)
