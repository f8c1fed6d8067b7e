"""Bodies of requests over HTTP: read and decompressed, within limits."""

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator

from starlette.requests import Request

from keras_attention.server import errors
from keras_attention.server import settings as server_settings
from keras_attention.server.errors import Code, RequestError

_IS_GZIP = 16  # As zlib counts it.
_FEW_BYTES = 2**16
_MOST_MEMBERS = 16


class Bodies:
    """Reads bodies. All that are in memory have a limit together.

    Args:
        limits: the server's `settings.Limits`.
    """

    def __init__(self, limits: server_settings.Limits):
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
        body, num_more = bytearray(), 0
        try:
            try:
                async with asyncio.timeout(self._limits.timeout):
                    await self._collect(request, body)
            except TimeoutError as error:
                raise RequestError(
                    Code.DEADLINE_EXCEEDED,
                    "The body did not come within "
                    f"{self._limits.timeout:g} seconds.",
                    http_status=408,
                ) from error
            encoding = request.headers.get("content-encoding", "identity")
            text = self._decoded(bytes(body), encoding.strip().lower())
            num_more = len(text) - len(body)
            self._num_bytes += num_more
            self._check_memory(len(text))
            yield text
        finally:
            self._num_bytes -= len(body) + num_more

    async def _collect(self, request: Request, body: bytearray) -> None:
        self.check_length(request)
        async for part in request.stream():
            if len(body) + len(part) > self._limits.max_body_bytes:
                raise self._too_large()
            body += part
            self._num_bytes += len(part)
            self._check_memory(len(body))

    def _check_memory(self, num_bytes: int) -> None:
        # A small request is read even while large ones fill the memory.
        if (
            num_bytes > _FEW_BYTES
            and self._num_bytes > self._limits.max_read_bytes
        ):
            raise RequestError(
                Code.RESOURCE_EXHAUSTED,
                "The server reads too many large requests now. Try again in a "
                "second.",
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
        text = b""
        # A file in gzip is one member or several of them (RFC 1952, 2.2).
        for _ in range(_MOST_MEMBERS):
            stream = zlib.decompressobj(_IS_GZIP + zlib.MAX_WBITS)
            try:
                text += stream.decompress(body, most + 1 - len(text))
            except zlib.error as error:
                raise errors.invalid(
                    "The body is not in gzip, as its Content-Encoding says."
                ) from error
            if len(text) > most:
                raise self._too_large()
            if not stream.eof:
                raise errors.invalid("The body in gzip has no end.")
            body = stream.unused_data
            if not body:
                return text
        raise errors.invalid(f"The body has over {_MOST_MEMBERS} gzip members.")

    def _too_large(self) -> RequestError:
        return RequestError(
            Code.INVALID_ARGUMENT,
            "The body has more bytes than are taken: "
            f"{self._limits.max_body_bytes}.",
            http_status=413,
        )
