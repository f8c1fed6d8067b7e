"""How a server runs, and how much requests may take."""

import dataclasses
import pathlib
import re
import socket

# The seconds that requests on their way are still taken after SIGTERM.
GRACE = 0.5

# Connections that wait until they are taken: as many as with uvicorn alone.
_BACKLOG = 2048
# In /v1/models/NAME:predict, a slash or a colon would end the name.
_NAME = re.compile(r"[^/:\s]{1,200}")


def check_name(name: str) -> None:
    """Refuses a model's name that cannot stand in a request's path.

    Raises:
        ValueError: If the name is such a one.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"The model name {name!r} must have 1 to 200 characters, without "
            "spaces, slashes and colons. Give another one, such as with "
            "--model_name."
        )


def bound_socket(host: str, port: int, flag: str) -> socket.socket:
    """A socket at a port that is free.

    Args:
        host: the address.
        port: its port; 0 for any.
        flag: what chooses the port.

    Raises:
        ValueError: If the address is none of this machine, or the port has a
            server.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            # Connections of a server that has just ended hold its port for a
            # minute.
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            # At once: only so does gRPC find out that it is taken.
            bound.listen(_BACKLOG)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise ValueError(port_error(flag, host, port)) from error
    return bound


def port_error(flag: str, host: str, port: int) -> str:
    """Why a server cannot listen."""
    return (
        f"Port {port} of {host} is not free, or {host} is not an address of "
        f"this machine. Choose others by --{flag} (0 for any) and --host."
    )


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a server runs.

    Attributes:
        host: the address that it listens at.
        rest_port: of HTTP; 0 for any that is free.
        grpc_port: of gRPC; 0 for any that is free.
        poll_seconds: how often it looks for new versions; 0 for never.
        num_threads: how many batches are computed at the same time.
        reload_root: a folder. A client may ask for a reload, and may name
            folders of models below it. None: no client may.
        log_texts: whether the log has the requests.
        allowed_hosts: names of the server, for requests over HTTP. None are
            needed for loopback, nor by a server that listens elsewhere.
        has_cors: whether pages of other sites may ask.
    """

    host: str = "127.0.0.1"
    rest_port: int = 8501
    grpc_port: int = 8500
    poll_seconds: float = 1.0
    num_threads: int = 1
    reload_root: pathlib.Path | None = None
    log_texts: bool = False
    allowed_hosts: tuple[str, ...] = ()
    has_cors: bool = False


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits of a server.

    Attributes:
        max_batch_size: the most rows that are answered in one call of a
            model. A larger request is answered in parts.
        max_rows: the most rows of a request.
        max_queued_rows: the most rows that wait for a model. A request beyond
            them is refused. One without rows counts as a row. The rows of
            requests that are several times larger do not count.
        max_body_bytes: the most bytes of a request, and of each of its inputs.
        max_text_bytes: the most bytes of a text.
        max_head_bytes: the most bytes of a request's first line and headers.
        max_connections: the most connections over HTTP whose requests are
            answered, and the most calls of gRPC at a time.
        timeout: the most seconds that a request over HTTP takes, or that it
            takes to arrive.
        drain_seconds: the most seconds that requests go on after SIGTERM.
    """

    max_batch_size: int = 32
    max_rows: int = 256
    max_queued_rows: int = 512
    max_body_bytes: int = 4 * 2**20
    max_text_bytes: int = 2**16
    max_head_bytes: int = 2**16
    max_connections: int = 1024
    timeout: float = 30.0
    drain_seconds: float = 30.0

    @property
    def max_read_bytes(self) -> int:
        """The most bytes of the bodies that are read."""
        return 64 * self.max_body_bytes  # 256 MB by default.

    @property
    def max_queued_bytes(self) -> int:
        """The most bytes of inputs that wait, as `max_queued_rows`."""
        return 16 * self.max_body_bytes  # 64 MB by default.
