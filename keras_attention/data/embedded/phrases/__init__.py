"""The embedded corpus: phrases that two languages form by rule."""

from keras_attention.data.embedded.phrases.generate import (
    CATEGORIES,
    Pair,
    generate,
)

__all__ = ["CATEGORIES", "Pair", "generate"]
