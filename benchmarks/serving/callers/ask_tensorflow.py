"""Calls a SavedModel by TensorFlow alone, without a server.

    python ask_tensorflow.py VERSION < CALLS

Another call is `tensors`, which is answered by the name of the tensor of each
input and output. This package is not imported.
"""

import sys

import calls
import tensorflow as tf
import tensorflow_text  # noqa: F401
from tensorflow.core.framework import types_pb2
from tensorflow.python.saved_model import loader_impl

sys.modules["keras_attention"] = None  # To import it is an error now.
version = sys.argv[1]
signatures = tf.saved_model.load(version).signatures


def described(describe):
    """Signature -> inputs and outputs -> name -> what a function gives."""
    (graph,) = loader_impl.parse_saved_model(version).meta_graphs
    return {
        name: {
            "inputs": {key: describe(one) for key, one in spec.inputs.items()},
            "outputs": {
                key: describe(one) for key, one in spec.outputs.items()
            },
        }
        for name, spec in graph.signature_def.items()
        if name in signatures
    }


def ask(name, inputs):
    """The answer to a call."""
    if name == "status":
        return "AVAILABLE"
    if name == "metadata":
        return described(lambda info: types_pb2.DataType.Name(info.dtype))
    if name == "tensors":
        return described(lambda info: info.name)
    rows = {key: tf.constant([value]) for key, value in inputs.items()}
    outputs = signatures[name](**rows)
    return calls.first_rows({key: v.numpy() for key, v in outputs.items()})


calls.answer(ask)
