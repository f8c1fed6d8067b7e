"""From text to text: models that answer, SavedModels and their cards.

- `translator.Translator`, `continuer.Continuer` and `labeller.Labeller` answer
  with a Keras model; `savedmodel.load` gives what they exported.
- Live and loaded models offer the same: `text_to_text.TextToText`,
  `text_continuation.TextContinuation` and `text_labelling.TextLabelling`.
"""

import typing

from keras_attention import on_demand

__all__ = [
    "batch_translator",
    "cards",
    "continuer",
    "labeller",
    "savedmodel",
    "text_continuation",
    "text_labelling",
    "text_to_text",
    "translator",
]

if typing.TYPE_CHECKING:
    from keras_attention.serving import (
        batch_translator,
        cards,
        continuer,
        labeller,
        savedmodel,
        text_continuation,
        text_labelling,
        text_to_text,
        translator,
    )
else:
    __getattr__, __dir__ = on_demand.modules(__name__, __all__)
