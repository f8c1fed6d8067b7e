"""How much one request, all requests and their waiting may take."""

import dataclasses

# The seconds that requests on their way are still taken after SIGTERM.
GRACE = 0.5


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits of a server.

    Attributes:
        max_batch_size: the most rows that are answered in one call of a
            model. A request with more rows is answered by itself.
        max_rows: the most rows of a request.
        max_queued_rows: the most rows that wait. A request beyond them is
            refused. One without rows counts as a row.
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
    def max_waiting_bytes(self) -> int:
        """The most bytes of bodies that are read, and of inputs that wait."""
        return 64 * self.max_body_bytes
