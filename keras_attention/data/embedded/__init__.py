"""Corpora that are made, not read: they need no file and no network."""

import typing

from keras_attention import on_demand

__all__ = [
    "addition",
    "colours",
    "copying",
    "digits",
    "mentions",
    "multisets",
    "phrases",
    "pronunciations",
    "referents",
    "sentences",
    "stories",
]

if typing.TYPE_CHECKING:
    from keras_attention.data.embedded import (
        addition,
        colours,
        copying,
        digits,
        mentions,
        multisets,
        phrases,
        pronunciations,
        referents,
        sentences,
        stories,
    )
else:
    __getattr__, __dir__ = on_demand.modules(__name__, __all__)
