"""Calls a server, over REST, with the client of KServe.

    python ask_kserve.py v1|v2 URL MODEL < CALLS

By the protocol v2, a signature is a model of its own.
"""

import asyncio
import sys

import calls
from kserve import InferInput, InferRequest
from kserve.inference_client import InferenceRESTClient, RESTConfig

protocol, url, model = sys.argv[1:]
client = InferenceRESTClient(RESTConfig(protocol=protocol, retries=0))
runner = asyncio.Runner()


def ask(name, inputs):
    """The answer to a call."""
    if name == "status":
        ready = client.is_model_ready(url, model)
        return "AVAILABLE" if runner.run(ready) else "not ready"
    if protocol == "v1":
        request = {"signature_name": name, "instances": [inputs]}
        return runner.run(client.infer(url, request, model))["predictions"][0]
    tensors = [
        InferInput(key, [1, 1], "BYTES", [value])
        for key, value in inputs.items()
    ]
    request = InferRequest(name, tensors)
    response = runner.run(client.infer(url, request, name))
    return {
        output.name: calls.shaped(output.data, output.shape)[0]
        for output in response.outputs
    }


calls.answer(ask)
