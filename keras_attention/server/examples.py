"""`:classify` and `:regress`: from `tf.Example`s to labels or numbers.

Signatures of these methods take serialised examples, [B], as their input
`inputs`. TensorFlow parses them in the graph. Estimators and TensorFlow 1
export such signatures. Keras does not; a SavedModel of TensorFlow 2 gets the
method by `tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater`.
"""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (
    classification_pb2,
    input_pb2,
    regression_pb2,
)

from keras_attention.server import errors, json_inputs, settings, signatures

# Method -> what its result is called, and the outputs that make it.
METHODS = {
    "classify": ("classification", {"classes", "scores"}),
    "regress": ("regression", {"outputs"}),
}
_KINDS = {bytes: "bytes_list", int: "int64_list", float: "float_list"}


def from_json(document: Mapping) -> input_pb2.Input:
    """The examples of a request's body, and what all of them share.

    Raises:
        RequestError: If there are none, or a feature cannot be one.
    """
    examples = document.get("examples")
    if not isinstance(examples, list) or not examples:
        raise errors.invalid("Expecting 'examples' value to be an list/array")
    found = input_pb2.Input()
    listed = found.example_list
    if "context" in document:
        listed = found.example_list_with_context
        listed.context.CopyFrom(_example(document["context"]))
    listed.examples.extend(map(_example, examples))
    return found


def _example(features) -> tf.train.Example:
    if not isinstance(features, dict):
        raise errors.invalid("Example must be JSON object")
    example = tf.train.Example()
    for name, values in features.items():
        feature = example.features.feature[name]
        for value in values if isinstance(values, list) else [values]:
            _add(feature, name, value)
    return example


def _add(feature, name, value) -> None:
    if isinstance(value, bool):
        value = int(value)  # `tf.Example` has no truth values.
    elif isinstance(value, str) or json_inputs.is_bytes(value):
        value = json_inputs.to_bytes(value)
    kind = _KINDS.get(type(value))
    if kind is None or feature.WhichOneof("kind") not in (None, kind):
        raise errors.invalid(
            f"Unexpected element type in feature: {name[:200]}. A feature has "
            "texts, integers or floats, and one of these kinds alone."
        )
    try:
        getattr(feature, kind).value.append(value)
    except (ValueError, OverflowError) as error:
        raise errors.invalid(
            f"Feature: {name[:200]} has an integer of more than 64 bits."
        ) from error


def to_arrays(
    signature: signatures.Signature,
    api: str,
    given: input_pb2.Input,
    limits: settings.Limits,
) -> dict[str, np.ndarray]:
    """The examples as a signature's input.

    Args:
        signature: what answers.
        api: "classify" or "regress".
        given: the examples.
        limits: of the server.

    Raises:
        RequestError: If the signature has another method, if there is no
            example, or if there are too many.
    """
    word, outputs = METHODS[api]
    method = f"tensorflow/serving/{api}"
    if signature.method != method:
        raise errors.invalid(
            f"Expected {word} signature method_name to be {method}. "
            f"Was: {signature.method}"
        )
    if {*signature.inputs} != {"inputs"} or not outputs & {*signature.outputs}:
        raise errors.RequestError(
            errors.Code.FAILED_PRECONDITION,
            f"A {word} signature needs the input 'inputs' and an output of "
            f"{sorted(outputs)}. This one has {sorted(signature.inputs)} and "
            f"{sorted(signature.outputs)}.",
        )
    kind = given.WhichOneof("kind")
    examples = [] if kind is None else [*getattr(given, kind).examples]
    if not examples:
        raise errors.invalid("Input is empty.")
    if len(examples) > limits.max_rows:
        raise errors.invalid(
            f"The request has {len(examples)} rows, and at most "
            f"{limits.max_rows} are taken. Split it."
        )
    if kind == "example_list_with_context":
        context = given.example_list_with_context.context
        # Each example gets a copy, so both are small.
        if context.ByteSize() > limits.max_text_bytes:
            raise errors.invalid(
                f"The context has more than {limits.max_text_bytes} bytes."
            )
        shared = context.features.feature
        for example in examples:
            for name, feature in shared.items():
                if name not in example.features.feature:
                    example.features.feature[name].CopyFrom(feature)
    texts = [example.SerializeToString() for example in examples]
    return {"inputs": np.array(texts, object)}


def result(api: str, outputs: Mapping[str, np.ndarray], num_rows: int):
    """A `ClassificationResult` or a `RegressionResult`.

    Raises:
        RequestError: If the outputs have other types, or not a row for each
            example.
    """
    arrays = {
        name: outputs[name] for name in METHODS[api][1] if name in outputs
    }
    if api == "regress":
        arrays = {
            name: array[:, np.newaxis] if array.ndim == 1 else array
            for name, array in arrays.items()
        }
    for name, array in arrays.items():
        if (array.dtype == object) != (name == "classes"):
            kind = "DT_STRING" if name == "classes" else "DT_FLOAT"
            raise errors.invalid(
                f"Expected {name} Tensor of {kind}. Was: {array.dtype}."
            )
    shapes = {name: array.shape for name, array in arrays.items()}
    if (
        len({*shapes.values()}) != 1
        or {len(shape) for shape in shapes.values()} != {2}
        or {shape[0] for shape in shapes.values()} != {num_rows}
    ):
        raise errors.invalid(
            "Expected Tensor shape: [batch_size num_classes] with a batch_size "
            f"of {num_rows} but got {shapes}"
        )
    if api == "regress":
        found = regression_pb2.RegressionResult()
        for value in arrays["outputs"][:, 0]:
            found.regressions.add(value=float(value))
        return found
    found = classification_pb2.ClassificationResult()
    shape = next(iter(shapes.values()))
    labels = arrays.get("classes", np.full(shape, b"", object))
    scores = arrays.get("scores", np.zeros(shape, np.float32))
    for row in zip(labels, scores, strict=True):
        classes = found.classifications.add().classes
        for label, score in zip(*row, strict=True):
            text = label.decode("utf-8", "replace")
            classes.add(label=text, score=float(score))
    return found


def to_json(api: str, outputs: Mapping[str, np.ndarray], num_rows: int) -> dict:
    """The answer over HTTP: numbers, or labels with their scores."""
    found = result(api, outputs, num_rows)
    if api == "regress":
        return {"results": [_short(one.value) for one in found.regressions]}
    return {
        "results": [
            [[one.label, _short(one.score)] for one in row.classes]
            for row in found.classifications
        ]
    }


def _short(value: float) -> float:
    """0.1 in float32, and not 0.10000000149011612."""
    return float(str(np.float32(value)))
