"""What the server counts, in Prometheus's text format.

The names are those of TensorFlow Serving, so that its dashboards work. They
have no `_total` at their end, which Prometheus's own client would add.
"""

import bisect
import threading
from collections.abc import Sequence

_SERVING = ":tensorflow:serving:"
_SAVED_MODEL = ":tensorflow:cc:saved_model:"
# Microseconds, as TensorFlow Serving's own.
_LATENCIES = tuple(10 * 1.8**power for power in range(33))
_ROWS = tuple(float(2**power) for power in range(11))


# Each metric has a lock: requests are counted in the event loop, and batches in
# threads.
class Counter:
    """A number for each choice of labels.

    Args:
        name: its name in Prometheus.
        labels: the names of its labels.
    """

    def __init__(self, name: str, labels: Sequence[str]):
        self._name = name
        self._labels = labels
        self._values = {}
        self._lock = threading.Lock()

    def add(self, amount: float, *labels: str) -> None:
        """Adds to the number of these labels."""
        with self._lock:
            self._values[labels] = self._values.get(labels, 0) + amount

    def lines(self) -> list[str]:
        """The lines of the text format."""
        with self._lock:
            values = dict(self._values)
        # With 15 digits, 3.0 is 3, and 0.1 + 0.2 is 0.3.
        return [f"# TYPE {self._name} counter"] + [
            f"{self._name}{_braces(self._labels, labels)} {value:.15g}"
            for labels, value in values.items()
        ]


class Histogram:
    """How many values were at most so large, for each choice of labels.

    Args:
        name: its name in Prometheus.
        labels: the names of its labels.
        bounds: what the values are compared with, ascending.
    """

    def __init__(
        self, name: str, labels: Sequence[str], bounds: Sequence[float]
    ):
        self._name = name
        self._labels = labels
        self._bounds = bounds
        self._values = {}
        self._lock = threading.Lock()

    def add(self, value: float, *labels: str) -> None:
        """Adds a value to those of these labels."""
        place = bisect.bisect_left(self._bounds, value)
        with self._lock:
            counts, total = self._values.get(
                labels, ([0] * (len(self._bounds) + 1), 0.0)
            )
            counts[place] += 1
            self._values[labels] = counts, total + value

    def lines(self) -> list[str]:
        """The lines of the text format."""
        with self._lock:
            values = {
                labels: (list(counts), total)
                for labels, (counts, total) in self._values.items()
            }
        lines = [f"# TYPE {self._name} histogram"]
        for labels, (counts, total) in values.items():
            # A bucket of Prometheus has those of all smaller ones, too.
            below = 0
            bounds = [f"{bound:.6g}" for bound in self._bounds] + ["+Inf"]
            for bound, count in zip(bounds, counts, strict=True):
                below += count
                braces = _braces((*self._labels, "le"), (*labels, bound))
                lines.append(f"{self._name}_bucket{braces} {below}")
            braces = _braces(self._labels, labels)
            lines.append(f"{self._name}_sum{braces} {total:.15g}")
            lines.append(f"{self._name}_count{braces} {below}")
        return lines


def _braces(names, values) -> str:
    pairs = [
        f'{name}="{_escaped(value)}"'
        for name, value in zip(names, values, strict=True)
    ]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(value: str) -> str:
    # The backslash first: the others bring backslashes of their own.
    return (
        str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    )


class Metrics:
    """All that a server counts."""

    def __init__(self):
        self._requests = Counter(
            _SERVING + "request_count", ("model_name", "status")
        )
        self._latency = Histogram(
            _SERVING + "request_latency",
            ("model_name", "API", "entrypoint"),
            _LATENCIES,
        )
        self._runtime = Histogram(
            _SERVING + "runtime_latency",
            ("model_name", "API", "runtime"),
            _LATENCIES,
        )
        self._waiting = Histogram(
            _SERVING + "batching_session:queuing_latency", (), _LATENCIES
        )
        self._batches = Histogram(
            _SERVING + "batching:processed_batch_size", ("model_name",), _ROWS
        )
        self._loads = Counter(
            _SAVED_MODEL + "load_attempt_count", ("model_path", "status")
        )
        self._load_times = Counter(
            _SAVED_MODEL + "load_latency", ("model_path",)
        )
        self._connections = Counter(
            ":keras_attention:refused_connections", ("reason",)
        )

    def count_request(
        self,
        model: str,
        status: str,
        api: str,
        entrypoint: str,
        seconds: float,
    ) -> None:
        """Counts a request that was answered or refused.

        Args:
            model: its name, or "" if there is no such model: names that
                clients invent take no memory.
            status: the name of its `errors.Code`.
            api: such as "predict".
            entrypoint: "REST" or "GRPC".
            seconds: from its arrival to its answer.
        """
        self._requests.add(1, model, status)
        # Refusals are quick, and would hide slow answers.
        if status == "OK":
            self._latency.add(seconds * 1e6, model, api, entrypoint)

    def count_batch(
        self,
        model: str,
        num_rows: int,
        seconds: float,
        waiting: Sequence[float],
    ) -> None:
        """Counts a call of a model.

        Args:
            model: its name.
            num_rows: the rows of the batch.
            seconds: how long the call took.
            waiting: how long each of its requests waited, in seconds.
        """
        self._batches.add(num_rows, model)
        self._runtime.add(seconds * 1e6, model, "predict", "TF2")
        for seconds_of_job in waiting:
            self._waiting.add(seconds_of_job * 1e6)

    def count_load(self, path: str, is_good: bool, seconds: float) -> None:
        """Counts a version that was loaded or refused."""
        self._loads.add(1, path, "success" if is_good else "fail")
        self._load_times.add(seconds * 1e6, path)

    def count_connection(self, reason: str) -> None:
        """Counts a connection that is ended, as there are too many.

        Args:
            reason: "idle" for one that made place, "full" for a new one.
        """
        self._connections.add(1, reason)

    def text(self, queued_rows: int) -> str:
        """All of it, as Prometheus reads it."""
        lines = [
            line for metric in vars(self).values() for line in metric.lines()
        ]
        queue = ":keras_attention:queued_rows"
        # The queue knows its length. Nothing is counted for it.
        lines += [f"# TYPE {queue} gauge", f"{queue} {queued_rows}", ""]
        return "\n".join(lines)
