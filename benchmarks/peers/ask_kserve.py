"""Translates by a server, over REST, with the client of KServe.

python ask_kserve.py v1|v2 URL MODEL < TEXTS
"""

import asyncio
import json
import sys

from kserve import InferInput, InferRequest
from kserve.inference_client import InferenceRESTClient, RESTConfig

protocol, url, model = sys.argv[1:]


def request(text):
    """A text as the protocol has it."""
    if protocol == "v1":
        return {"instances": [text]}
    tensor = InferInput("text", [1, 1], "BYTES", [text])
    return InferRequest(model, [tensor])


def answer(response):
    """The translation that a response has."""
    if protocol == "v1":
        return response["predictions"][0]
    return response.outputs[0].data[0]


async def main():
    """Prints the translations."""
    client = InferenceRESTClient(RESTConfig(protocol=protocol, retries=0))
    texts = json.load(sys.stdin)
    responses = [await client.infer(url, request(t), model) for t in texts]
    print(json.dumps([answer(response) for response in responses]))


asyncio.run(main())
