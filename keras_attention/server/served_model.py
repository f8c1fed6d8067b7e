"""A model with its versions: which answer, which are loaded, which failed."""

import contextlib
import dataclasses
import enum
import math
import pathlib
import re
import time
from collections.abc import Collection

from google.protobuf import message

from keras_attention.server import errors, model_configs, versions
from keras_attention.server.errors import Code, RequestError
from keras_attention.serving import manifest

# What is wrong with the files themselves: only other files help.
_LASTING = (ValueError, message.DecodeError)


class State(enum.IntEnum):
    """The life of a version, as in the protocol's `ModelVersionStatus`."""

    UNKNOWN = 0
    START = 10
    LOADING = 20
    AVAILABLE = 30
    UNLOADING = 40
    END = 50


@dataclasses.dataclass
class Status:
    """What is known of a version.

    Attributes:
        state: where it is in its life.
        error: why it could not be loaded, without the folders of the
            server's disk; or "".
        loaded: the version, while it is in memory.
        num_requests: requests that it answers now.
        fingerprint: its files, as it failed with them.
        num_failures: how often it failed with them.
        retry: when it is tried again with the same files, by
            `time.monotonic`.
    """

    state: State
    error: str = ""
    loaded: versions.LoadedVersion | None = None
    num_requests: int = 0
    fingerprint: object = None
    num_failures: int = 0
    retry: float = math.inf

    def fail(
        self,
        error: Exception,
        path: pathlib.Path,
        fingerprint,
        before: "Status | None",
    ):
        """Notes why a version cannot be loaded.

        Args:
            error: what loading raised.
            path: its folder.
            fingerprint: its files.
            before: the status before, or None.
        """
        self.state = State.END
        self.error = _without_folders(first_line(error), path.parent)
        self.fingerprint = fingerprint
        if isinstance(error, _LASTING):
            return
        # Such as too many open files, or too little memory.
        # With other files, the tries begin anew.
        if before is not None and before.fingerprint == fingerprint:
            self.num_failures = before.num_failures
        self.num_failures += 1
        # Each try reads gigabytes, perhaps. So tries become rare.
        self.retry = time.monotonic() + min(600, 2**self.num_failures)


class ServedModel:
    """The versions of a model. It is used in the event loop alone.

    Args:
        config: its `model_configs.ModelConfig`.

    Attributes:
        config: as given. A reload may replace it.
        statuses: version -> `Status`, of all that were ever there.
        is_starting: whether its versions were not all tried yet.
    """

    def __init__(self, config: model_configs.ModelConfig):
        self.config = config
        self.statuses = {}
        self.is_starting = True

    @property
    def available(self) -> list[int]:
        """The versions that answer, ascending."""
        return sorted(
            number
            for number, status in self.statuses.items()
            if status.state == State.AVAILABLE
        )

    def wanted(
        self, config: model_configs.ModelConfig, refused: Collection[int]
    ) -> dict[int, pathlib.Path]:
        """The versions to serve: number -> folder.

        They are chosen among those that are there and are not known to be
        bad. A bad version is tried again when its files change, or after a
        while if something else may be to blame.

        Args:
            config: what says which. Its folder is the model's.
            refused: versions that are bad now, whatever their files are.
        """
        on_disk = config.versions_on_disk()
        good = {
            number: path
            for number, path in on_disk.items()
            if number not in refused and not self._is_bad(number, path)
        }
        chosen = config.select([*good])
        return {number: good[number] for number in sorted(chosen)}

    def _is_bad(self, number, path) -> bool:
        status = self.statuses.get(number)
        return (
            status is not None
            and bool(status.error)
            and time.monotonic() < status.retry
            # Last, as it reads the folder.
            and status.fingerprint == fingerprint(path)
        )

    def find(self, number: int | None, label: str) -> Status:
        """The version that a request names; by default the greatest.

        Raises:
            RequestError: If there is no such version, or none at all, or if
                they are still loaded.
        """
        if label:
            if label not in self.config.labels:
                raise errors.invalid(
                    f"Unrecognized servable version label: {label}"
                )
            number = self.config.labels[label]
        available = self.available
        if number is None and available:
            number = available[-1]
        # It may still come: a client that is told so asks again.
        if self.is_starting and number not in available:
            raise RequestError(
                Code.UNAVAILABLE,
                f"{self.config.name} is still loading. Try again in a few "
                "seconds.",
            )
        if number not in available:
            which = "Latest" if number is None else "Specific"
            name = self.config.name
            of = name if number is None else f"{name}, {number}"
            raise RequestError(
                Code.NOT_FOUND, f"Servable not found for request: {which}({of})"
            )
        return self.statuses[number]


def first_line(error: Exception) -> str:
    """What an exception says first. TensorFlow's say much more."""
    return str(error).split("\n")[0] or type(error).__name__


def _without_folders(text: str, folder: pathlib.Path) -> str:
    """A message for clients, who need not know where files are."""
    # By name first: a folder's name may have spaces, which end a path below.
    for known in (folder, folder.resolve()):
        text = text.replace(str(known), known.name)
    # /a/b/c becomes c. Inside of a word, as in a/b or https://a, it stays.
    return re.sub(r"(?<![\w./])(/[^\s/'\"]+)*/(?=[^\s/])", "", text)


@contextlib.contextmanager
def in_use(status: Status):
    """While a request is answered, its version stays in memory."""
    status.num_requests += 1
    try:
        yield status.loaded
    finally:
        status.num_requests -= 1


def fingerprint(path: pathlib.Path) -> tuple:
    """The files of a version and of its manifest: names, sizes and times."""
    # Not their content: this is asked again and again, and weights are large.
    entries = []
    for file in (*sorted(path.rglob("*")), *manifest.places(path)):
        try:
            stat = file.stat()
        except OSError:
            # It was deleted meanwhile, or is a link to nowhere.
            continue
        entries.append((str(file), stat.st_size, stat.st_mtime_ns))
    return tuple(entries)
