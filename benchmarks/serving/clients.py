"""Clients that ask for translations, and note what comes of each request."""

import asyncio
import dataclasses
import functools
import itertools
import time

import aiohttp
import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_service_pb2_grpc,
)

# What a client that finds the port closed notes: nobody took its request.
CLOSED = "connection refused"
# What one of gRPC is told that comes too late.
ENDING = "UNAVAILABLE: The server ends"
# There was no answer: the connection ended, or the time was over.
LOST = "lost"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a request.

    Attributes:
        protocol: "REST" or "gRPC".
        result: a status or a code, `CLOSED` or `LOST`.
        start: when it was sent, by `time.monotonic`.
        seconds: how long it took.
        version: the version that answered, where the protocol tells.
    """

    protocol: str
    result: str
    start: float
    seconds: float
    version: int = 0


async def ask_rest(session, server, text: str) -> Outcome:
    """One request over HTTP, by an `aiohttp.ClientSession`."""
    start = time.monotonic()
    headers = {"Content-Type": "application/json"}
    try:
        async with session.post(
            server.url, data=server.body(text), headers=headers
        ) as response:
            answer = await response.json()
            result = str(response.status)
        if response.status == 200 and len(answer["predictions"]) != 1:
            result = LOST
    except aiohttp.ClientConnectorError:
        result = CLOSED
    except (aiohttp.ClientError, TimeoutError):
        result = LOST
    return Outcome("REST", result, start, time.monotonic() - start)


async def ask_grpc(stub, server, text: str) -> Outcome:
    """One request over gRPC, by a `PredictionServiceStub`."""
    start, version = time.monotonic(), 0
    request = predict_pb2.PredictRequest()
    request.model_spec.name = server.url.rpartition("/")[2].partition(":")[0]
    request.inputs["text"].CopyFrom(tf.make_tensor_proto([text]))
    try:
        response = await stub.Predict(request)
        version = response.model_spec.version.value
        (_,) = np.ravel(tf.make_ndarray(response.outputs["translation"]))
        result = "OK"
    except grpc.aio.AioRpcError as error:
        result, details = error.code().name, error.details() or ""
        if "onnection refused" in details:
            result = CLOSED
        elif error.code() == grpc.StatusCode.UNAVAILABLE:
            result = f"{result}: {details}"
    return Outcome("gRPC", result, start, time.monotonic() - start, version)


async def keep_asking(server, texts, is_over):
    """16 clients of each kind, each of which asks again when it is answered.

    Some clients of REST keep their connection open, some open one for each
    request. Those of gRPC share a channel.

    Args:
        server: a `servers.Server`.
        texts: what is translated.
        is_over: function of the outcomes so far, which says whether to end.

    Returns:
        The outcomes.
    """
    outcomes = []

    async def repeat(ask, place):
        for text in itertools.cycle(texts[place:] + texts[:place]):
            if is_over(outcomes):
                return
            outcomes.append(await ask(server, text))
            if outcomes[-1].result.startswith((CLOSED, "UNAVAILABLE")):
                return

    closing = aiohttp.TCPConnector(force_close=True)
    async with (
        aiohttp.ClientSession() as session,
        aiohttp.ClientSession(connector=closing) as closing_session,
        grpc.aio.insecure_channel(server.grpc) as channel,
    ):
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        kinds = (
            functools.partial(ask_rest, session),
            functools.partial(ask_rest, closing_session),
            functools.partial(ask_grpc, stub),
        )
        await asyncio.gather(
            *(repeat(ask, place) for ask in kinds for place in range(16))
        )
    return outcomes
