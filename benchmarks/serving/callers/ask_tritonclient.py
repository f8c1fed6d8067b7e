"""Calls Triton, over gRPC, with Triton's client.

    python ask_tritonclient.py HOST:PORT SIGNATURE... < CALLS

A signature is a model of its own.
"""

import sys

import calls
import numpy as np
import tritonclient.grpc as triton

address, *signatures = sys.argv[1:]
client = triton.InferenceServerClient(address)


def types_of(tensors):
    """Name -> type."""
    return {one.name: calls.TYPES[one.datatype] for one in tensors}


def metadata(name):
    """The inputs and outputs of a model."""
    found = client.get_model_metadata(name)
    return {
        "inputs": types_of(found.inputs),
        "outputs": types_of(found.outputs),
    }


def ask(name, inputs):
    """The answer to a call."""
    if name == "status":
        is_ready = all(map(client.is_model_ready, signatures))
        return "AVAILABLE" if is_ready else "not ready"
    if name == "metadata":
        return {signature: metadata(signature) for signature in signatures}
    tensors = []
    for key, value in inputs.items():
        tensors.append(triton.InferInput(key, [1, 1], "BYTES"))
        tensors[-1].set_data_from_numpy(np.array([[value.encode()]], object))
    result = client.infer(name, tensors)
    names = [output.name for output in result.get_response().outputs]
    return calls.first_rows({key: result.as_numpy(key) for key in names})


calls.answer(ask)
