"""Which requests over HTTP are let in: by their head, then by their body."""

import asyncio
import contextlib
import ipaddress
import urllib.parse
import zlib
from collections.abc import AsyncIterator

from starlette.datastructures import Headers
from starlette.requests import Request

from keras_attention.server import errors
from keras_attention.server import settings as server_settings
from keras_attention.server.errors import Code, RequestError

_LOOPBACK = "localhost"
_IS_GZIP = 16  # As zlib counts it.
# 1,024 connections, the most by default, have 64 MB with so many bytes each.
_FEW_BYTES = 2**16
# An empty member has 20 bytes. 200,000 of them fit into 4 MB, and each one
# copies all that follows it.
_MOST_MEMBERS = 16


class Heads:
    """Refuses requests by their head alone.

    A page of another site can let a browser ask a server on the same machine.
    The browser tells the page's name as `Origin`. If the page's site gives its
    own name the address of this machine, the browser tells that as `Host`. So
    a server that listens at a loopback address has names of loopback alone,
    unless it was told others.

    """

    def __init__(
        self, settings: server_settings.Settings, limits: server_settings.Limits
    ):
        self._allowed = {name.lower() for name in settings.allowed_hosts}
        self._is_open = "*" in self._allowed or not (
            self._allowed or is_loopback(settings.host)
        )
        self._has_cors = settings.has_cors
        self._max_bytes = limits.max_head_bytes

    def check(self, scope) -> None:
        """Checks a request's head.

        Args:
            scope: the request, as ASGI describes it.

        Raises:
            RequestError: If the request is refused.
        """
        # uvicorn measures a head that comes in pieces, and no other.
        lengths = [len(name) + len(value) for name, value in scope["headers"]]
        target = len(scope["raw_path"]) + len(scope["query_string"])
        if target + sum(lengths) > self._max_bytes:
            raise RequestError(
                Code.INVALID_ARGUMENT,
                f"The request's head has more than {self._max_bytes} bytes.",
                http_status=431,
            )
        headers = Headers(scope=scope)
        if {"content-length", "transfer-encoding"} <= {*headers}:
            # A proxy may believe the other one (RFC 9112, 6.3).
            raise errors.invalid(
                "A request has either Content-Length or Transfer-Encoding."
            )
        # Only HTTP/1.0, which no browser speaks, does without a Host.
        host = _name(f"//{headers.get('host', _LOOPBACK)}")
        if not self._has_name(host):
            raise errors.invalid(
                f"The host name {host[:100]} is refused. Start the server with "
                "--allowed_hosts=NAME to accept it."
            )
        # Only browsers send an Origin. The server's own page asks the host that
        # it comes from, whatever the server is called.
        origin = _name(headers.get("origin", f"//{_LOOPBACK}"))
        if not (self._has_cors or origin == host or self._has_name(origin)):
            raise RequestError(
                Code.PERMISSION_DENIED,
                "Requests from web pages of other sites are refused. Start the "
                "server with --enable_cors_support to accept them.",
            )

    def _has_name(self, name: str) -> bool:
        return self._is_open or name in self._allowed or is_loopback(name)


def _name(url: str) -> str:
    """The name of a host, without its port."""
    # A browser sends "null" for a page without a site, such as a file. Any page
    # can have itself shown as such a one, so nobody is allowed by this name.
    try:
        return urllib.parse.urlsplit(url).hostname or "null"
    except ValueError:
        return "null"


def is_loopback(name: str) -> bool:
    """Whether a name is that of the machine itself."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == _LOOPBACK or name.endswith(f".{_LOOPBACK}")


class Bodies:
    """Reads bodies. All that are in memory have a limit together."""

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
            # Part by part: a thousand clients may send a slow body each.
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
                f"The body is in {encoding[:40]}. Send it in gzip, or without "
                "compression.",
                http_status=415,
            )
        most = self._limits.max_body_bytes
        text = b""
        # A file in gzip is one member or several of them (RFC 1952, 2.2).
        for _ in range(_MOST_MEMBERS):
            stream = zlib.decompressobj(_IS_GZIP + zlib.MAX_WBITS)
            try:
                # At most one byte too many, and at least 1: zlib takes 0
                # for no limit.
                text += stream.decompress(body, most + 1 - len(text))
            except zlib.error as error:
                raise errors.invalid(
                    "The body is not in gzip, as its Content-Encoding says."
                ) from error
            if len(text) > most:
                raise self._too_large()
            if not stream.eof:
                raise errors.invalid("The gzip body is incomplete.")
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
