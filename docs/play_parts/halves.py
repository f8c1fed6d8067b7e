"""Arrays as a page keeps them: 16-bit floats in base64."""

import base64

import numpy as np


def rounded(array) -> np.ndarray:
    """An array as it is after 16 bits have kept it: float32."""
    return np.asarray(array).astype("float16").astype("float32")


def packed(array) -> dict:
    """The shape, and the values row by row, lowest byte first."""
    array = np.asarray(array)
    values = array.astype("<f2").tobytes()
    return {
        "shape": list(array.shape),
        "halves": base64.b64encode(values).decode("ascii"),
    }


def unpacked(kept: dict) -> np.ndarray:
    """What `packed` kept: float64."""
    values = np.frombuffer(base64.b64decode(kept["halves"]), "<f2")
    return values.astype("float64").reshape(kept["shape"])
