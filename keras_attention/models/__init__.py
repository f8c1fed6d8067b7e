"""One model for each paper, in the file of the paper's name.

`catalog` lists them and needs no Keras. The first use of any other name
imports them all: from then on Keras finds their classes in `.keras` files.
"""

import importlib

from keras_attention.models import catalog

_CLASSES = {
    "Classifier": "classifier",
    "LanguageModel": "language_model",
    "Seq2Seq": "seq2seq",
    # No model of text: it is not in the catalogue.
    "VisionTransformer": "vision_transformer",
}
_MODULES = (*_CLASSES.values(), *catalog.CATALOG)
_CLASSES |= {entry.class_name: name for name, entry in catalog.CATALOG.items()}
__all__ = sorted([*_CLASSES, "catalog"])


def __getattr__(name):
    if name not in _MODULES and name not in _CLASSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # The contracts first: the papers' files import them.
    modules = {
        module: importlib.import_module(f"{__name__}.{module}")
        for module in _MODULES
    }
    if name in _CLASSES:
        return getattr(modules[_CLASSES[name]], name)
    return modules[name]


def __dir__():
    return __all__
