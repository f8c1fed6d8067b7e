"""HTTP connections that end when nothing comes of them."""

import asyncio

import h11
from uvicorn.protocols.http import h11_impl

from keras_attention.server import limits

# Connections beyond the limit that are let in, so that the server's health is
# still answered.
SPARE = 64


def protocol(limits: limits.Limits) -> type[asyncio.Protocol]:
    """A connection's class for uvicorn, with a timer that is always set.

    uvicorn waits as long as a client likes for a request's head and for a
    client that does not read its answer. Here each has the limits' `timeout`:
    the time until a request's head is there, that until it is answered
    (twice, for its body and for the model), and that after its answer.
    """

    class Connection(h11_impl.H11Protocol):
        _timer = None

        def connection_made(self, transport):
            super().connection_made(transport)
            if len(self.connections) > limits.max_connections + SPARE:
                transport.abort()
                return
            self._set_timer(limits.timeout)

        def connection_lost(self, exc):
            if self._timer is not None:
                self._timer.cancel()
            super().connection_lost(exc)

        def handle_events(self):
            before = self.cycle
            super().handle_events()
            if self.cycle is not before and not self.cycle.response_complete:
                self._set_timer(2 * limits.timeout)

        def on_response_complete(self):
            self._set_timer(limits.timeout)
            super().on_response_complete()

        def send_400_response(self, msg):
            try:
                super().send_400_response(msg)
            except h11.LocalProtocolError:
                # The answer was sent before the rest of the request came.
                self.transport.abort()

        def _should_upgrade(self):
            # A client that offers another protocol goes on in this one.
            return False

        def _set_timer(self, seconds):
            if self._timer is not None:
                self._timer.cancel()
            # What waits to be sent is not waited for: nobody reads it.
            self._timer = self.loop.call_later(seconds, self.transport.abort)

    return Connection
