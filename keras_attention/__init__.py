"""Attention in Keras 3, from the RNN encoder-decoder to the Transformer.

Submodules are imported at first use: `ka.layers` and `ka.models` need only
Keras (any backend), and the command line answers without TensorFlow. Loading
a `.keras` file that holds our layers needs their names registered first:
touch `ka.layers` and `ka.models` before `keras.models.load_model`.
"""

import importlib

__version__ = "0.1.0"

_NAMES = {
    "Seq2Seq": "models",
    "Tokenizer": "text",
    "Translator": "translator",
    "load": "runs",
}
_MODULES = (
    "alignment",
    "alignment_report",
    "callbacks",
    "cards",
    "config",
    "corpora",
    "data",
    "decoding",
    "evaluation",
    "layers",
    "losses",
    "metrics",
    "models",
    "optimizers",
    "plotting",
    "runs",
    "savedmodel",
    "schedules",
    "text",
    "text_to_text",
    "tokens",
    "trainer",
    "training",
    "translator",
)
__all__ = ["__version__", *_NAMES, *_MODULES]


def __getattr__(name):
    if name in _NAMES:
        module = importlib.import_module(f"{__name__}.{_NAMES[name]}")
        return getattr(module, name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
