"""From text to ids and back."""

import typing

from keras_attention import on_demand

__all__ = [
    "line_tokenizer",
    "published",
    "tokenizer",
    "vocabulary",
]

if typing.TYPE_CHECKING:
    from keras_attention.data.vocabularies import (
        line_tokenizer,
        published,
        tokenizer,
        vocabulary,
    )
else:
    __getattr__, __dir__ = on_demand.modules(__name__, __all__)
