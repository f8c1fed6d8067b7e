"""JSON to arrays, as TensorFlow Serving's REST API does it.

A row request has `instances`, a columnar one `inputs`. A signature's only input
may stand without its name.

A float that is not finite is a bare word, such as Infinity. As JSON has no such
words, a text is taken, too.
"""

import base64
import binascii
import json
import math
from collections.abc import Collection, Mapping

import numpy as np

from keras_attention.server import errors

# The most axes of an array in JSON: `_collect` calls itself as often.
_MOST_AXES = 16
_NOT_FINITE = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
}


def parse(body: bytes) -> dict:
    """The object of a request's body.

    Raises:
        RequestError: If it is not a JSON object, or names its signature by
            something else than a string.
    """
    if not body:
        raise errors.invalid("JSON Parse error: The document is empty.")
    try:
        document = json.loads(body)
    # A ValueError also if the bytes are no UTF-8, a RecursionError from some
    # 1,000 lists in each other on.
    except (ValueError, RecursionError) as error:
        # The parser's message tells a place. It never quotes the text.
        place = getattr(error, "pos", None)
        at = "" if place is None else f" at offset: {place}"
        raise errors.invalid(f"JSON Parse error: Invalid value.{at}") from error
    if not isinstance(document, dict):
        raise errors.invalid(
            f"Expected JSON object. Received: {_kind(document)}"
        )
    if not isinstance(document.get("signature_name", ""), str):
        raise errors.invalid("'signature_name' key must be a string value.")
    return document


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
    if {"instances", "inputs"} <= document.keys():
        raise errors.invalid(
            "Not formatted correctly expecting only one of 'inputs' or "
            "'instances' keys to exist"
        )
    if not {"instances", "inputs"} & document.keys():
        raise errors.invalid("Missing 'inputs' or 'instances' key")
    if "instances" in document:
        columns = _columns_of_rows(document["instances"], specs, optional)
    else:
        columns = _columns(document["inputs"], specs, optional)
    return {
        name: _array(values, specs[name], name, max_rows)
        for name, values in columns.items()
    }


def _columns_of_rows(rows, specs, optional) -> dict[str, list]:
    if not isinstance(rows, list):
        raise errors.invalid("Expected 'instances' to be an list/array")
    if not rows:
        raise errors.invalid("No values in 'instances' array")
    are_objects = _is_object(rows[0])
    names = {*rows[0]} if are_objects else _only(specs, optional)
    if not are_objects and not names:
        raise errors.invalid(
            "instances is a plain list, but expecting list of objects as "
            "multiple input tensors required as per tensorinfo_map: "
            f"{', '.join(sorted(specs))}"
        )
    are_known = names <= specs.keys() <= names | {*optional}
    for place, row in enumerate(rows):
        if _is_object(row) != are_objects:
            kinds = (
                ("object", "list") if are_objects else ("value/list", "object")
            )
            raise errors.invalid(
                f"Expecting {kinds[0]} but got {kinds[1]} at item {place} of "
                "input list"
            )
        if are_objects and not (are_known and row.keys() == names):
            raise errors.invalid(
                f"Failed to process element: {place} of 'instances' list. "
                f"JSON object keys must be equal to: {','.join(sorted(specs))}"
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
            "inputs is a plain value/list, but expecting an object as multiple "
            "input tensors required as per tensorinfo_map: "
            f"{', '.join(sorted(specs))}"
        )
    return {name: values for name in names}


def _is_object(value) -> bool:
    """Whether a value has names in it: {"b64": "..."} is bytes."""
    return isinstance(value, dict) and not is_bytes(value)


def is_bytes(value) -> bool:
    """Whether a value is bytes in base64."""
    return (
        isinstance(value, dict)
        and len(value) == 1
        and isinstance(value.get("b64"), str)
    )


