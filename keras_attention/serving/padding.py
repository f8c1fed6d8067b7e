"""Outputs that are padded to the longest row of their batch, and their cut."""

from collections.abc import Mapping

import numpy as np


def cut(
    outputs: Mapping[str, np.ndarray], padded: Mapping[str, Mapping[int, str]]
) -> dict[str, np.ndarray]:
    """The outputs of some rows without the padding that all of them have.

    Args:
        outputs: name -> array [B, ...].
        padded: `kinds.Signature.padded`.
    """
    result = dict(outputs)
    for name, axes in padded.items():
        index = [slice(None)] * outputs[name].ndim
        for axis, texts in axes.items():
            index[axis] = slice(_longest(outputs[texts]))
        result[name] = outputs[name][tuple(index)]
    return result


def _longest(texts: np.ndarray) -> int:
    """The most texts of a row: strings [B, T] with "" as padding."""
    places = np.flatnonzero((texts != b"").any(axis=0))
    return int(places[-1]) + 1 if places.size else 0
