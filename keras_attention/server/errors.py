"""Why a request gets no answer: the codes of gRPC, and those of HTTP to them.

A message says what is wrong and what to do. Where TensorFlow Serving has a text
for the same, the message begins with that text, as clients may look for it. If
the server itself is to blame, the message says so and no more: the log has the
cause.

This module does not import TensorFlow.
"""

import enum


class Code(enum.IntEnum):
    """The status codes that gRPC and TensorFlow share."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


# As TensorFlow Serving maps them.
HTTP_STATUS = {
    Code.OK: 200,
    Code.CANCELLED: 499,
    Code.UNKNOWN: 500,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.ABORTED: 409,
    Code.OUT_OF_RANGE: 400,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.DATA_LOSS: 500,
    Code.UNAUTHENTICATED: 401,
}

# What TensorFlow calls its types in messages.
TYPE_NAMES = {"float32": "float", "float64": "double", "float16": "half"}

# gRPC sends a message in its trailers, which have a few kilobytes, and makes
# three bytes of each that is not ASCII.
_MOST_BYTES = 1000


class RequestError(Exception):
    """A request that is refused or failed, in words for its client.

    Args:
        code: why, a `Code`.
        message: what was expected and what was received.
        http_status: the status over HTTP, if not that of the code.
        row: the place of the row that is to blame, which stands in the message
            as {row}.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        http_status: int = 0,
        row: int | None = None,
    ):
        super().__init__(message)
        self.code = code
        self._text = message
        self.row = row
        self.http_status = http_status or HTTP_STATUS[code]

    @property
    def message(self) -> str:
        """The words, as far as gRPC can send them."""
        text = self._text
        if self.row is not None:
            text = text.replace("{row}", str(self.row + 1))
        data = text.encode("utf-8", "replace")
        if len(data) <= _MOST_BYTES:
            return text
        return data[:_MOST_BYTES].decode("utf-8", "ignore") + "..."


def invalid(message: str, row: int | None = None) -> RequestError:
    """The error of a request that is wrong by itself."""
    return RequestError(Code.INVALID_ARGUMENT, message, row=row)
