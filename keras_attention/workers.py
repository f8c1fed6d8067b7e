"""The processes that train one model together, as TF_CONFIG names them."""

import contextlib
import dataclasses
import json
import os
import select
import socket
import sys
import time

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

    def meet(self, minutes: float = 10) -> None:
        """Waits until all workers are there.

        TensorFlow would wait, too: it names nobody, and Ctrl+C does not end it.
        So the leader listens at its address before TensorFlow does. The others
        say their ranks there, and wait for an answer.

        Args:
            minutes: how long the leader waits for the others, and they for the
                leader to listen.

        Raises:
            ConnectionError: If a worker does not come, or if another program
                has the leader's port.
        """
        if self.count == 1:
            return
        if self.leads:
            self._wait_for_others(60 * minutes)
        else:
            self._wait_for_leader(60 * minutes)

    def _wait_for_others(self, seconds):
        """Until each has said its rank, and none has left again."""
        others, reminder = {*range(1, self.count)}, _Reminder(seconds)
        ranks: dict = {}  # Of a connection; None until it has said one.
        with contextlib.ExitStack() as stack:
            listener = _listener(self.addresses[0], self.count)
            stack.enter_context(listener)
            while missing := others - {*ranks.values()}:
                names = self._names(missing)
                if not reminder.waits_for(names):
                    _tell(ranks, names)
                    raise _absent(names)
                for one in select.select([listener, *ranks], [], [], 0.5)[0]:
                    if one is listener:
                        with contextlib.suppress(OSError):
                            newcomer, _ = listener.accept()
                            ranks[stack.enter_context(newcomer)] = None
                        continue
                    ranks.pop(one, None)
                    line = _first_line(one)
                    if not line.isdecimal() or int(line) not in others:
                        one.close()  # It has left, or it is no worker.
                        continue
                    # An older one of this rank may be a lost machine's.
                    ranks = {c: r for c, r in ranks.items() if r != int(line)}
                    ranks[one] = int(line)
            # TensorFlow needs the port when the others go on.
            listener.close()
            _tell(ranks, _ALL_ARE_THERE)

    def _wait_for_leader(self, seconds):
        """Says this worker's rank, until the leader answers."""
        leader, reminder = self._names({0}), _Reminder(seconds)
        place = _host_and_port(self.addresses[0])
        while True:
            answer = ""
            with contextlib.suppress(OSError, UnicodeError):
                with socket.create_connection(place, timeout=5) as connection:
                    connection.sendall(f"{self.rank}\n".encode())
                    # The leader listens already, so its time ends first.
                    connection.settimeout(seconds + 10)
                    answer = _first_line(connection)
            if answer == _ALL_ARE_THERE:
                return
            # A leader that runs TensorFlow already answers something else.
            if answer.startswith("worker "):
                raise _absent(answer)
            if not reminder.waits_for(leader):
                raise _absent(leader)
            time.sleep(0.5)

    def _names(self, ranks):
        """The first few of these workers, and how many more there are."""
        first = sorted(ranks)[:4]
        names = [f"worker {rank} at {self.addresses[rank]}" for rank in first]
        if len(ranks) > len(first):
            names.append(f"{len(ranks) - len(first)} more")
        return ", ".join(names)


class _Reminder:
    """Says once a minute for whom it waits, and when the time is over."""

    def __init__(self, seconds):
        self.due = time.monotonic() + _SILENCE
        self.end = time.monotonic() + seconds

    def waits_for(self, names):
        """Whether there is time left."""
        now = time.monotonic()
        if self.due < now <= self.end:
            print(f"Waiting for {names}", file=sys.stderr, flush=True)
            self.due = now + 60
        return now <= self.end


def from_environment() -> Workers:
    """The workers in the environment variable TF_CONFIG.

    It holds JSON: `cluster` lists the addresses of each kind of worker, and
    `task` says which one this process is. A `chief`, where there is one, comes
    before the workers. Without TF_CONFIG, or with `{}`, a process trains alone.

    Raises:
        ValueError: If TF_CONFIG says anything else: each process would train
            alone, without a word.
    """
    text = os.environ.get("TF_CONFIG", "").strip()
    try:
        content = json.loads(text or "{}")
        if content == {}:
            return Workers()
        cluster, task = content["cluster"], content["task"]
        if not {*cluster} <= {"chief", "worker"}:
            raise ValueError(f"a cluster of {', '.join(cluster)}")
        addresses = {
            (kind, index): address
            for kind in ("chief", "worker")
            for index, address in enumerate(cluster.get(kind, ()))
        }
        place = task["type"], int(task["index"])
        if place not in addresses:
            raise ValueError(f"no address of {place[0]} {place[1]}")
        for address in addresses.values():
            _host_and_port(address)  # ValueError if it is none.
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        missing = "no " if isinstance(error, KeyError) else ""
        raise ValueError(
            "TF_CONFIG has to list the workers' addresses and say which one "
            'this process is: {"cluster": {"worker": ["HOST:PORT", ...]}, '
            '"task": {"type": "worker", "index": 0}}. Unset it to train '
            f"alone. Received: {text} ({missing}{error})"
        ) from error
    return Workers(tuple(addresses.values()), list(addresses).index(place))


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
            f"The leader cannot listen at {address} ({error}). End the program "
            "that has this port, or name another one in TF_CONFIG."
        ) from error
    # BSD forgets a newcomer that has left again, and `accept` would wait on.
    listener.settimeout(0.5)
    return listener


def _first_line(connection):
    """What the other side says, or "" if it has left."""
    with contextlib.suppress(OSError):
        text = connection.recv(1000).decode(errors="replace")
        return text.partition("\n")[0].strip()
    return ""


def _tell(connections, line):
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.sendall(f"{line}\n".encode())


def _absent(names):
    return ConnectionError(
        f"No answer from {names}. Start the same command on each machine, and "
        "let the machines reach each other's ports."
    )
