"""Translates by a server, over gRPC, with the client min-tfs-client.

    python ask_min_tfs_client.py HOST:PORT MODEL < TEXTS

It needs an environment of its own: it brings old copies of TensorFlow's files.
Its `tensor_proto_to_ndarray` reads ASCII alone, so the strings are taken from
the message.
"""

import json
import sys

import numpy as np
from min_tfs_client.requests import TensorServingClient

address, model = sys.argv[1:]
host, _, port = address.partition(":")
client = TensorServingClient(host, int(port))
answers = []
for text in json.load(sys.stdin):
    response = client.predict_request(model, {"text": np.array([text])})
    (answer,) = response.outputs["translation"].string_val
    answers.append(answer.decode())
print(json.dumps(answers))
