"""JSON to arrays, as TensorFlow Serving's REST API does it.

A row request has `instances`, a columnar one `inputs`. A signature's only input
may stand without its name.

A float may be one of the texts that `json_outputs` writes for what is not
finite, or one of TensorFlow Serving's bare words.
"""

import base64
import binascii
import json
import math
from collections.abc import Collection, Mapping

import numpy as np

from keras_attention.server import errors

# The most axes of an array in JSON.
_MOST_AXES = 16
_NOT_FINITE = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
}


def parse(body: bytes) -> dict:
    """The object of a request's body.

    Raises:
        RequestError: If it is not a JSON object with `instances` or `inputs`.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        # The parser's message tells a place. It never quotes the text.
        place = getattr(error, "pos", None)
        at = "" if place is None else f" at offset: {place}"
        raise errors.invalid(
            f"JSON Parse error{at}. Expected a JSON object in UTF-8"
        ) from error
    if not isinstance(document, dict):
        raise errors.invalid(
            f"Expected a JSON object. Received: {_kind(document)}"
        )
    if ("instances" in document) == ("inputs" in document):
        raise errors.invalid("Expected one of the keys 'inputs' or 'instances'")
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise errors.invalid("'signature_name' key must be a string value.")
    return document


def is_row(document: Mapping) -> bool:
    """Whether a request has rows, and not columns."""
    return "instances" in document


def to_arrays(
    document: Mapping,
    specs: Mapping,
    optional: Collection[str] = (),
    max_rows: float = math.inf,
) -> dict[str, np.ndarray]:
    """The inputs of a request.

    Args:
        document: what `parse` gave.
        specs: name of an input -> its `signatures.Spec`.
        optional: the inputs that may be left out.
        max_rows: the most rows that there may be.

    Raises:
        RequestError: If a value is missing, of another type, or ragged.
    """
    if is_row(document):
        columns = _columns_of_rows(document["instances"], specs, optional)
    else:
        columns = _columns(document["inputs"], specs, optional)
    return {
        name: _array(values, specs[name], name, max_rows)
        for name, values in columns.items()
    }


def _columns_of_rows(rows, specs, optional) -> dict[str, list]:
    if not isinstance(rows, list):
        raise errors.invalid("Expected 'instances' to be a list/array")
    if not rows:
        raise errors.invalid("No values in 'instances' array")
    are_objects = _is_object(rows[0])
    names = {*rows[0]} if are_objects else _only(specs, optional)
    if not are_objects and not names:
        raise errors.invalid(
            "instances is a plain list, but expecting list of objects as the "
            f"signature has the inputs {sorted(specs)}"
        )
    are_known = names <= specs.keys() <= names | {*optional}
    for place, row in enumerate(rows):
        if _is_object(row) != are_objects:
            raise errors.invalid(
                "Expected objects or values in 'instances', not both. "
                f"Received: another kind at item {place}"
            )
        if are_objects and not (are_known and row.keys() == names):
            raise errors.invalid(
                f"Failed to process element: {place} of 'instances' list. "
                f"Expected the keys {sorted(specs)}. "
                f"Received: {sorted(row)[:20]}"
            )
    if are_objects:
        return {name: [row[name] for row in rows] for name in names}
    return {name: rows for name in names}


def _only(specs, optional) -> set[str]:
    """The only input that a request has to have, or none."""
    names = {*specs} - {*optional} or {*specs}
    return names if len(names) == 1 else set()


def _columns(values, specs, optional) -> dict:
    if _is_object(values):
        missing = sorted(specs.keys() - values.keys() - {*optional})
        if missing:
            raise errors.invalid(
                f"Missing named input: {missing[0]} in 'inputs' object."
            )
        # TensorFlow Serving ignores the other names.
        return {name: values[name] for name in specs if name in values}
    names = _only(specs, optional)
    if not names:
        raise errors.invalid(
            "inputs is a plain value/list, but expecting an object as the "
            f"signature has the inputs {sorted(specs)}"
        )
    return {name: values for name in names}


def _is_object(value) -> bool:
    """Whether a value has names in it: {"b64": "..."} is bytes."""
    return isinstance(value, dict) and not _is_bytes(value)


def _is_bytes(value) -> bool:
    return (
        isinstance(value, dict)
        and len(value) == 1
        and isinstance(value.get("b64"), str)
    )


def _array(values, spec, name, max_rows) -> np.ndarray:
    """Lists in lists to an array. The first of each say its shape."""
    shape, first = [], values
    while isinstance(first, list):
        shape.append(len(first))
        first = first[0] if first else None
    if len(shape) > _MOST_AXES:
        raise errors.invalid(
            f"Expected at most {_MOST_AXES} lists in each other. "
            f"Received: {len(shape)} in the input {name!r}"
        )
    spec.check(name, shape, max_rows)
    dtype = spec.dtype
    convert = _converter(dtype, name)
    leaves = []
    _collect(values, shape, name, convert, leaves)
    array = np.empty(len(leaves), dtype.as_numpy_dtype)
    array[:] = leaves
    return array.reshape(shape)


def _collect(values, shape, name, convert, leaves) -> None:
    """Appends each converted value, if all lists have the shape."""
    if not shape:
        if isinstance(values, list):
            raise _ragged(name, "a list where the first has a value")
        leaves.append(convert(values))
        return
    if not isinstance(values, list):
        raise _ragged(name, "a value where the first has a list")
    if len(values) != shape[0]:
        raise _ragged(name, f"{len(values)} values, and {shape[0]} before")
    if len(shape) == 1 and list not in set(map(type, values)):
        # A short cut: most values are here.
        leaves.extend(map(convert, values))
        return
    for value in values:
        _collect(value, shape[1:], name, convert, leaves)


def _ragged(name, received) -> errors.RequestError:
    return errors.invalid(
        f"Expected values of one shape in the input {name!r}. "
        f"Received: {received}"
    )


def _converter(dtype, name):
    """A function of a value in JSON, to one of a `tf.DType`."""
    is_number = dtype.is_integer or dtype.is_floating
    low, high = (dtype.min, dtype.max) if is_number else (0, 0)
    if dtype.is_floating:
        high = float(high)
    # Of float32, 2**24 - 1: TensorFlow Serving takes no greater integers.
    most = 2 ** (53 if dtype.name == "float64" else 24) - 1

    def wrong(value):
        return errors.invalid(
            f"JSON Value of Type: {_kind(value)} is not of expected type: "
            f"{dtype.name}, in the input {name!r}"
        )

    def to_bytes(value):
        if not isinstance(value, str) and not _is_bytes(value):
            raise wrong(value)
        return _bytes(value)

    def to_bool(value):
        if not isinstance(value, bool):
            raise wrong(value)
        return value

    def to_int(value):
        if type(value) is not int or not low <= value <= high:
            raise wrong(value)
        return value

    def to_float(value):
        if isinstance(value, str) and value in _NOT_FINITE:
            return _NOT_FINITE[value]
        if type(value) not in (int, float):
            raise wrong(value)
        is_whole = type(value) is int
        if abs(value) != math.inf and abs(value) > (most if is_whole else high):
            raise errors.invalid(
                f"Cannot convert JSON value to {dtype.name} without loss of "
                f"precision, in the input {name!r}"
            )
        return float(value)

    if dtype.name == "string":
        return to_bytes
    if dtype.is_bool:
        return to_bool
    if dtype.is_integer:
        return to_int
    if dtype.is_floating:
        return to_float
    raise errors.RequestError(
        errors.Code.UNIMPLEMENTED,
        f"Expected an input that JSON can hold. Received: {dtype.name}",
    )


def _bytes(value: str | dict) -> bytes:
    if isinstance(value, str):
        # Half a surrogate pair has no bytes.
        return value.encode("utf-8", "replace")
    text = "".join(value["b64"].split())
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise errors.invalid("Unable to base64 decode") from error


def _kind(value) -> str:
    names = {dict: "Object", list: "Array", str: "String", bool: "Bool"}
    return names.get(type(value), "Null" if value is None else "Number")
