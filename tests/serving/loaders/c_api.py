"""Translates through TensorFlow's C library, without its Python.

    python c_api.py VERSION INPUT OUTPUT < texts.json > translations.json

INPUT and OUTPUT are names of tensors, such as serving_default_text:0.
"""

import ctypes
import importlib.util
import json
import pathlib
import sys

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


def checked(name, *arguments, returns=ctypes.c_void_p):
    """Calls a function whose last argument is the status."""
    result = call(name, *arguments, status, returns=returns)
    if call("TF_GetCode", status, returns=ctypes.c_int):
        message = call("TF_Message", status, returns=ctypes.c_char_p)
        raise SystemExit(f"{name}: {message.decode()}")
    return result


def tensor_of(texts):
    """A TF_Tensor of strings [B]."""
    shape = (ctypes.c_int64 * 1)(len(texts))
    size = ctypes.c_size_t(STRING_SIZE * len(texts))
    tensor = call(
        "TF_AllocateTensor", ctypes.c_int(STRING), shape, ctypes.c_int(1), size
    )
    address = call("TF_TensorData", tensor)
    for index, text in enumerate(texts):
        place = address + STRING_SIZE * index
        call("TF_StringInit", place, returns=None)
        encoded = text.encode()
        length = ctypes.c_size_t(len(encoded))
        call("TF_StringCopy", place, encoded, length, returns=None)
    return tensor


def texts_of(tensor):
    """The strings [B] of a TF_Tensor."""
    count = call("TF_Dim", tensor, ctypes.c_int(0), returns=ctypes.c_int64)
    address = call("TF_TensorData", tensor)
    texts = []
    for index in range(count):
        place = address + STRING_SIZE * index
        start = call("TF_StringGetDataPointer", place)
        size = call("TF_StringGetSize", place, returns=ctypes.c_size_t)
        texts.append(ctypes.string_at(start, size).decode())
    return texts


version, *names = sys.argv[1:]
ops = package_folder("tensorflow_text") / "python" / "ops"
for path in sorted(ops.glob("_*sentencepiece*.so")):
    checked("TF_LoadLibrary", str(path).encode())
graph = call("TF_NewGraph")
tags = (ctypes.c_char_p * 1)(b"serve")
session = checked(
    "TF_LoadSessionFromSavedModel",
    call("TF_NewSessionOptions"),
    None,
    version.encode(),
    tags,
    ctypes.c_int(1),
    graph,
    None,
)


def output(name):
    """The TF_Output of a tensor's name."""
    operation, _, index = name.partition(":")
    found = call("TF_GraphOperationByName", graph, operation.encode())
    assert found, f"no operation {operation}"
    return (Output * 1)(Output(found, int(index)))


inputs, outputs = map(output, names)
texts = json.load(sys.stdin)
translations = []
for start in range(0, len(texts), 50):
    fed = (ctypes.c_void_p * 1)(tensor_of(texts[start : start + 50]))
    fetched = (ctypes.c_void_p * 1)()
    one, none = ctypes.c_int(1), ctypes.c_int(0)
    checked(
        "TF_SessionRun",
        *(session, None),
        *(inputs, fed, one),
        *(outputs, fetched, one),
        *(None, none, None),
    )
    translations += texts_of(fetched[0])
    call("TF_DeleteTensor", fed[0], returns=None)
    call("TF_DeleteTensor", fetched[0], returns=None)
assert "tensorflow" not in sys.modules
json.dump(translations, sys.stdout)
