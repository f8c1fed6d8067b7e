"""What a server says of itself while it loads, and while it ends."""

import asyncio
import http.client
import json
import threading

import pytest

grpc = pytest.importorskip("grpc")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

from grpc_health.v1 import health_pb2, health_pb2_grpc  # noqa: E402

from keras_attention.server import (  # noqa: E402
    application,
    model_configs,
    served_model,
    settings,
)


def answer(connection, path):
    """Status and body of an answer on a connection, which stays."""
    connection.request("GET", path)
    response = connection.getresponse()
    return response.status, json.load(response)


async def health(port):
    """What gRPC's service of health says of all."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        response = await check(health_pb2.HealthCheckRequest(), timeout=20)
    return health_pb2.HealthCheckResponse.ServingStatus.Name(response.status)


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


def test_a_server_is_ready_between_loading_and_its_end(
    model_folders, monkeypatch
):
    may_load = threading.Event()
    fingerprint = served_model.fingerprint

    def wait(path):
        assert may_load.wait(60)
        return fingerprint(path)

    # The first that is asked of a version that is loaded.
    monkeypatch.setattr(served_model, "fingerprint", wait)
    # Connections stay so long at the end.
    monkeypatch.setattr(settings, "GRACE", 1)
    config = model_configs.ModelConfig("shout", model_folders["shout"])

    async def main():
        server = application.Application(
            [config],
            settings.Settings(rest_port=0, grpc_port=0),
            settings.Limits(),
        )
        starting = asyncio.create_task(server.start())
        await until(lambda: server.grpc_port)
        connection = http.client.HTTPConnection(
            "127.0.0.1", server.rest_port, 20
        )

        def ask(path):
            return asyncio.to_thread(answer, connection, path)

        try:
            not_yet = {"ready": False, "models": {"shout": []}}
            assert await ask("/readyz") == (503, not_yet)
            assert (await ask("/healthz"))[0] == 200
            assert await health(server.grpc_port) == "NOT_SERVING"
            may_load.set()
            await starting
            ready = {"ready": True, "models": {"shout": [1]}}
            assert await ask("/readyz") == (200, ready)
            assert await health(server.grpc_port) == "SERVING"
            ending = asyncio.create_task(server.stop())
            await asyncio.sleep(0)
            assert await ask("/readyz") == (503, ready | {"ready": False})
            assert await health(server.grpc_port) == "NOT_SERVING"
            await ending
        finally:
            may_load.set()
            connection.close()

    asyncio.run(main())
