"""Tensors of gRPC to arrays and back.

A `TensorProto` may say that it has a large shape and hold one value, which
then stands for all. Its size is checked before any memory is taken for it.
"""

import math

import numpy as np
import tensorflow as tf

from keras_attention.server import errors


def to_array(proto, dtype: tf.DType, name: str, max_bytes: int) -> np.ndarray:
    """The array of an input.

    Args:
        proto: a `TensorProto`.
        dtype: the type that the signature takes.
        name: of the input.
        max_bytes: the most bytes that the array may have.

    Raises:
        RequestError: If it has another type, is too large, or does not hold
            the values that its shape says.
    """
    if proto.dtype != dtype.as_datatype_enum:
        received = _dtype_name(proto.dtype)
        raise errors.invalid(
            f"Expected the input {name!r} to be of type {dtype.name}. "
            f"Received: {received}"
        )
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if proto.tensor_shape.unknown_rank or any(size < 0 for size in sizes):
        raise errors.invalid(
            f"Expected a shape that is known of the input {name!r}. "
            f"Received: {sizes}"
        )
    # A string has no size of its own. Its place in an array has.
    num_bytes = math.prod(sizes) * (dtype.size or 8)
    if max([num_bytes, *sizes]) > max_bytes or len(sizes) > 32:
        raise errors.invalid(
            f"Expected an input {name!r} of at most {max_bytes} bytes. "
            f"Received: shape {sizes}"
        )
    try:
        array = tf.make_ndarray(proto)
    except (ValueError, TypeError, IndexError) as error:
        raise errors.invalid(
            f"Expected the values of the input {name!r} that its shape says. "
            f"Received: others, for shape {sizes}"
        ) from error
    if dtype == tf.string:
        _check_bytes(array, name)
    return array


def _check_bytes(array, name) -> None:
    """`make_ndarray` fills up strings that are missing with something else."""
    if not all(isinstance(value, bytes) for value in array.ravel()):
        raise errors.invalid(
            f"Expected a string for each place of the input {name!r}. "
            "Received: fewer"
        )


def _dtype_name(number: int) -> str:
    try:
        return tf.dtypes.as_dtype(number).name
    except TypeError:
        return f"the type {number}"


def from_array(array: np.ndarray):
    """The `TensorProto` of an output."""
    if array.dtype == object:
        return tf.make_tensor_proto(
            array.ravel().tolist(), dtype=tf.string, shape=array.shape
        )
    return tf.make_tensor_proto(array)
