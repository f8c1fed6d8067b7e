"""Arrays to JSON, as TensorFlow Serving's REST API does it.

A row request is answered by `predictions`, a columnar one by `outputs`. A
signature's only output stands without its name.

JSON has no number for what is not finite. TensorFlow Serving writes the bare
words NaN, Infinity and -Infinity, and so do answers here. Python reads them.
"""

import base64
import json
from collections.abc import Mapping

import numpy as np

from keras_attention.server import errors

# Of an answer. In memory, each takes some 100 bytes.
_MOST_VALUES = 4_000_000
# So many floats are written at a time. In between, other threads go on.
_CHUNK = 4096
# `json.dumps` would make an encoder for each item of a list.
_encode = json.JSONEncoder(ensure_ascii=False).encode


def from_arrays(outputs: Mapping[str, np.ndarray], rows: bool) -> dict:
    """The answer to a request, as objects of JSON.

    Args:
        outputs: name -> array.
        rows: whether the request had rows.

    Raises:
        RequestError: If rows are asked for, and an output has none or another
            number of them, or if there are too many values.
    """
    num_values = sum(array.size for array in outputs.values())
    if num_values > _MOST_VALUES:
        raise errors.invalid(
            f"The answer would have {num_values} values, and JSON has at most "
            f"{_MOST_VALUES}. Split the request."
        )
    values = {name: _values(name, array) for name, array in outputs.items()}
    only = next(iter(values.values())) if len(values) == 1 else None
    if not rows:
        return {"outputs": values if only is None else only}
    num_rows = None
    for name, array in outputs.items():
        if not array.shape:
            raise errors.invalid(
                f"Tensor name: {name} has no shape information . Ask for "
                "columns, by 'inputs'."
            )
        if num_rows not in (None, len(array)):
            raise errors.invalid(
                f"Tensor name: {name} has inconsistent batch size: "
                f"{len(array)} expecting: {num_rows}. Ask for columns, by "
                "'inputs'."
            )
        num_rows = len(array)
    if only is not None:
        return {"predictions": only}
    lines = zip(*values.values(), strict=True)
    return {
        "predictions": [dict(zip(values, line, strict=True)) for line in lines]
    }


def dump(answer: Mapping) -> bytes:
    """The bytes of an answer.

    A list is written item by item: in between, other threads go on.
    """
    ((key, value),) = answer.items()
    if isinstance(value, list):
        text = f"[{', '.join(map(_encode, value))}]"
    else:
        text = _encode(value)
    return f'{{"{key}": {text}}}'.encode("utf-8", "replace")


def _values(name, array):
    """An array as lists of what JSON has."""
    flat = array.ravel()
    if array.dtype == object and name.endswith("_bytes"):
        leaves = [{"b64": base64.b64encode(value).decode()} for value in flat]
    elif array.dtype == object:
        leaves = [value.decode("utf-8", "replace") for value in flat]
    elif array.dtype.kind == "f":
        # 0.1 in float32, and not 0.10000000149011612.
        leaves = [
            float(text)
            for start in range(0, flat.size, _CHUNK)
            for text in flat[start : start + _CHUNK].astype(str)
        ]
    elif array.dtype.kind in "biu":
        leaves = flat.tolist()
    else:
        raise errors.invalid(
            f"Failed to write JSON value for tensor type: {array.dtype}"
        )
    return np.array(leaves, object).reshape(array.shape).tolist()
