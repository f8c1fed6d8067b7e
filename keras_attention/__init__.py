"""Attention in Keras 3, from the RNN encoder-decoder to the Transformer.

Names are imported at first use: `ka.layers` and `ka.models` need only Keras
(any backend), and the command line answers without TensorFlow. Keras loads a
`.keras` file only if it knows the classes in it: use any name of `ka.layers`
or of `ka.models`, such as `ka.models.Seq2Seq`, before
`keras.models.load_model`.
"""

import importlib
import typing

from keras_attention import on_demand

__version__ = "0.1.0"
__all__ = [
    "Translator",
    "__version__",
    "config",
    "data",
    "decoding",
    "devices",
    "evaluation",
    "layers",
    "load",
    "models",
    "plotting",
    "serving",
    "tasks",
    "tokens",
    "train",
    "training",
]
# The other names are modules of this package.
_ORIGINS = {
    "Translator": "serving.translator",
    "load": "runs",
    "train": "runs",
}

# Type checkers and editors read these imports. Python reads the functions
# below, which they must not see: to them, any name would be right.
if typing.TYPE_CHECKING:
    from keras_attention import (
        config,
        data,
        decoding,
        devices,
        evaluation,
        layers,
        models,
        plotting,
        serving,
        tasks,
        tokens,
        training,
    )
    from keras_attention.runs import load, train
    from keras_attention.serving.translator import Translator
else:

    def __getattr__(name):
        if name not in __all__:
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}"
            )
        if name in _ORIGINS:
            on_demand.import_tensorflow()
            origin = importlib.import_module(f"{__name__}.{_ORIGINS[name]}")
            return getattr(origin, name)
        return importlib.import_module(f"{__name__}.{name}")

    def __dir__():
        return __all__
