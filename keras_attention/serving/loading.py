"""A SavedModel as a model of texts."""

import dataclasses
import itertools
import os

import tensorflow as tf

from keras_attention.serving import (
    continuer,
    inspection,
    kinds,
    labeller,
    lean,
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
    saved_model = lean.read(version)
    kind = kinds.of(version, _shapes(saved_model))
    loaded = lean.load(version, saved_model, inspection.NAME)
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
    model = model_class.of_savedmodel(kind, version, loaded)
    if inspection.NAME in kind.signatures:
        later = lean.Later(version, inspection.NAME)
        model.signatures = {**model.signatures, inspection.NAME: later}
    return model


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


def _shapes(saved_model) -> kinds.Shapes:
    return {
        name: (
            list(signature.inputs),
            {
                key: _shape(output.tensor_shape)
                for key, output in signature.outputs.items()
            },
        )
        for name, signature in saved_model.meta_graphs[0].signature_def.items()
        # TensorFlow's own have such names.
        if not name.startswith("__")
    }


def _shape(proto) -> tuple[int | None, ...] | None:
    """The axes of a tensor, or None if their number is not known."""
    if proto.unknown_rank:
        return None
    return tuple(None if one.size < 0 else one.size for one in proto.dim)
