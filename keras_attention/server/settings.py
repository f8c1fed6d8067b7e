"""Where a server listens, and what it does beside its answers."""

import dataclasses
import pathlib
import re

_NAME = re.compile(r"[^/:\s]{1,200}")


def check_name(name: str) -> None:
    """That a model's name can stand in the path of a request.

    Raises:
        ValueError: If it cannot.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            "Expected a model's name without blanks, slashes and colons. "
            f"Received: {name!r}"
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
    """

    host: str = "127.0.0.1"
    rest_port: int = 8501
    grpc_port: int = 8500
    poll_seconds: float = 1.0
    num_threads: int = 1
    reload_root: pathlib.Path | None = None
    log_texts: bool = False
