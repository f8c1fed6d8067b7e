"""Calls a SavedModel through TensorFlow's C library, without its Python.

    python ask_c_library.py VERSION TENSORS < CALLS

TENSORS is in JSON the answer of `ask_tensorflow.py` to the call `tensors`. The
library's functions are those of `tensorflow/c/c_api.h`.
"""

import ctypes
import importlib.util
import json
import pathlib
import sys

import calls

# Number of a type -> the type in C; `c_api.h` has the numbers.
NUMBERS = {
    1: ctypes.c_float,
    3: ctypes.c_int32,
    9: ctypes.c_int64,
    10: ctypes.c_bool,
}
STRING = 7
STRING_SIZE = 24  # sizeof(TF_TString)


class Output(ctypes.Structure):
    """TF_Output: an operation and which of its outputs."""

    _fields_ = [("operation", ctypes.c_void_p), ("index", ctypes.c_int)]


def package_folder(name):
    """Where a package lies, found without importing it."""
    return pathlib.Path(importlib.util.find_spec(name).origin).parent


folder = package_folder("tensorflow")
ctypes.CDLL(
    str(next(folder.glob("libtensorflow_framework.*2*"))),
    mode=ctypes.RTLD_GLOBAL,
)
library = ctypes.CDLL(str(next(folder.glob("libtensorflow_cc.*2*"))))


def call(name, *arguments, returns=ctypes.c_void_p):
    """Calls a function of the library; integers are pointers."""
    function = getattr(library, name)
    function.restype = returns
    return function(
        *(ctypes.c_void_p(a) if type(a) is int else a for a in arguments)
    )


status = call("TF_NewStatus")


def checked(name, *arguments):
    """Calls a function whose last argument is the status."""
    result = call(name, *arguments, status)
    if call("TF_GetCode", status, returns=ctypes.c_int):
        message = call("TF_Message", status, returns=ctypes.c_char_p)
        raise RuntimeError(f"{name}: {message.decode()}")
    return result


def loaded(version):
    """The graph and a session of a SavedModel."""
    ops = package_folder("tensorflow_text") / "python" / "ops"
    for path in sorted(ops.glob("_*sentencepiece*.so")):
        checked("TF_LoadLibrary", str(path).encode())
    graph = call("TF_NewGraph")
    return graph, checked(
        "TF_LoadSessionFromSavedModel",
        *(call("TF_NewSessionOptions"), None, version.encode()),
        *((ctypes.c_char_p * 1)(b"serve"), ctypes.c_int(1), graph, None),
    )


def tensor_of(text):
    """A TF_Tensor of one string, [1]."""
    tensor = call(
        "TF_AllocateTensor",
        *(ctypes.c_int(STRING), (ctypes.c_int64 * 1)(1), ctypes.c_int(1)),
        ctypes.c_size_t(STRING_SIZE),
    )
    place = call("TF_TensorData", tensor)
    encoded = text.encode()
    call("TF_StringInit", place, returns=None)
    length = ctypes.c_size_t(len(encoded))
    call("TF_StringCopy", place, encoded, length, returns=None)
    return tensor


def first_row(tensor):
    """The first row of a TF_Tensor."""
    rank = call("TF_NumDims", tensor, returns=ctypes.c_int)
    shape = [
        call("TF_Dim", tensor, ctypes.c_int(axis), returns=ctypes.c_int64)
        for axis in range(rank)
    ]
    count = call("TF_TensorElementCount", tensor, returns=ctypes.c_int64)
    address = call("TF_TensorData", tensor)
    dtype = call("TF_TensorType", tensor, returns=ctypes.c_int)
    if not count:
        values = []
    elif dtype == STRING:
        places = range(address, address + STRING_SIZE * count, STRING_SIZE)
        values = [text_at(place) for place in places]
    else:
        values = list((NUMBERS[dtype] * count).from_address(address))
    return calls.shaped(values, shape)[0]


def text_at(place):
    """The text of a TF_TString."""
    start = call("TF_StringGetDataPointer", place)
    size = call("TF_StringGetSize", place, returns=ctypes.c_size_t)
    return calls.plain(ctypes.string_at(start, size) if size else b"")


def places_of(names):
    """The TF_Outputs of the names of tensors, such as "operation:0"."""
    found = []
    for name in names:
        operation, _, index = name.partition(":")
        place = call("TF_GraphOperationByName", graph, operation.encode())
        found.append(Output(place, int(index)))
    return (Output * len(found))(*found)


def ask(name, inputs):
    """The answer to a call."""
    tensors = json.loads(sys.argv[2])[name]
    places, names = tensors["inputs"], tensors["outputs"]
    fed = [tensor_of(inputs[key]) for key in places]
    fetched = (ctypes.c_void_p * len(names))()
    checked(
        "TF_SessionRun",
        *(session, None),
        *(places_of(places.values()), (ctypes.c_void_p * len(fed))(*fed)),
        ctypes.c_int(len(fed)),
        *(places_of(names.values()), fetched, ctypes.c_int(len(names))),
        *(None, ctypes.c_int(0), None),
    )
    outputs = {
        key: first_row(tensor)
        for key, tensor in zip(names, fetched, strict=True)
    }
    for tensor in [*fed, *fetched]:
        call("TF_DeleteTensor", tensor, returns=None)
    return outputs


graph, session = loaded(sys.argv[1])
calls.answer(ask)
if "tensorflow" in sys.modules:
    sys.exit("Expected TensorFlow's C library alone. Received: its Python")
