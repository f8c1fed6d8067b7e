"""Attention in Keras 3, from the RNN encoder-decoder to the Transformer.

Names are imported at first use: `ka.layers` and `ka.models` need only Keras
(any backend), and the command line answers without TensorFlow. Keras loads a
`.keras` file only if it knows the classes in it: use any name of `ka.layers`
or of `ka.models`, such as `ka.models.Seq2Seq`, before
`keras.models.load_model`.
"""

import importlib

__version__ = "0.1.0"

# Public name -> (its module, the attribute in it; None is the module itself).
_NAMES = {
    "BatchTranslator": ("serving.batch_translator", "BatchTranslator"),
    "Classifier": ("models", "Classifier"),
    "Continuer": ("serving.continuer", "Continuer"),
    "Labeller": ("serving.labeller", "Labeller"),
    "LanguageModel": ("models", "LanguageModel"),
    "PairLabeller": ("serving.labeller", "PairLabeller"),
    "Seq2Seq": ("models", "Seq2Seq"),
    "Tokenizer": ("data", "Tokenizer"),
    "Translator": ("serving.translator", "Translator"),
    "load": ("commands.runs", "load"),
    "alignment": ("evaluation.alignment", None),
    "alignment_report": ("evaluation.phrase_alignment", None),
    "callbacks": ("tasks.callbacks", None),
    "cards": ("serving.cards", None),
    "config": ("config", None),
    "continuer": ("serving.continuer", None),
    "corpora": ("data.corpora", None),
    "data": ("data", None),
    "decoding": ("decoding", None),
    "devices": ("devices", None),
    "evaluation": ("evaluation", None),
    "labeller": ("serving.labeller", None),
    "layers": ("layers", None),
    "losses": ("training.losses", None),
    "metrics": ("training.metrics", None),
    "models": ("models", None),
    "optimizers": ("training.optimizers", None),
    "plotting": ("plotting", None),
    "runs": ("commands.runs", None),
    "run_directory": ("training.run_directory", None),
    "savedmodel": ("serving.savedmodel", None),
    "schedules": ("training.schedules", None),
    "text": ("data", None),
    "text_continuation": ("serving.text_continuation", None),
    "text_labelling": ("serving.text_labelling", None),
    "text_to_text": ("serving.text_to_text", None),
    "tokens": ("tokens", None),
    "trainer": ("training.trainer", None),
    "train": ("commands.runs", "train"),
    "tasks": ("tasks", None),
    "training": ("training", None),
    "translator": ("serving.translator", None),
}
__all__ = ["__version__", *_NAMES]


def __getattr__(name):
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    path, attribute = _NAMES[name]
    module = importlib.import_module(f"{__name__}.{path}")
    return getattr(module, attribute) if attribute else module


def __dir__():
    return sorted(__all__)
