"""Which requests over HTTP are refused by their head alone."""

import ipaddress
import urllib.parse
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

_LOOPBACK = "localhost"


class Guard:
    """An application around another one.

    A page of another site can let a browser ask a server on the same machine.
    The browser tells the page's name as `Origin`. If the page's site gives its
    own name the address of this machine, the browser tells that as `Host`. So
    a server that listens at a loopback address has names of loopback alone,
    unless it was told others.

    Args:
        app: answers the requests.
        host: where the server listens.
        allowed_hosts: other names that it has; "*" for any.
        has_cors: whether pages of other sites may ask.
        max_head_bytes: the most bytes of a request's head.
    """

    def __init__(
        self,
        app,
        host: str,
        allowed_hosts: Sequence[str],
        has_cors: bool,
        max_head_bytes: int,
    ):
        self._app = app
        self._allowed = frozenset(name.lower() for name in allowed_hosts)
        self._is_open = "*" in self._allowed or not (
            self._allowed or is_loopback(host)
        )
        self._has_cors = has_cors
        self._max_head_bytes = max_head_bytes

    async def __call__(self, scope, receive, send) -> None:
        """Answers a request, by the protocol ASGI."""
        status, error = self._refusal(scope)
        if status:
            response = JSONResponse(
                {"error": error}, status, {"connection": "close"}
            )
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope) -> tuple[int, str]:
        lengths = [len(name) + len(value) for name, value in scope["headers"]]
        target = len(scope["raw_path"]) + len(scope["query_string"])
        if target + sum(lengths) > self._max_head_bytes:
            most = self._max_head_bytes
            return 431, f"The request's head has more than {most} bytes."
        headers = Headers(scope=scope)
        if {"content-length", "transfer-encoding"} <= {*headers}:
            # A proxy may believe the other one (RFC 9112, 6.3).
            return 400, (
                "A request has either Content-Length or Transfer-Encoding."
            )
        host = _name(f"//{headers.get('host', _LOOPBACK)}")
        if not self._has_name(host):
            return 400, (
                f"This server is not known as {host[:100]}. Start it with "
                "--allowed_hosts=NAME to give it this name."
            )
        origin = _name(headers.get("origin", f"//{_LOOPBACK}"))
        if not (self._has_cors or origin == host or self._has_name(origin)):
            return 403, (
                "A page of another site asks. Start the server with "
                "--enable_cors_support to let it."
            )
        return 0, ""

    def _has_name(self, name: str) -> bool:
        return self._is_open or name in self._allowed or is_loopback(name)


def _name(url: str) -> str:
    """The name of a host, without its port."""
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
