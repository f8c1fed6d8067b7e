"""Calls a server, over gRPC, with the client min-tfs-client.

    python ask_min_tfs_client.py HOST:PORT MODEL < CALLS

It needs an environment of its own: it brings old copies of TensorFlow's files.
Its `tensor_proto_to_ndarray` reads ASCII alone, so the strings are taken from
the message. It can name no signature, so `serving_default` is its one call.
"""

import sys

import calls
import numpy as np
from min_tfs_client.requests import TensorServingClient

address, model = sys.argv[1:]
host, _, port = address.partition(":")
client = TensorServingClient(host, int(port))


def ask(name, inputs):
    """The answer to a call."""
    if name != "serving_default":
        raise ValueError(f"Expected serving_default. Received: {name}")
    arrays = {key: np.array([value]) for key, value in inputs.items()}
    outputs = client.predict_request(model, arrays).outputs
    return {
        key: calls.plain(list(proto.string_val))[0]
        for key, proto in outputs.items()
    }


calls.answer(ask)