def _array(values, spec, name, max_rows) -> np.ndarray:
    """Lists in lists to an array. The first of each say its shape."""
    shape = _shape(values)
    if len(shape) > _MOST_AXES:
        raise errors.invalid(
            f"The input {name!r} has {len(shape)} lists in each other, and at "
            f"most {_MOST_AXES} are taken."
        )
    # Before the values are converted, which takes most of the time.
    spec.check(name, shape, max_rows)
    leaves = []
    if not _collect(values, shape, _converter(spec.dtype, name), leaves):
        raise errors.invalid(f"{_uneven(values)}, in the input {name!r}")
    array = np.empty(len(leaves), spec.dtype.as_numpy_dtype)
    # A number that is too large for its type is infinite, as in C++.
    with np.errstate(over="ignore"):
        array[:] = leaves
    return array.reshape(shape)


def _shape(values) -> list[int]:
    """The lengths of the lists, by the first of each."""
    shape = []
    while isinstance(values, list):
        shape.append(len(values))
        values = values[0] if values else None
    return shape


def _collect(values, shape, convert, leaves) -> bool:
    """Appends each converted value. Gives whether all lists have the shape."""
    if not shape:
        if not isinstance(values, list):
            leaves.append(convert(values))
        return not isinstance(values, list)
    if not isinstance(values, list) or len(values) != shape[0]:
        return False
    if len(shape) == 1 and list not in set(map(type, values)):
        # A short cut: most values are here.
        leaves.extend(map(convert, values))
        return True
    return all(_collect(one, shape[1:], convert, leaves) for one in values)


def _uneven(values) -> str:
    """What TensorFlow Serving says of rows whose shapes differ."""
    # Only now: a request that is taken need not be walked through twice.
    first, *others = map(_shape, values)
    for shape in others:
        if math.prod(shape) != math.prod(first):
            return (
                f"Expecting tensor size: {math.prod(first)} but got: "
                f"{math.prod(shape)}"
            )
        if shape != first:
            text, got = (",".join(map(str, one)) for one in (first, shape))
            return f"Expecting shape [{text}] but got: [{got}]"
    return "Encountered list at unexpected size"


def _converter(dtype, name):
    """A function of a value in JSON, to one of a `tf.DType`."""
    is_number = dtype.is_integer or dtype.is_floating
    low, high = (dtype.min, dtype.max) if is_number else (0, 0)
    type_name = errors.TYPE_NAMES.get(dtype.name, dtype.name)

    def wrong(value):
        return errors.invalid(
            f"JSON Value of Type: {_kind(value)} is not of expected type: "
            f"{type_name}, in the input {name!r}"
        )

    def to_string(value):
        if not isinstance(value, str) and not is_bytes(value):
            raise wrong(value)
        return to_bytes(value)

    def to_bool(value):
        if not isinstance(value, bool):
            raise wrong(value)
        return value

    # By its type: for Python, a truth value is an int as well.
    def to_int(value):
        if type(value) is not int or not low <= value <= high:
            raise wrong(value)
        return value

    def to_float(value):
        if isinstance(value, str) and value in _NOT_FINITE:
            return _NOT_FINITE[value]
        if type(value) not in (int, float):
            raise wrong(value)
        try:
            return float(value)
        except OverflowError:
            raise errors.invalid(
                f"Cannot convert JSON value to {type_name} without loss of "
                f"precision, in the input {name!r}"
            ) from None

    if dtype.name == "string":
        return to_string
    if dtype.is_bool:
        return to_bool
    if dtype.is_integer:
        return to_int
    if dtype.is_floating:
        return to_float
    raise errors.RequestError(
        errors.Code.UNIMPLEMENTED,
        f"Conversion of JSON Value to type: {type_name}",
    )


def to_bytes(value: str | dict) -> bytes:
    """The bytes of a text, or of base64."""
    if isinstance(value, str):
        # Half a surrogate pair has no bytes.
        return value.encode("utf-8", "replace")
    # Some encoders break lines, and some leave the padding out.
    text = "".join(value["b64"].split())
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise errors.invalid("Unable to base64 decode") from error


def _kind(value) -> str:
    names = {dict: "Object", list: "Array", str: "String", bool: "Bool"}
    return names.get(type(value), "Null" if value is None else "Number")
