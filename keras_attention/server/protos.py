"""Messages of both protocols: tensors, and what they say of a model."""

import math

import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
)

from keras_attention.server import errors, signatures
from keras_attention.server.errors import Code, RequestError
from keras_attention.server.predictor import ModelSpec, Predictor

# NumPy has no arrays with more.
_MOST_AXES = 32


def to_array(
    proto, spec: signatures.Spec, name: str, max_rows: int, max_bytes: int
) -> np.ndarray:
    """The array of an input.

    A `TensorProto` may say that it has a large shape and hold one value, which
    then stands for all. Its size is checked before any memory is taken for it.

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
            f"Expected the input {name!r} to be "
            f"{_type_name(dtype.as_datatype_enum)} but "
            f"{_type_name(proto.dtype)} is provided."
        )
    sizes = _sizes(proto, name)
    spec.check(name, sizes, max_rows)
    # A string has no size of its own. Its place in an array has.
    num_places = math.prod(sizes)
    num_bytes = num_places * (dtype.size or 8)
    if dtype == tf.string:
        num_copies = num_places if len(proto.string_val) == 1 else 1
        num_bytes += sum(map(len, proto.string_val)) * num_copies
    # The sizes, too: beside an axis of 0, another may be as long as it likes.
    if max([num_bytes, *sizes]) > max_bytes:
        raise errors.invalid(
            f"The input {name!r} has over {max_bytes} bytes. Send fewer rows."
        )
    try:
        array = tf.make_ndarray(proto)
    # Which of these it raises depends on the type.
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise errors.invalid(
            f"The values of the input {name!r} do not fit its type and its "
            "shape."
        ) from error
    # `make_ndarray` fills up strings that are missing with something else.
    if dtype == tf.string and not all(
        isinstance(value, bytes) for value in array.ravel()
    ):
        raise errors.invalid(
            f"The input {name!r} has fewer strings than its shape has places."
        )
    return array


def _sizes(proto, name) -> list[int]:
    """The lengths of the axes. They are few, so that their product is quick."""
    num_axes = len(proto.tensor_shape.dim)
    if num_axes > _MOST_AXES:
        raise errors.invalid(
            f"The input {name!r} has {num_axes} axes, and at most "
            f"{_MOST_AXES} are taken."
        )
    sizes = [dim.size for dim in proto.tensor_shape.dim]
    if proto.tensor_shape.unknown_rank or any(size < 0 for size in sizes):
        raise errors.invalid(
            f"The input {name!r} has an axis of unknown length. Say how long "
            "each axis is."
        )
    return sizes


def _type_name(number: int) -> str:
    try:
        name = tf.dtypes.as_dtype(number).name
    except TypeError:
        # A client may send any number.
        return f"the type {number}"
    return errors.TYPE_NAMES.get(name, name)


def from_array(array: np.ndarray):
    """The `TensorProto` of an output."""
    if array.dtype == object:
        return tf.make_tensor_proto(
            array.ravel().tolist(), dtype=tf.string, shape=array.shape
        )
    return tf.make_tensor_proto(array)


def status(predictor: Predictor, spec: ModelSpec):
    """The states of a model's versions, newest first.

    Returns:
        `GetModelStatusResponse`.

    Raises:
        RequestError: If there is no such model or version.
    """
    model = predictor.models.by_name.get(spec.name)
    statuses = {} if model is None else model.statuses
    if spec.label and model is not None:
        # A label that is not there is refused.
        model.find(None, spec.label)
        number = model.config.labels[spec.label]
    else:
        number = spec.version
    if number is not None:
        statuses = {n: s for n, s in statuses.items() if n == number}
    if not statuses:
        name = spec.name[:200]
        what = "any versions" if number is None else f"version {number}"
        raise RequestError(
            Code.NOT_FOUND, f"Could not find {what} of model {name}"
        )
    response = get_model_status_pb2.GetModelStatusResponse()
    for version, found in sorted(statuses.items(), reverse=True):
        entry = response.model_version_status.add(
            version=version, state=int(found.state)
        )
        entry.status.error_code = int(Code.UNKNOWN if found.error else Code.OK)
        entry.status.error_message = found.error
    return response


def metadata(predictor: Predictor, spec: ModelSpec):
    """The signatures of a version.

    Returns:
        `GetModelMetadataResponse`.

    Raises:
        RequestError: If there is no such model or version.
    """
    version = predictor.find(spec).loaded
    response = get_model_metadata_pb2.GetModelMetadataResponse()
    response.model_spec.name = spec.name
    response.model_spec.version.value = version.number
    definitions = get_model_metadata_pb2.SignatureDefMap()
    for name, definition in version.definitions.items():
        definitions.signature_def[name].CopyFrom(definition)
    response.metadata["signature_def"].Pack(definitions)
    return response


def as_json(message) -> dict:
    """A message as the REST API writes it, with its own names."""
    return json_format.MessageToDict(
        message,
        preserving_proto_field_name=True,
        # TensorFlow Serving writes what is empty, too, such as error_message.
        always_print_fields_with_no_presence=True,
    )
