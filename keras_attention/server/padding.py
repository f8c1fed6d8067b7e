"""Outputs that are padded to the longest row of their batch, and their cut.

A padded output of a SavedModel of this package has axes that run over tokens.
The tokens themselves are an output too, with "" as padding: they say how long
each axis is without the rows of other requests.
"""

from collections.abc import Mapping

import numpy as np

TOKENS = ("source_tokens", "pair_tokens", "target_tokens")


def axes(ranks: Mapping[str, int]) -> dict[str, dict[int, str]]:
    """The axes of a signature's outputs that run over tokens.

    Args:
        ranks: name of an output -> its number of axes.

    Returns:
        Name of an output -> axis -> name of the tokens along it.
    """
    found = {name: {1: name} for name in TOKENS if ranks.get(name) == 2}
    if "source_tokens" not in found:
        return found
    if "target_tokens" in found:
        pairs = {"attention": ("target_tokens", "source_tokens")}
    elif "pair_tokens" in found:
        pairs = {
            "attention": ("source_tokens", "pair_tokens"),
            "attention_pair": ("pair_tokens", "source_tokens"),
        }
    else:
        return found | _self_attention(ranks)
    for name, (rows, columns) in pairs.items():
        if ranks.get(name) == 3:
            found[name] = {1: rows, 2: columns}
    return found


def _self_attention(ranks) -> dict[str, dict[int, str]]:
    """Of a text's tokens alone: [B, R, S] of hops, [B, ..., S, S] of heads."""
    rank = ranks.get("attention", 0)
    if rank < 3:
        return {}
    last = {rank - 1: "source_tokens"}
    before = {rank - 2: "source_tokens"} if rank > 3 else {}
    return {"attention": last | before}


def cut(
    outputs: Mapping[str, np.ndarray], padded: Mapping[str, Mapping[int, str]]
) -> dict[str, np.ndarray]:
    """The outputs of some rows without the padding that all of them have.

    Args:
        outputs: name -> array [B, ...].
        padded: what `axes` found.
    """
    lengths = {
        name: _longest(outputs[name]) for name in TOKENS if name in padded
    }
    result = dict(outputs)
    for name, names_of_axes in padded.items():
        array = outputs[name]
        index = [slice(None)] * array.ndim
        for axis, tokens in names_of_axes.items():
            index[axis] = slice(lengths[tokens])
        result[name] = array[tuple(index)]
    return result


def _longest(tokens: np.ndarray) -> int:
    """The most tokens of a row: strings [B, T] with "" as padding."""
    places = np.flatnonzero((tokens != b"").any(axis=0))
    return int(places[-1]) + 1 if places.size else 0
