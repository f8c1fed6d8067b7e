"""The server as a process, which signals end."""

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Sequence

import uvicorn
from starlette.applications import Starlette

from keras_attention.server import (
    application,
    logs,
    model_configs,
)
from keras_attention.server import settings as server_settings


async def _run(make: Callable, started: Callable) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def stop(number):
        if stopping.is_set():
            # Somebody does not want to wait for those in flight.
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
    started: Callable[[application.Application], None],
) -> None:
    """Serves models until SIGTERM or SIGINT.

    The first such signal lets it answer what is in flight. A second one ends
    it at once.

    Args:
        configs, settings, limits: see `application.Application`.
        started: called once it is ready.

    Raises:
        ValueError: As `application.Application.start`.
    """
    logs.begin()
    # uvloop, where it is installed.
    loop_factory = uvicorn.Config(
        Starlette(), log_config=None
    ).get_loop_factory()
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(
            _run(
                lambda: application.Application(configs, settings, limits),
                started,
            )
        )
