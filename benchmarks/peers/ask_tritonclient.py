"""Translates by Triton, over gRPC, with Triton's client.

python ask_tritonclient.py HOST:PORT MODEL < TEXTS
"""

import json
import sys

import numpy as np
import tritonclient.grpc as triton

address, model = sys.argv[1:]
client = triton.InferenceServerClient(address)
answers = []
for text in json.load(sys.stdin):
    tensor = triton.InferInput("text", [1, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[text.encode()]], object))
    result = client.infer(model, [tensor])
    answers.append(result.as_numpy("translation")[0, 0].decode())
print(json.dumps(answers))
