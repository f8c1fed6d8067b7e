"""The processes that train one model together, as TF_CONFIG names them."""

import contextlib
import dataclasses
import json
import os
import socket
import sys
import time

from keras_attention import watchdog

# What the leader answers, and for how many seconds nobody says that it waits.
_ALL_ARE_THERE = "all are there"
_SILENCE = 5


@dataclasses.dataclass(frozen=True)
class Workers:
    """Which of how many workers this process is.

    Args:
        addresses: HOST:PORT of each worker, in the order of their ranks. A
            process that trains alone has none.
        rank: this worker's place among them, from 0.
    """

    addresses: tuple[str, ...] = ()
    rank: int = 0

    @property
    def count(self) -> int:
        """The number of workers; 1 for a process that trains alone."""
        return max(1, len(self.addresses))

    @property
    def leads(self) -> bool:
        """Whether this worker writes what all of them have trained."""
        return self.rank == 0

    @contextlib.contextmanager
    def meeting(self, minutes: float = 10):
        """Waits for all workers, and watches them while its block runs.

        The block starts TensorFlow. If a worker is lost meanwhile, this process
        says so and ends at once: neither an exception nor Ctrl+C ends
        TensorFlow's own waiting. It does the same if the block takes too long.

        Args:
            minutes: how long the leader waits for the others, and they for the
                leader to listen. The block may run as long.

        Raises:
            ConnectionError: If a worker does not come, or if another program
                has the leader's port.
            ChildProcessError: If there is no process that keeps watch.
        """
        if self.count == 1:
            yield
            return
        found = {
            self._names({rank}): connection
            for rank, connection in self._meet(60 * minutes).items()
        }
        with watchdog.watch(found, int(60 * minutes)):
            yield

    def _meet(self, seconds):
        """The leader's connections to all others, or theirs to it, by rank.

        The leader listens at its address. The others say their ranks there, and
        wait for an answer.
        """
        if self.leads:
            return self._wait_for_others(seconds)
        return {0: self._wait_for_leader(seconds)}

    def _wait_for_others(self, seconds):
        """Until each says its rank here, and none has left again."""
        start = time.monotonic()
        others, due = {*range(1, self.count)}, start + _SILENCE
        connections = {}
        with contextlib.ExitStack() as stack:
            listener = stack.enter_context(
                _listener(self.addresses[0], self.count)
            )
            while missing := others - {*connections}:
                names = self._names(missing)
                if time.monotonic() > start + seconds:
                    _tell(connections.values(), names)
                    raise _absent(names)
                if time.monotonic() > due:
                    print(f"Waiting for {names}", file=sys.stderr, flush=True)
                    due = time.monotonic() + 60
                for rank, newcomer in _newcomer(listener, others).items():
                    # The older of two may be a lost machine's.
                    if rank in connections:
                        connections[rank].close()
                    connections[rank] = stack.enter_context(newcomer)
                for rank in [*connections]:
                    if _has_ended(connections[rank]):
                        connections.pop(rank).close()
            listener.close()
            _tell(connections.values(), _ALL_ARE_THERE)
            stack.pop_all()
            return connections

    def _wait_for_leader(self, seconds):
        """Says this worker's rank, until the leader answers."""
        start = time.monotonic()
        leader, due = self._names({0}), start + _SILENCE
        while True:
            answer = ""
            with contextlib.ExitStack() as stack:
                with contextlib.suppress(OSError, UnicodeError):
                    connection = stack.enter_context(
                        socket.create_connection(
                            _host_and_port(self.addresses[0]), timeout=5
                        )
                    )
                    connection.sendall(f"{self.rank}\n".encode())
                    # The leader listens already, so its time ends first.
                    answer = _first_line(connection, seconds + 10)
                if answer == _ALL_ARE_THERE:
                    stack.pop_all()
                    return connection
            # A leader that runs TensorFlow already answers something else.
            if answer.startswith("worker "):
                raise _absent(answer)
            if time.monotonic() > start + seconds:
                raise _absent(leader)
            if time.monotonic() > due:
                print(f"Waiting for {leader}", file=sys.stderr, flush=True)
                due = time.monotonic() + 60
            time.sleep(0.5)

    def _names(self, ranks):
        """The first few of these workers, and how many more there are."""
        first = sorted(ranks)[:4]
        names = [f"worker {rank} at {self.addresses[rank]}" for rank in first]
        if len(ranks) > len(first):
            names.append(f"{len(ranks) - len(first)} more")
        return ", ".join(names)


def from_environment() -> Workers:
    """The workers in the environment variable TF_CONFIG.

    It holds JSON: `cluster` lists the addresses of each kind of worker, and
    `task` says which one this process is. A `chief`, where there is one, comes
    before the workers.

    Raises:
        ValueError: If TF_CONFIG says anything else.
    """
    text = os.environ.get("TF_CONFIG", "")
    if not text.strip():
        return Workers()
    try:
        content = json.loads(text)
        cluster = content.get("cluster", {})
        if not cluster:
            return Workers()
        addresses = {
            (kind, index): address
            for kind in ("chief", "worker")
            for index, address in enumerate(cluster.get(kind, ()))
        }
        task = content["task"]["type"], int(content["task"]["index"])
        if not {*cluster} <= {"chief", "worker"}:
            raise ValueError(f"a cluster of {', '.join(cluster)}")
        for address in addresses.values():
            _host_and_port(address)  # ValueError if it is none.
        return Workers(tuple(addresses.values()), list(addresses).index(task))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            "Expected TF_CONFIG to list the workers' addresses, and to say "
            'which one this process is: {"cluster": {"worker": ["HOST:PORT", '
            '...]}, "task": {"type": "worker", "index": 0}}. '
            f"Received: {text} ({error})"
        ) from error


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not 0 < int(port) < 65536:
        raise ValueError(f"the address {address}")
    return host.strip("[]"), int(port)


def _listener(address, count):
    """A socket that listens at the port, on all interfaces as TensorFlow."""
    place, backlog = ("", _host_and_port(address)[1]), max(16, count)
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    try:
        listener = socket.create_server(
            place, family=family, backlog=backlog, dualstack_ipv6=both
        )
    except OSError as error:
        raise ConnectionError(
            "Expected a free port at the leader's address: end the program "
            "that has it, or name another port in TF_CONFIG. Received: "
            f"{address} ({error})"
        ) from error
    listener.settimeout(0.5)
    return listener


def _newcomer(listener, ranks):
    """The connection of a worker that has come, by its rank; or nothing."""
    try:
        connection, _ = listener.accept()
    except TimeoutError:
        return {}
    except OSError:  # Such as too many open files.
        time.sleep(0.5)
        return {}
    rank = _first_line(connection, seconds=1)
    if rank.isdecimal() and int(rank) in ranks:
        return {int(rank): connection}
    connection.close()  # Such as a scan of ports.
    return {}


def _first_line(connection, seconds):
    """What the other side says at once, or "" if that is nothing."""
    connection.settimeout(max(0.1, seconds))
    with contextlib.suppress(OSError):
        text = connection.recv(1000).decode(errors="replace")
        return text.partition("\n")[0].strip()
    return ""


def _tell(connections, line):
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.sendall(f"{line}\n".encode())


def _has_ended(connection):
    """Whether the other side has closed it."""
    connection.setblocking(False)
    try:
        return not connection.recv(1)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _absent(names):
    return ConnectionError(
        "Expected all workers to come: start the same command on each "
        "machine, and let them reach each other's ports. Received: no answer "
        f"from {names}"
    )
