"""Translates by a server, over gRPC, with the client of TensorFlow Serving.

python ask_tensorflow_serving_api.py HOST:PORT MODEL < TEXTS
"""

import json
import sys

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

address, model = sys.argv[1:]
answers = []
with grpc.insecure_channel(address) as channel:
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    for text in json.load(sys.stdin):
        request = predict_pb2.PredictRequest()
        request.model_spec.name = model
        request.inputs["text"].CopyFrom(tf.make_tensor_proto([text]))
        response = stub.Predict(request, 60)
        (answer,) = tf.make_ndarray(response.outputs["translation"])
        answers.append(answer.decode())
print(json.dumps(answers))
