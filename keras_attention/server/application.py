"""The server: its ports, its start and its end, also by signals."""

import asyncio
import contextlib
import gc
import math
import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Sequence

import grpc
import uvicorn
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    model_service_pb2_grpc,
    prediction_service_pb2_grpc,
)

from keras_attention.server import (
    connections,
    counters,
    errors,
    grpc_services,
    logs,
    model_configs,
    predictor,
    registry,
    rest,
)
from keras_attention.server import settings as server_settings

# By the protocol of gRPC's health checks, "" is the whole server.
_SERVICES = (
    "",
    "tensorflow.serving.PredictionService",
    "tensorflow.serving.ModelService",
)

# Files that are open beside the connections: models, logs, gRPC.
_NUM_OTHER_FILES = 256


class _Http(uvicorn.Server):
    """uvicorn, which leaves the signals to the application."""

    @contextlib.contextmanager
    def capture_signals(self):
        yield


class Application:
    """A server. Create it in the event loop that runs it.

    Attributes:
        predictor: what answers.
        rest_port, grpc_port: where it listens, once it is started.
    """

    def __init__(
        self,
        configs: Sequence[model_configs.ModelConfig],
        settings: server_settings.Settings,
        limits: server_settings.Limits,
    ):
        self._settings = settings
        self._limits = limits
        metrics = counters.Metrics()
        self.predictor = predictor.Predictor(
            registry.Models(configs, metrics),
            limits,
            metrics,
            settings.num_threads,
        )
        self._rest = rest.Rest(self.predictor, limits, settings, metrics)
        self._calls = grpc_services.Calls(
            self.predictor, limits, settings.log_texts
        )
        self._folders = frozenset(config.folder for config in configs)
        self._health = health.aio.HealthServicer()
        self._bound = self._http = self._http_task = None
        self._grpc = self._watch = None
        self.rest_port = self.grpc_port = 0

    async def start(self) -> None:
        """Opens the ports and loads the models.

        Until they are loaded, the server is alive and not ready.

        Raises:
            ValueError: If a port is not free, if the system allows too few
                connections, or if a model has no version that can be loaded
                or a label of none.
        """
        _allow_files(self._limits.max_connections)
        bound = self._bound = server_settings.bound_socket(
            self._settings.host, self._settings.rest_port, "rest_api_port"
        )
        self.rest_port = bound.getsockname()[1]
        try:
            self._grpc = self._grpc_server()
        except ValueError:
            bound.close()
            raise
        # Whoever waits for the models asks the ports, so these open first.
        await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
        await self._grpc.start()
        self._http = _Http(self._http_config())
        self._http_task = asyncio.create_task(self._http.serve(sockets=[bound]))
        # Now: a model that is loaded answers while another one is read.
        self.predictor.queue.start()
        models = self.predictor.models
        await models.update()
        try:
            models.check()
        except errors.RequestError as error:
            await self.stop()
            raise ValueError(error.message) from error
        await self._set_health(health_pb2.HealthCheckResponse.SERVING)
        models.warm()
        if self._settings.poll_seconds:
            self._watch = asyncio.create_task(
                models.watch(self._settings.poll_seconds)
            )
        logs.event(
            "ready",
            host=self._settings.host,
            rest_port=self.rest_port,
            grpc_port=self.grpc_port,
            models={n: m.available for n, m in models.by_name.items()},
        )

    def _http_config(self) -> uvicorn.Config:
        config = uvicorn.Config(
            self._rest.connections,
            # httptools, which uvicorn prefers, has no limit for a head.
            http="h11",
            ws="none",
            # The application is started and ended here, and not by uvicorn.
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            # `connections` knows a client by its address, which a header
            # would change.
            proxy_headers=False,
            h11_max_incomplete_event_size=self._limits.max_head_bytes,
            timeout_keep_alive=math.ceil(self._limits.timeout),
            timeout_graceful_shutdown=self._limits.drain_seconds,
        )
        # This chooses the class of a connection, which is then extended.
        config.load()
        config.http_protocol_class = self._rest.connections.protocol(
            config.http_protocol_class
        )
        return config

    def _grpc_server(self) -> grpc.aio.Server:
        server = grpc.aio.server(
            interceptors=[grpc_services.Parsing()],
            options=[
                (
                    "grpc.max_receive_message_length",
                    self._limits.max_body_bytes,
                ),
                # What a model answers has been computed: it is sent.
                ("grpc.max_send_message_length", -1),
                # A port that another server has is an error.
                ("grpc.so_reuseport", 0),
            ],
            # gRPC itself answers RESOURCE_EXHAUSTED to a call beyond these.
            maximum_concurrent_rpcs=self._limits.max_connections,
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
            raise ValueError(
                server_settings.port_error("port", host, port)
            ) from error
        return server

    async def _set_health(self, status) -> None:
        for service in _SERVICES:
            await self._health.set(service, status)

    async def fail(self) -> None:
        """Waits until HTTP ends by itself, and raises why."""
        # Who waits is cancelled in the end, and HTTP shall not be.
        await asyncio.shield(self._http_task)
        raise RuntimeError("HTTP ended, and nobody asked for it")

    async def stop(self) -> None:
        """Takes no more requests, answers those in flight, and ends.

        What is not answered within the limits' `drain_seconds` is given up.
        """
        logs.event("stopping")
        self._rest.is_stopping = self._rest.connections.is_ending = True
        if self._watch is not None:
            self._watch.cancel()
        if self._grpc is not None:
            # A balancer that watches the health sends no more.
            await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
        endings = [self._stop_grpc()] if self._grpc is not None else []
        if self._http is not None:
            endings.append(self._stop_http())
        await asyncio.gather(*endings)
        # No request is left. So nobody waits for what these give up.
        await self.predictor.models.stop()
        await self.predictor.queue.stop()
        self._rest.rewriter.stop()
        self.predictor.stop()
        logs.event("stopped")

    @property
    def is_busy(self) -> bool:
        """Whether a thread goes on with what nobody waits for."""
        return (
            self.predictor.queue.is_computing
            or self.predictor.models.is_reading
            or self._rest.rewriter.is_busy
        )

    async def _stop_http(self) -> None:
        """Closes the port, and ends HTTP once requests had time to come.

        The system would end the connections that the loop has not taken yet.
        So they are taken first.
        """
        if self._http.started:
            most = self._limits.max_connections + connections.SPARE
            waiting = _waiting(self._bound, most - len(self._rest.connections))
            for server in self._http.servers:
                server.close()
            for one in waiting:
                # Its client may be gone.
                with contextlib.suppress(OSError):
                    await asyncio.get_running_loop().connect_accepted_socket(
                        self._connection, one
                    )
            await asyncio.sleep(self._grace)
        self._http.should_exit = True
        await asyncio.gather(self._http_task, return_exceptions=True)
        # Those that were given up have an answer, too.
        if self._http.server_state.tasks:
            await asyncio.wait({*self._http.server_state.tasks}, timeout=1)

    def _connection(self) -> asyncio.Protocol:
        return self._http.config.http_protocol_class(
            config=self._http.config,
            server_state=self._http.server_state,
            app_state=self._http.lifespan.state,
        )

    @property
    def _grace(self) -> float:
        return min(server_settings.GRACE, self._limits.drain_seconds)

    async def _stop_grpc(self) -> None:
        """Ends gRPC once our own calls are answered.

        gRPC cancels the calls that it has received and not handed over. So
        they are taken for a while, then refused, before it is stopped.
        Somebody who watches the health would be waited for without end.
        """
        end = time.monotonic() + self._limits.drain_seconds
        await asyncio.sleep(self._grace)
        self._calls.is_stopping = True
        num_quiet = 0
        while num_quiet < 2 and time.monotonic() < end:
            # The last answers are still to be sent.
            await asyncio.sleep(0.1)
            num_quiet = 0 if self._calls.num_running else num_quiet + 1
        # Whoever is still there has had its time: no grace.
        await self._grpc.stop(None)


def _allow_files(num_connections: int) -> None:
    """Lets the process have so many connections.

    Raises:
        ValueError: If the system does not allow them.
    """
    needed = num_connections + connections.SPARE + _NUM_OTHER_FILES
    # Usually, the soft limit is 1,024: too few for as many connections.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        most = max(1, hard - connections.SPARE - _NUM_OTHER_FILES)
        raise ValueError(
            f"{num_connections} connections need more open files than the "
            f"{hard} that the system allows. Raise `ulimit -n`, or take "
            f"--max_connections={most}."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _waiting(listener: socket.socket, most: int) -> list[socket.socket]:
    """The connections that wait at a port, `most` at most."""
    found = []
    with contextlib.suppress(OSError):  # There are no more.
        while len(found) < most:
            found.append(listener.accept()[0])
    return found


async def _run(make: Callable, started: Callable) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def stop(number):
        if stopping.is_set():
            # Somebody does not want to wait for those in flight. By such a
            # status, a shell knows the signal.
            os._exit(128 + number)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    server = make()
    start = asyncio.create_task(server.start())
    stopped = asyncio.create_task(stopping.wait())
    await asyncio.wait({start, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not start.done():
        start.cancel()
        await asyncio.gather(start, return_exceptions=True)
        # Models that are loaded may have requests in flight.
        await server.stop()
        # A load cannot be interrupted.
        os._exit(0)
    await start
    # Python looks for garbage again and again. In TensorFlow and the models,
    # this takes tenths of a second, in which no request is answered.
    gc.collect()
    gc.freeze()
    started(server)
    failure = asyncio.create_task(server.fail())
    await asyncio.wait({failure, stopped}, return_when=asyncio.FIRST_COMPLETED)
    await server.stop()
    if not stopped.done():
        await failure
    failure.cancel()
    if server.is_busy:
        # Nobody waits for what is computed or loaded now.
        os._exit(0)


def run(
    configs: Sequence[model_configs.ModelConfig],
    settings: server_settings.Settings,
    limits: server_settings.Limits,
    started: Callable[[Application], None],
) -> None:
    """Serves models until SIGTERM or SIGINT.

    The first such signal lets it answer what is in flight. A second one ends
    it at once.

    Args:
        configs, settings, limits: see `Application`.
        started: called once it is ready.

    Raises:
        ValueError: As `Application.start`.
    """
    logs.begin()
    # uvloop, where it is installed.
    config = uvicorn.Config("", log_config=None)
    loop_factory = config.get_loop_factory()
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(
            _run(lambda: Application(configs, settings, limits), started)
        )
