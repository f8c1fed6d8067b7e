"""HTTP connections: how many there are, and how long each may wait."""

import asyncio
import collections
import dataclasses
import math
import time

from keras_attention.server import counters, logs
from keras_attention.server import settings as server_settings

# Connections beyond the limit that are let in, so that the server's health is
# still answered.
SPARE = 64
# A younger connection may be about to send its request.
_IDLE_SECONDS = 1.0


@dataclasses.dataclass
class _Connection:
    transport: asyncio.Transport
    timer: asyncio.TimerHandle | None = None
    # When it was opened or answered last; infinite while it is answered.
    idle_since: float = math.inf


class Connections:
    """The open connections, as an application around another one.

    uvicorn waits as long as a client likes for a request's head, and for a
    client that does not read its answer. Here each connection has the limits'
    `timeout` until a request's head is there, twice as long until the request
    is answered, and again as long for the answer to be read.

    If there are too many connections, the one ends that waits for a request
    the longest, among those of the address that has the most. So nobody can
    shut others out by connections that do nothing.

    Attributes:
        is_ending: whether each answer is its connection's last.
    """

    def __init__(
        self, app, limits: server_settings.Limits, metrics: counters.Metrics
    ):
        self._app = app
        self._limits = limits
        self._metrics = metrics
        self._open = {}  # (host, port) of the client -> _Connection
        self.is_ending = False

    def __len__(self) -> int:
        return len(self._open)

    async def __call__(self, scope, receive, send) -> None:
        """Answers a request, by the protocol ASGI."""

        async def send_last(message):
            if self.is_ending and message["type"] == "http.response.start":
                closing = (b"connection", b"close")
                message["headers"] = [*message["headers"], closing]
            await send(message)

        one = self._open.get(scope["client"])
        if one is None:  # Its client is gone.
            return
        one.idle_since = math.inf
        # One timeout for the body, and one for the answer.
        self._set_timer(one, 2 * self._limits.timeout)
        try:
            await self._app(scope, receive, send_last)
        finally:
            one.idle_since = time.monotonic()
            # It may be gone, and a new one have its address.
            if self._open.get(scope["client"]) is one:
                self._set_timer(one, self._limits.timeout)

    def protocol(self, base: type[asyncio.Protocol]) -> type[asyncio.Protocol]:
        """uvicorn's class of a connection, with one that is counted."""
        connections = self

        class Connection(base):
            def connection_made(self, transport):
                super().connection_made(transport)
                self.address = connections._add(transport)

            def data_received(self, data):
                try:
                    super().data_received(data)
                except Exception:
                    # h11 cannot refuse what follows a refusal.
                    transport = connections._open[self.address].transport
                    transport.abort()

            def connection_lost(self, exc):
                connections._remove(self.address)
                super().connection_lost(exc)

        return Connection

    def _add(self, transport) -> tuple[str, int]:
        address = (transport.get_extra_info("peername") or ("", 0))[:2]
        if len(self) >= self._limits.max_connections:
            self._end_idle()
        one = self._open[address] = _Connection(transport)
        one.idle_since = time.monotonic()
        if len(self) > self._limits.max_connections + SPARE:
            self._refuse(address, "full")
        self._set_timer(one, self._limits.timeout)
        return address

    def _remove(self, address) -> None:
        one = self._open.pop(address, None)
        if one is not None:
            one.timer.cancel()

    def _end_idle(self) -> None:
        counts = collections.Counter(host for host, _ in self._open)
        until = time.monotonic() - _IDLE_SECONDS
        idle = [
            (-counts[address[0]], one.idle_since, address)
            for address, one in self._open.items()
            if one.idle_since < until
        ]
        if idle:
            address = min(idle)[-1]
            self._refuse(address, "idle")
            # The system tells of its end later.
            self._remove(address)

    def _refuse(self, address, reason: str) -> None:
        self._open[address].transport.abort()
        self._metrics.count_connection(reason)
        logs.event(
            "connection_refused",
            level="warning",
            client=address[0],
            reason=reason,
        )

    def _set_timer(self, one: _Connection, seconds: float) -> None:
        if one.timer is not None:
            one.timer.cancel()
        loop = asyncio.get_running_loop()
        # What waits to be sent is not waited for: nobody reads it.
        one.timer = loop.call_later(seconds, one.transport.abort)
