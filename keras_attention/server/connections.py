"""HTTP connections that may not take too much before a request is there."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from keras_attention.server import limits


def protocol(bounds: limits.Limits) -> type[asyncio.Protocol]:
    """A connection's class for uvicorn, with limits on a request's head.

    uvicorn waits for a request's first line and headers as long as they take,
    and keeps as many bytes of them as come.
    """

    class Limited(HttpToolsProtocol):
        _head_bytes = 0
        _timer = None

        def connection_made(self, transport):
            super().connection_made(transport)
            self._begin_head()

        def connection_lost(self, exc):
            self._end_head()
            super().connection_lost(exc)

        def on_message_begin(self):
            super().on_message_begin()
            self._begin_head()

        def on_headers_complete(self):
            self._end_head()
            super().on_headers_complete()

        def data_received(self, data):
            was_in_head = self._timer is not None
            super().data_received(data)
            if was_in_head and self._timer is not None:
                self._head_bytes += len(data)
                if self._head_bytes > bounds.max_head_bytes:
                    self._end_head()
                    self.send_400_response("The request's head is too long.")

        def _begin_head(self):
            self._end_head()
            self._timer = self.loop.call_later(
                bounds.timeout, self.timeout_keep_alive_handler
            )

        def _end_head(self):
            if self._timer is not None:
                self._timer.cancel()
            self._timer, self._head_bytes = None, 0

    return Limited
