"""A SavedModel as a model of texts."""

import os

import tensorflow as tf

from keras_attention.serving import (
    continuer,
    kinds,
    labeller,
    manifest,
    savedmodel,
    text_model,
    translator,
)

# What has more than a call and attention. Another kind is a `TextModel`.
_CLASSES = {
    kinds.TRANSLATION.name: translator.Translator,
    kinds.LANGUAGE_MODELLING.name: continuer.Continuer,
    kinds.CLASSIFICATION.name: labeller.Labeller,
    kinds.ENTAILMENT.name: labeller.Labeller,
    kinds.QUESTION_ANSWERING.name: labeller.Labeller,
}


def load(path: str | os.PathLike) -> text_model.TextModel:
    """Loads `savedmodels/NAME` (its newest version) or one version.

    Returns:
        The class of its kind, such as `Translator`.

    Raises:
        ValueError: If there is no SavedModel of this package, or its files
            differ from the manifest.
    """
    version = savedmodel.newest(path)
    manifest.check(version)
    savedmodel.register_text_operations()
    loaded = tf.saved_model.load(str(version))
    kind = kinds.of(version, _shapes(loaded))
    if kind is None or "num_tokens" not in kind.signatures:
        raise ValueError(
            f"{version} is a SavedModel of another package: load it with "
            "tf.saved_model.load. Its signatures are "
            f"{sorted(loaded.signatures)}"
        )
    model_class = _CLASSES.get(kind.name, text_model.TextModel)
    return model_class.of_savedmodel(kind, version, loaded)


def _shapes(loaded) -> kinds.Shapes:
    return {
        name: (
            list(function.structured_input_signature[1]),
            {
                key: None if spec.shape.rank is None else (*spec.shape,)
                for key, spec in function.structured_outputs.items()
            },
        )
        for name, function in loaded.signatures.items()
    }
