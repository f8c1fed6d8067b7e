"""Calls a server, over gRPC, with the client of TensorFlow Serving.

python ask_tensorflow_serving_api.py HOST:PORT MODEL < CALLS
"""

import sys

import calls
import grpc
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

address, model = sys.argv[1:]
channel = grpc.insecure_channel(address)
predictions = prediction_service_pb2_grpc.PredictionServiceStub(channel)
models = model_service_pb2_grpc.ModelServiceStub(channel)


def status():
    """The state of the one version."""
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = model
    (version,) = models.GetModelStatus(request, 60).model_version_status
    return get_model_status_pb2.ModelVersionStatus.State.Name(version.state)


def metadata():
    """Signature -> inputs and outputs -> name -> type."""
    request = get_model_metadata_pb2.GetModelMetadataRequest()
    request.model_spec.name = model
    request.metadata_field.append("signature_def")
    response = predictions.GetModelMetadata(request, 60)
    found = get_model_metadata_pb2.SignatureDefMap()
    response.metadata["signature_def"].Unpack(found)
    return {
        name: {
            "inputs": types_of(signature.inputs),
            "outputs": types_of(signature.outputs),
        }
        for name, signature in found.signature_def.items()
    }


def types_of(infos):
    """Name -> type."""
    return {
        name: types_pb2.DataType.Name(info.dtype)
        for name, info in infos.items()
    }


def ask(name, inputs):
    """The answer to a call."""
    if name == "status":
        return status()
    if name == "metadata":
        return metadata()
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = name
    for key, value in inputs.items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto([value]))
    outputs = predictions.Predict(request, 60).outputs
    return calls.first_rows(
        {key: tf.make_ndarray(proto) for key, proto in outputs.items()}
    )


calls.answer(ask)
