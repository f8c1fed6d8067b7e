"""TF_CONFIG says which of how many workers a process is, and all meet."""

import contextlib
import json
import socket
import threading
import time

import pytest

from keras_attention import workers


def told(task, **cluster):
    return json.dumps({"cluster": cluster, "task": task})


@pytest.mark.parametrize(
    "text, count, rank",
    [
        ("", 1, 0),
        ("{}", 1, 0),
        (told({"type": "worker", "index": 0}, worker=["a:1"]), 1, 0),
        (told({"type": "worker", "index": 2}, worker=["a:1"] * 3), 3, 2),
        (
            told({"type": "chief", "index": 0}, worker=["a:1"], chief=["b:1"]),
            2,
            0,
        ),
        (
            told(
                {"type": "worker", "index": "1"},
                chief=["b:1"],
                worker=["a:1", "c:1"],
            ),
            3,
            2,
        ),
    ],
)
def test_a_worker_has_its_place(monkeypatch, text, count, rank):
    monkeypatch.setenv("TF_CONFIG", text)
    found = workers.from_environment()
    assert (found.count, found.rank) == (count, rank)
    assert found.leads == (rank == 0)


def test_a_process_without_it_trains_alone(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    found = workers.from_environment()
    assert (found.count, found.rank, found.leads) == (1, 0, True)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        told({"type": "worker", "index": 3}, worker=["a:1"] * 3),
        told({"type": "worker"}, worker=["a:1"]),
        told({}, worker=["a:1"]),
        '{"cluster": {}}',
        '{"task": {"type": "worker", "index": 1}}',
        '{"sparseCluster": {"worker": {"1": "a:1"}}, "task": {}}',
        told({"type": "worker", "index": 0}, worker=["a:1"], ps=["b:1"]),
        told({"type": "worker", "index": 0}, worker=["a:1", "b"]),
        told({"type": "worker", "index": 0}, worker=["a:1", 2]),
        told({"type": "worker", "index": 0}, worker=["a:70000"]),
        told({"type": "worker", "index": 0}, worker=[":1"]),
    ],
)
def test_anything_else_is_refused(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match="TF_CONFIG has to list"):
        workers.from_environment()


@pytest.fixture
def addresses():
    """Of three ports that are free."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    found = tuple(f"127.0.0.1:{one.getsockname()[1]}" for one in sockets)
    for one in sockets:
        one.close()
    return found


def port(address):
    return int(address.rpartition(":")[2])


class Meeting:
    """Workers that come one after the other, each in a thread."""

    def __init__(self, addresses):
        self.addresses, self.ends = addresses, {}
        self.threads = {}

    def come(self, rank, minutes=1.0):
        def run():
            try:
                workers.Workers(self.addresses, rank).meet(minutes)
                self.ends[rank] = "together"
            except ConnectionError as error:
                self.ends[rank] = str(error)

        self.threads[rank] = threading.Thread(target=run, daemon=True)
        self.threads[rank].start()

    def wait(self):
        for thread in self.threads.values():
            thread.join(timeout=60)
            assert not thread.is_alive()


def test_the_addresses_are_those_of_the_ranks(monkeypatch):
    cluster = {"worker": ["b:2", "[::1]:3"], "chief": ["a:1"]}
    task = {"type": "worker", "index": 0}
    monkeypatch.setenv("TF_CONFIG", told(task, **cluster))
    found = workers.from_environment()
    assert found.addresses == ("a:1", "b:2", "[::1]:3")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_all_go_on_when_the_last_has_come(addresses, order):
    meeting = Meeting(addresses)
    for rank in order:
        # Nobody goes on without those to come, however long they take.
        time.sleep(0.2)
        assert not meeting.ends
        meeting.come(rank)
    meeting.wait()
    assert meeting.ends == dict.fromkeys(range(3), "together")


def test_a_worker_that_does_not_come_is_named_to_all(
    addresses, capsys, monkeypatch
):
    monkeypatch.setattr(workers, "_SILENCE", 0.2)
    meeting = Meeting(addresses)
    # It waits for the leader as long as the leader for the others.
    meeting.come(2, minutes=0.05)
    time.sleep(1)
    meeting.come(0, minutes=0.05)
    meeting.wait()
    assert meeting.ends.keys() == {0, 2}
    for words in meeting.ends.values():
        assert words.startswith(
            f"No answer from worker 1 at {addresses[1]}. Start"
        )
    words = capsys.readouterr().err
    assert f"Waiting for worker 1 at {addresses[1]}" in words


def test_a_leader_that_does_not_come_is_named(addresses):
    meeting = Meeting(addresses)
    meeting.come(1, minutes=0.01)
    meeting.wait()
    assert f"worker 0 at {addresses[0]}." in meeting.ends[1]


def test_a_worker_that_leaves_is_missing_until_it_comes_again(addresses):
    """And so is a program that is no worker."""
    meeting = Meeting(addresses)
    meeting.come(0)
    for line in (b"1\n", b"7\n", b"GET / HTTP/1.1\n", b"", b"\xff\n"):
        with connected(addresses[0]) as connection:
            connection.sendall(line)
    with connected(addresses[0]):  # One that stays and says nothing.
        meeting.come(2)
        time.sleep(1)
        assert not meeting.ends
        meeting.come(1)
        meeting.wait()
    assert meeting.ends == dict.fromkeys(range(3), "together")


def test_a_worker_that_comes_again_replaces_a_lost_machine(addresses):
    """Such a machine's connection remains, as it was lost without a word."""
    meeting = Meeting(addresses)
    meeting.come(0)
    with connected(addresses[0]) as connection:
        connection.sendall(b"2\n")
        time.sleep(1)
        meeting.come(2)
        time.sleep(1)
        meeting.come(1)
        meeting.wait()
    assert meeting.ends == dict.fromkeys(range(3), "together")


def connected(address):
    """A connection to a leader, as soon as it is there."""
    for _ in range(200):
        with contextlib.suppress(OSError):
            return socket.create_connection(("127.0.0.1", port(address)))
        time.sleep(0.05)
    pytest.fail(f"No leader came to {address}")


def test_workers_meet_by_ipv6(addresses):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"This machine has no IPv6: {error}")
    meeting = Meeting(tuple(f"[::1]:{port(one)}" for one in addresses[:2]))
    meeting.come(0)
    meeting.come(1)
    meeting.wait()
    assert meeting.ends == {0: "together", 1: "together"}


def test_a_port_that_another_program_has_is_named(addresses):
    with (
        socket.create_server(("", port(addresses[0]))),
        pytest.raises(ConnectionError, match=f"listen at {addresses[0]} "),
    ):
        workers.Workers(addresses).meet()


def test_the_first_few_that_are_missing_are_named():
    here = workers.Workers(tuple(f"a:{place}" for place in range(1, 101)))
    assert here._names({9, 7}) == "worker 7 at a:8, worker 9 at a:10"
    assert here._names(range(1, 100)).endswith("worker 4 at a:5, 95 more")
