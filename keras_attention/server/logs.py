"""The server's log: a line of JSON for each event, on standard error.

A line has a request's id, model and outcome, and never its texts, unless the
server was asked to log them.
"""

import json
import logging
import re
import sys
import time
import traceback
import uuid

_LOGGER = logging.getLogger("keras_attention.server")
# The libraries' loggers whose warnings are written, too.
_LIBRARIES = ("uvicorn.error", "grpc", "asyncio")
# An id stands in the log and in the head of the answer. So it is short, and has
# nothing that a head or a shell would read in another way.
_SANE_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class _Lines(logging.Formatter):
    def format(self, record):
        line = {
            "time": time.strftime(
                "%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)
            )
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
        }
        fields = getattr(record, "fields", None)
        line |= fields or {
            "event": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            # The type alone: an exception's message may quote a text.
            line["exception"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=False, default=str)


def begin(stream=None) -> logging.Handler:
    """Writes the log's lines, and those of the servers below, to a stream.

    Args:
        stream: where to; by default standard error.

    Returns:
        The handler. `end` takes it away.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Lines())
    for name, level in (
        (_LOGGER.name, logging.INFO),
        *((library, logging.WARNING) for library in _LIBRARIES),
    ):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.addHandler(handler)
        logger.propagate = False  # The root's handlers would write it again.
    return handler


def end(handler: logging.Handler) -> None:
    """Writes no more lines."""
    for name in (_LOGGER.name, *_LIBRARIES):
        logging.getLogger(name).removeHandler(handler)
        logging.getLogger(name).propagate = True


def event(name: str, level: str = "info", **fields) -> None:
    """Writes one line.

    Args:
        name: what happened.
        level: "info", "warning" or "error".
        **fields: what is known of it.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    _LOGGER.log(number, name, extra={"fields": {"event": name, **fields}})


def failure(name: str, error: BaseException, **fields) -> None:
    """Writes a line for an error that nobody expected: its type and place.

    Its message is left out, as it may quote a text.
    """
    # A `RequestError` is for the client. What caused it is for the log.
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    # The innermost ones: behind the others is the event loop.
    places = [
        f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(root.__traceback__)[-8:]
    ]
    event(
        name,
        level="error",
        exception=type(root).__name__,
        places=places,
        **fields,
    )


def request_id(given: str | None) -> str:
    """The id that a client gave, or a new one if it is none to write."""
    if given and _SANE_ID.fullmatch(given):
        return given
    return uuid.uuid4().hex
