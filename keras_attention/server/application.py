"""The server: its ports, its start and its end."""

import asyncio
import contextlib
import dataclasses
import pathlib
import socket
from collections.abc import Sequence

import grpc
import uvicorn
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    model_service_pb2_grpc,
    prediction_service_pb2_grpc,
)

from keras_attention.server import (
    connections,
    grpc_services,
    limits,
    logs,
    metrics,
    model_configs,
    models,
    predictor,
    rest,
)

_SERVICES = (
    "",
    "tensorflow.serving.PredictionService",
    "tensorflow.serving.ModelService",
)


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a server runs.

    Attributes:
        host: the address that it listens at.
        rest_port: of HTTP; 0 for any that is free.
        grpc_port: of gRPC; 0 for any that is free.
        poll_seconds: how often it looks for new versions; 0 for never.
        num_threads: how many batches are computed at the same time.
        reload_root: a folder below which a client may name folders of models,
            or None.
        log_texts: whether the log has the requests.
    """

    host: str = "127.0.0.1"
    rest_port: int = 8501
    grpc_port: int = 8500
    poll_seconds: float = 1.0
    num_threads: int = 1
    reload_root: pathlib.Path | None = None
    log_texts: bool = False


class _Http(uvicorn.Server):
    """uvicorn, which leaves the signals to the application."""

    @contextlib.contextmanager
    def capture_signals(self):
        yield


class Application:
    """A server. Create it in the event loop that runs it.

    Args:
        configs: the models to serve.
        settings: how it runs.
        bounds: its limits.

    Attributes:
        predictor: what answers.
        rest_port, grpc_port: where it listens, once it is started.
    """

    def __init__(
        self,
        configs: Sequence[model_configs.ModelConfig],
        settings: Settings,
        bounds: limits.Limits,
    ):
        self._settings = settings
        self._limits = bounds
        meters = metrics.Metrics()
        served = models.Models(configs, meters)
        self.predictor = predictor.Predictor(
            served, bounds, meters, settings.num_threads
        )
        self._rest = rest.Rest(
            self.predictor, bounds, meters, settings.log_texts
        )
        self._calls = grpc_services.Calls(
            self.predictor, bounds, meters, settings.log_texts
        )
        self._folders = frozenset(config.folder for config in configs)
        self._health = health.aio.HealthServicer()
        self._watch = None
        self.rest_port = self.grpc_port = 0

    async def start(self) -> None:
        """Opens the ports and loads the models.

        Until they are loaded, the server is alive and not ready.

        Raises:
            ValueError: If a port is not free, or a model has no version that
                can be loaded.
        """
        bound = self._bound_socket()
        self.rest_port = bound.getsockname()[1]
        try:
            self._grpc = self._grpc_server()
        except ValueError:
            bound.close()
            raise
        await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
        await self._grpc.start()
        self._http = _Http(
            uvicorn.Config(
                self._rest.app,
                http=connections.protocol(self._limits),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                limit_concurrency=self._limits.max_connections,
                timeout_graceful_shutdown=self._limits.drain_seconds,
            )
        )
        self._http_task = asyncio.create_task(self._http.serve(sockets=[bound]))
        self.predictor.queue.start()
        served = self.predictor.models
        await served.update()
        for name, model in served.by_name.items():
            if not model.available:
                await self.stop()
                raise ValueError(_unloadable(name, model))
        await self._set_health(health_pb2.HealthCheckResponse.SERVING)
        if self._settings.poll_seconds:
            self._watch = asyncio.create_task(
                served.watch(self._settings.poll_seconds)
            )
        logs.event(
            "ready",
            host=self._settings.host,
            rest_port=self.rest_port,
            grpc_port=self.grpc_port,
            models={n: m.available for n, m in served.by_name.items()},
        )

    def _bound_socket(self) -> socket.socket:
        host, port = self._settings.host, self._settings.rest_port
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )[0]
            bound = socket.socket(family, kind, protocol)
            try:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                bound.bind(address)
            except OSError:
                bound.close()
                raise
        except OSError as error:
            raise ValueError(
                _port_error("rest_api_port", host, port)
            ) from error
        return bound

    def _grpc_server(self) -> grpc.aio.Server:
        server = grpc.aio.server(
            options=[
                (
                    "grpc.max_receive_message_length",
                    self._limits.max_body_bytes,
                ),
                ("grpc.max_send_message_length", -1),
                # A port that another server has is an error.
                ("grpc.so_reuseport", 0),
            ]
        )
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
            grpc_services.PredictionService(self._calls), server
        )
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(
            grpc_services.ModelService(
                self._calls, self._folders, self._settings.reload_root
            ),
            server,
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        host, port = self._settings.host, self._settings.grpc_port
        address = f"[{host}]" if ":" in host else host
        try:
            self.grpc_port = server.add_insecure_port(f"{address}:{port}")
        except RuntimeError as error:
            raise ValueError(_port_error("port", host, port)) from error
        if not self.grpc_port:
            raise ValueError(_port_error("port", host, port))
        return server

    async def _set_health(self, status) -> None:
        for service in _SERVICES:
            await self._health.set(service, status)

    async def stop(self) -> None:
        """Takes no more requests, answers those in flight, and ends."""
        logs.event("stopping")
        self._rest.is_stopping = True
        if self._watch is not None:
            self._watch.cancel()
        await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
        self._http.should_exit = True
        await asyncio.gather(
            self._http_task, self._grpc.stop(self._limits.drain_seconds)
        )
        await self.predictor.models.stop()
        await self.predictor.queue.stop()
        logs.event("stopped")


def _port_error(flag: str, host: str, port: int) -> str:
    return (
        "Expected an address of this machine with a free port: choose them by "
        f"--host and --{flag} (0 for any port). Received: {host}, {port}"
    )


def _unloadable(name: str, model) -> str:
    reasons = [
        f"version {number}: {status.error}"
        for number, status in sorted(model.statuses.items(), reverse=True)
        if status.error
    ]
    received = "; ".join(reasons) or f"no such version in {model.config.folder}"
    return (
        f"Expected a version of {name} that can be loaded. Received: {received}"
    )
