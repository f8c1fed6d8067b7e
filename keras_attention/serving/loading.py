"""A SavedModel as a model of texts."""

import contextlib
import dataclasses
import itertools
import os
import pathlib
from collections.abc import Collection, Mapping

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from keras_attention import on_demand
from keras_attention.serving import (
    continuer,
    inspection,
    kinds,
    labeller,
    manifest,
    savedmodel,
    some_signatures,
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


def load(
    path: str | os.PathLike,
    names: Collection[str] | None = None,
    is_brief: bool = False,
) -> text_model.TextModel:
    """Loads `savedmodels/NAME` (its newest version) or one version.

    Args:
        path: of the SavedModel.
        names: the signatures to load. By default all: `inspect` is loaded when
            it is first called. The others cannot be asked. `num_tokens` is
            always loaded.
        is_brief: with `names`, whether few texts will be asked: TensorFlow then
            does not optimize the graph, see `some_signatures.folder`.

    Returns:
        The class of its kind, such as `Translator`.

    Raises:
        ValueError: If there is no SavedModel of this package, or its files
            differ from the manifest.
    """
    version = savedmodel.newest(path)
    manifest.check(version)
    savedmodel.register_text_operations()
    definitions = _definitions(version)
    kind = kinds.of(version, _shapes(definitions))
    if kind is None or (kind.texts and "num_tokens" not in kind.signatures):
        raise ValueError(
            f"{version} is a SavedModel of another package: load it with "
            "tf.saved_model.load. Its signatures are "
            f"{sorted(definitions)}"
        )
    outputs = kind.signatures[kinds.DEFAULT].outputs
    has_labels_in_graph = "probabilities" in outputs and not kind.labels
    if names is not None and has_labels_in_graph:
        names = {*names, kinds.DEFAULT}
    with contextlib.ExitStack() as stack:
        folder = version
        if names is None and inspection.NAME in definitions:
            names = {*definitions} - {inspection.NAME}
        if names is not None:
            names = {*names, "num_tokens"}
            part = some_signatures.folder(version, names, is_brief)
            folder = stack.enter_context(part)
        stack.enter_context(on_demand.no_collection())
        loaded = tf.saved_model.load(str(folder))
    if has_labels_in_graph:
        labels = _labels(loaded.signatures[kinds.DEFAULT])
        kind = dataclasses.replace(kind, labels=labels)
    classes = [_CLASSES[name] for name in outputs if name in _CLASSES]
    model_class, *_ = [*classes, text_model.TextModel]
    model = model_class.of_savedmodel(kind, version, loaded)
    if inspection.NAME in kind.signatures:
        later = some_signatures.Later(version, inspection.NAME)
        model.signatures = {**model.signatures, inspection.NAME: later}
    return model


def _labels(default) -> tuple[str, ...]:
    """The labels that the graph of a classifier holds.

    Older exports declare no labels: their graph has one constant with as many
    texts.
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


def _definitions(version: pathlib.Path) -> Mapping:
    """Name -> `SignatureDef`, also of the signatures that are not loaded."""
    saved = saved_model_pb2.SavedModel.FromString(
        (version / "saved_model.pb").read_bytes()
    )
    definitions = dict(saved.meta_graphs[0].signature_def)
    # TensorFlow's own: it initialises tables.
    definitions.pop("__saved_model_init_op", None)
    return definitions


def _shapes(definitions: Mapping) -> kinds.Shapes:
    return {
        name: (
            list(definition.inputs),
            {key: _axes(info) for key, info in definition.outputs.items()},
        )
        for name, definition in definitions.items()
    }


def _axes(info) -> tuple[int | None, ...] | None:
    shape = tf.TensorShape(info.tensor_shape)
    return None if shape.rank is None else tuple(shape.as_list())
