"""Bodies of requests over HTTP: read and decompressed, within limits."""

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator

from starlette.requests import Request

from keras_attention.server import errors, limits
from keras_attention.server.errors import Code, RequestError

_IS_GZIP = 16  # As zlib counts it.


class Bodies:
    """Reads bodies. All that are in memory have a limit together.

    Args:
        limits: the server's `limits.Limits`.
    """

    def __init__(self, limits: limits.Limits):
        self._limits = limits
        self._num_bytes = 0

    def check_length(self, request: Request) -> None:
        """Refuses a body by the length that its request's head tells.

        Raises:
            RequestError: If it is too large.
        """
        length = request.headers.get("content-length", "0")
        if (
            length.isdecimal()
            and int(length[:20]) > self._limits.max_body_bytes
        ):
            raise self._too_large()

    @contextlib.asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """A request's body, as long as the context lasts.

        Raises:
            RequestError: If it is too large, comes too slowly, or is in a
                compression other than gzip.
        """
        body = bytearray()
        try:
            try:
                async with asyncio.timeout(self._limits.timeout):
                    await self._collect(request, body)
            except TimeoutError as error:
                raise RequestError(
                    Code.DEADLINE_EXCEEDED,
                    "Expected the body within "
                    f"{self._limits.timeout:g} seconds. Received: a part",
                    http_status=408,
                ) from error
            encoding = request.headers.get("content-encoding", "identity")
            yield self._decoded(bytes(body), encoding.strip().lower())
        finally:
            self._num_bytes -= len(body)

    async def _collect(self, request: Request, body: bytearray) -> None:
        self.check_length(request)
        async for part in request.stream():
            if len(body) + len(part) > self._limits.max_body_bytes:
                raise self._too_large()
            body += part
            self._num_bytes += len(part)
            if self._num_bytes > self._limits.max_waiting_bytes:
                raise RequestError(
                    Code.RESOURCE_EXHAUSTED,
                    f"Expected at most {self._limits.max_waiting_bytes} bytes "
                    "of all requests: try again later. Received: more",
                )

    def _decoded(self, body: bytes, encoding: str) -> bytes:
        if encoding == "identity":
            return body
        if encoding not in ("gzip", "x-gzip"):
            raise RequestError(
                Code.INVALID_ARGUMENT,
                "Expected a body without compression or in gzip. "
                f"Received: {encoding[:40]}",
                http_status=415,
            )
        most = self._limits.max_body_bytes
        stream = zlib.decompressobj(_IS_GZIP + zlib.MAX_WBITS)
        try:
            text = stream.decompress(body, most + 1)
        except zlib.error as error:
            raise errors.invalid(
                "Expected a body in gzip, as its Content-Encoding says. "
                "Received: another one"
            ) from error
        if len(text) > most:
            raise self._too_large()
        if not stream.eof:
            raise errors.invalid(
                "Expected a whole body in gzip. Received: one without its end"
            )
        return text

    def _too_large(self) -> RequestError:
        return RequestError(
            Code.INVALID_ARGUMENT,
            f"Expected a body of at most {self._limits.max_body_bytes} bytes. "
            "Received: more",
            http_status=413,
        )
