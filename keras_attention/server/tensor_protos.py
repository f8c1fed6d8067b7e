"""Tensors of gRPC to arrays and back.

A `TensorProto` may say that it has a large shape and hold one value, which
then stands for all. Its size is checked before any memory is taken for it.
"""

import math

import numpy as np
import tensorflow as tf

from keras_attention.server import errors, signatures

# NumPy has no arrays with more.
_MOST_AXES = 32


def to_array(
    proto, spec: signatures.Spec, name: str, max_rows: int, max_bytes: int
) -> np.ndarray:
    """The array of an input.

    Args:
        proto: a `TensorProto`.
        spec: what the signature takes.
        name: of the input.
        max_rows: the most rows that the array may have.
        max_bytes: the most bytes that the array may have, with a string in
            each place where one stands for all.

    Raises:
        RequestError: If it has another type, is too large, or does not hold
            the values that its shape says.
    """
    dtype = spec.dtype
    if proto.dtype != dtype.as_datatype_enum:
        # TensorFlow Serving's own words.
        raise errors.invalid(
            f"Expected the input {name!r} to be {_type_name(dtype.name)} but "
            f"{_type_name(_dtype_name(proto.dtype))} is provided."
        )
    sizes = _sizes(proto, name)
    spec.check(name, sizes, max_rows)
    # A string has no size of its own. Its place in an array has.
    num_places = math.prod(sizes)
    num_bytes = num_places * (dtype.size or 8)
    if dtype == tf.string:
        num_copies = num_places if len(proto.string_val) == 1 else 1
        num_bytes += sum(map(len, proto.string_val)) * num_copies
    if max([num_bytes, *sizes]) > max_bytes:
        raise errors.invalid(
            f"Expected an input {name!r} of at most {max_bytes} bytes. "
            "Received: more"
        )
    try:
        array = tf.make_ndarray(proto)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise errors.invalid(
            f"Expected the values of the input {name!r} that its type and its "
            "shape say. Received: others"
        ) from error
    if dtype == tf.string:
        _check_bytes(array, name)
    return array


def _sizes(proto, name) -> list[int]:
    """The lengths of the axes. They are few, so that their product is quick."""
    num_axes = len(proto.tensor_shape.dim)
    if num_axes > _MOST_AXES:
        raise errors.invalid(
            f"Expected an input {name!r} with at most {_MOST_AXES} axes. "
            f"Received: {num_axes} axes"
        )
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if proto.tensor_shape.unknown_rank or any(size < 0 for size in sizes):
        raise errors.invalid(
            f"Expected a shape that is known of the input {name!r}. "
            "Received: one that is not"
        )
    return sizes


def _check_bytes(array, name) -> None:
    """`make_ndarray` fills up strings that are missing with something else."""
    if not all(isinstance(value, bytes) for value in array.ravel()):
        raise errors.invalid(
            f"Expected a string for each place of the input {name!r}. "
            "Received: fewer"
        )


def _type_name(name: str) -> str:
    return errors.TYPE_NAMES.get(name, name)


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
