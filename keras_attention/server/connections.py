"""HTTP connections that end when nothing comes of them."""

import asyncio

import h11
from uvicorn.protocols.http import flow_control, h11_impl

from keras_attention.server import limits

# Connections beyond the limit that are let in, so that the server's health is
# still answered.
SPARE = 64


class Connection(h11_impl.H11Protocol):
    """One connection of uvicorn's, with a timer that is always set.

    uvicorn waits as long as a client likes for a request's head and for a
    client that does not read its answer. Here each has the limits' `timeout`:
    the time until a request's head is there, that until it is answered
    (twice, for its body and for the model), and that after its answer.

    When the server ends, uvicorn closes a connection although its client may
    have sent a request a moment ago. Here such a request is answered. The
    answer says that it is the connection's last.

    Attributes:
        bounds: the server's limits. A subclass has them.
        is_ending: whether the server ends.
    """

    bounds = None
    _timer = None
    # Of all connections, so that it holds for those to come, too.
    is_ending = False

    @classmethod
    def most(cls) -> int:
        """The most connections that are open at a time."""
        return cls.bounds.max_connections + SPARE

    def connection_made(self, transport):
        super().connection_made(transport)
        if len(self.connections) > self.most():
            transport.abort()
            return
        self._set_timer(self.bounds.timeout)
        if self.is_ending:
            self.shutdown()

    def connection_lost(self, exc):
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def handle_events(self):
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and not self.cycle.response_complete:
            self._set_timer(2 * self.bounds.timeout)
            if self.is_ending:
                self._end_after_answer()

    def on_response_complete(self):
        self._set_timer(self.bounds.timeout)
        super().on_response_complete()

    def shutdown(self):
        if self.transport.get_write_buffer_size():
            # Somebody still reads an answer, which goes on to its end.
            super().shutdown()
        elif self.cycle is None or self.cycle.response_complete:
            self._set_timer(min(limits.GRACE, self.bounds.drain_seconds))
        else:
            self._end_after_answer()

    def _end_after_answer(self):
        # As if the client had asked for it.
        self.cycle.scope["headers"].append(flow_control.CLOSE_HEADER)
        self.cycle.keep_alive = False

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


def protocol(bounds: limits.Limits) -> type[asyncio.Protocol]:
    """The class of a server's connections, for uvicorn."""
    return type("Connection", (Connection,), {"bounds": bounds})
