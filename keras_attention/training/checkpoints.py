"""All of a training's state in one file, written whole or not at all."""

import io
import json
import pathlib
import struct
import zipfile
import zlib

import keras
import numpy as np

from keras_attention import files

_META = "__meta__"
# What zipfile, zlib and numpy raise if a file is damaged.
_DAMAGES = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    RuntimeError,
    TypeError,
    ValueError,
)


def save(path: pathlib.Path, arrays: dict, meta: dict) -> None:
    """Writes arrays and a JSON-able dict to one `.npz` file, atomically.

    The file has checksums, by which `load` refuses a damaged one.
    """
    path = pathlib.Path(path)
    text = json.dumps({"meta": meta, "names": [*arrays]})
    # As an array of bytes: an .npz file has arrays alone.
    text = np.frombuffer(text.encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **{_META: text}, **arrays)
    files.write_atomically(path, buffer.getvalue())


def load(path: pathlib.Path) -> tuple[dict, dict]:
    """Reads what `save` wrote.

    Returns:
        `(arrays, meta)`.

    Raises:
        ValueError: If the file is damaged or is no checkpoint.
        OSError: If the file cannot be read.
    """
    arrays = {}
    content = pathlib.Path(path).read_bytes()
    try:
        # zipfile compares the checksum of a member that is read whole.
        # `np.load` would trust the header of the array.
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                member = io.BytesIO(archive.read(name))
                # To read pickled objects would be to run a stranger's code.
                arrays[name.removesuffix(".npy")] = np.lib.format.read_array(
                    member, allow_pickle=False
                )
        text = json.loads(arrays.pop(_META).tobytes())
        if text["names"] != [*arrays]:
            raise ValueError("arrays are missing")
    except _DAMAGES as e:
        raise ValueError(
            f"{path} is damaged, or not a file of `keras-attention train` "
            f"({e}). Restore the file, or train again with another --output."
        ) from e
    return arrays, text["meta"]


def variables_to_arrays(prefix: str, variables, values=None) -> dict:
    """The values of variables, or other ones, named by place and path."""
    values = variables if values is None else values
    # By place too: weights of a loop's cells may have one path.
    return {
        f"{prefix}/{index:04d}/{variable.path}": (
            keras.ops.convert_to_numpy(value)
        )
        for index, (variable, value) in enumerate(
            zip(variables, values, strict=True)
        )
    }


def arrays_to_variables(arrays: dict, prefix: str, variables: list) -> None:
    """Gives variables the values that `variables_to_arrays` took.

    Raises:
        ValueError: If their number or shapes differ. The checkpoint then has
            another configuration.
    """
    names = sorted(name for name in arrays if name.startswith(f"{prefix}/"))
    shapes = [tuple(arrays[name].shape) for name in names]
    expected = [tuple(variable.shape) for variable in variables]
    if shapes != expected:
        pairs = zip(names, shapes, expected, strict=False)
        others = [f"{name}: {a}, not {b}" for name, a, b in pairs if a != b]
        others.append(f"{len(shapes)} arrays, not {len(expected)}")
        # All are compared before one is assigned: a refusal changes nothing.
        raise ValueError(
            f"The checkpoint has another {prefix} than this configuration: "
            f"{others[0]}. Use the checkpoint's configuration, or another "
            "output folder."
        )
    for name, variable in zip(names, variables, strict=True):
        variable.assign(arrays[name])
