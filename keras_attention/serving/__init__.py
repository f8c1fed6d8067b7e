"""From text to text: models that answer, SavedModels and their cards.

- `kinds` declares what each kind of model takes and gives.
- `translator.Translator`, `continuer.Continuer` and `labeller.Labeller` answer
  lists of texts, live or loaded (`loading.load`).
- `sentences` and `placeholders` stand around a translator: texts are split and
  joined, and strings come out as they went in.
- A `graph.Graph` beside each has its functions of tensors, which
  `savedmodel.export` writes.
"""

import typing

from keras_attention import on_demand

__all__ = [
    "cards",
    "continuer",
    "kinds",
    "labeller",
    "loading",
    "placeholders",
    "savedmodel",
    "sentences",
    "text_model",
    "translator",
]

if typing.TYPE_CHECKING:
    from keras_attention.serving import (
        cards,
        continuer,
        kinds,
        labeller,
        loading,
        placeholders,
        savedmodel,
        sentences,
        text_model,
        translator,
    )
else:
    __getattr__, __dir__ = on_demand.modules(__name__, __all__)
