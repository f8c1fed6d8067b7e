"""Searches whose choices come with each text: the signatures of `per_request`.

Each choice is an input. One that is left out has the value of the export, which
stands in the SavedModel beside the input. What shapes the graph cannot be one:
groups of beams, the most beams and the number of samples.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_attention.config import search as searches
from keras_attention.serving import kinds

SEARCH, SAMPLE = "search", "sample"
_OUTPUTS = {"translations": ("beams",), "scores": ("beams",)}
# These have another value for "no limit" than None, which is no number.
_NO_LIMIT = {"top_k": 0, "min_p": 0.0}


def signatures(search: searches.Search) -> dict[str, kinds.Signature]:
    """The declarations of both, by their names.

    Args:
        search: the choices of the export, without one that is None but for
            those that say what tokens are drawn from.
    """
    both = {
        "no_repeat_ngram_size": search.no_repeat_ngram_size,
        "min_length": search.min_length,
        "prefix": "",
    }
    choices = {
        SEARCH: {
            "num_beams": search.num_beams,
            "length_penalty": float(search.length_penalty),
            "coverage_penalty": float(search.coverage_penalty),
            **both,
            "terms": "",
        },
        SAMPLE: {
            "temperature": float(search.temperature or 1),
            "top_k": search.top_k or 0,
            "top_p": float(search.top_p or 1),
            "min_p": float(search.min_p or 0),
            "sampling_seed": search.sampling_seed,
            **both,
        },
    }
    return {
        name: kinds.Signature(
            # In this order for `graph`.
            tuple(sorted(["text", *defaults])),
            _OUTPUTS,
            (),
            defaults,
        )
        for name, defaults in choices.items()
    }


def values(
    name: str, defaults: Mapping[str, Any], asked: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """The numbers that a call of a signature takes, each [1]: for all texts.

    Args:
        name: of the signature.
        defaults: `kinds.Signature.choices`.
        asked: choice -> value, where it is not the export's.

    Raises:
        ValueError: If there is no such choice, or a value is out of bounds.
    """
    numbers = {
        key: value
        for key, value in defaults.items()
        if not isinstance(value, str)
    }
    for key in asked:
        if key not in numbers:
            raise ValueError(
                f"{name} takes {', '.join(numbers)}, and not {key}."
            )
    asked = {key: one for key, one in asked.items() if one is not None}
    searches.of(
        **{
            key: one
            for key, one in asked.items()
            if key not in _NO_LIMIT or one != _NO_LIMIT[key]
        }
    )
    if asked.get("temperature") == 0:
        raise ValueError(
            "sample draws each token, so its temperature must be above 0. "
            "`search` is the search without a temperature."
        )
    most = numbers.get("num_beams")
    if most and asked.get("num_beams", most) > most:
        raise ValueError(
            f"This model searches with at most {most} beams, as it was "
            f"exported with. Received: num_beams={asked['num_beams']}"
        )
    searches.check_bounds(asked)
    return {
        key: np.array([asked.get(key, value)], kinds.dtype_of(value))
        for key, value in numbers.items()
    }
