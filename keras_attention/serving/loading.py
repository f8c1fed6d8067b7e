"""A SavedModel as a model of texts."""

import dataclasses
import itertools
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

# An output -> the class of the models that give it. They have more than a call
# and attention. Any other model is a `TextModel`.
_CLASSES = {
    "translation": translator.Translator,
    "continuation": continuer.Continuer,
    "probabilities": labeller.Labeller,
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
    if kind is None or (kind.texts and "num_tokens" not in kind.signatures):
        raise ValueError(
            f"{version} is a SavedModel of another package: load it with "
            "tf.saved_model.load. Its signatures are "
            f"{sorted(loaded.signatures)}"
        )
    default = loaded.signatures[kinds.DEFAULT]
    if "probabilities" in default.structured_outputs and not kind.labels:
        kind = dataclasses.replace(kind, labels=_labels(default))
    outputs = kind.signatures[kinds.DEFAULT].outputs
    classes = [_CLASSES[name] for name in outputs if name in _CLASSES]
    model_class, *_ = [*classes, text_model.TextModel]
    return model_class.of_savedmodel(kind, version, loaded)


def _labels(default) -> tuple[str, ...]:
    """The labels that the graph of a classifier holds.

    Exports of before they were declared have one constant of as many texts.
    """
    size = default.structured_outputs["probabilities"].shape[-1]
    graph = default.graph.as_graph_def()
    functions = (function.node_def for function in graph.library.function)
    for node in itertools.chain(graph.node, *functions):
        tensor = node.attr["value"].tensor
        if node.op == "Const" and tensor.dtype == tf.string.as_datatype_enum:
            values = tf.make_ndarray(tensor)
            if values.shape == (size,):
                return tuple(value.decode() for value in values)
    return ()


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
