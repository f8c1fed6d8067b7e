"""What all programs of this folder share: calls in, answers out.

A program reads a list of calls in JSON from standard input. A call is a name
and inputs: `["n_best", {"text": "one"}]`. The program prints the list of the
answers. If the name is a signature's, the answer is its outputs for this one
row. Two names are no signatures:

- `metadata` is answered by the inputs and outputs of each signature, with the
  names of their types,
- `status` is answered by "AVAILABLE".

A call that fails is answered by its `error`. The programs run in environments
of their own, so that this file imports the standard library alone.
"""

import json
import sys
from collections.abc import Callable

# Types as TensorFlow names them, by Triton's names.
TYPES = {
    "BOOL": "DT_BOOL",
    "BYTES": "DT_STRING",
    "FP32": "DT_FLOAT",
    "INT32": "DT_INT32",
    "INT64": "DT_INT64",
}


def answer(ask: Callable) -> None:
    """Answers the calls by a function of a name and inputs."""
    answers = []
    for name, inputs in json.load(sys.stdin):
        try:
            answers.append(ask(name, inputs))
        except Exception as error:
            answers.append({"error": f"{type(error).__name__}: {error}"})
    print(json.dumps(answers))


def plain(value):
    """A value of lists and bytes as JSON has it."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value


def shaped(values: list, shape: list) -> list:
    """Lists in lists, of the values of an array one after the other."""
    count, *rest = shape
    if not rest:
        return values
    size = len(values) // max(count, 1)
    return [
        shaped(values[size * index : size * (index + 1)], rest)
        for index in range(count)
    ]


def first_rows(arrays: dict) -> dict:
    """Name -> the first row of an array of NumPy."""
    return {name: plain(array.tolist()[0]) for name, array in arrays.items()}
