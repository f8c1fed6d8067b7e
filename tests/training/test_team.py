"""What a worker says of others, and of itself."""

import json
import sys

import pytest
import tensorflow as tf

from keras_attention.training.team import Team

OF_ANOTHER = "Collective ops is aborted by: task 1 is gone\nRestart it."


@pytest.fixture
def of_two(monkeypatch):
    """A function of a rank: this process is that one of two workers."""

    def become(rank):
        cluster = {
            "cluster": {"worker": ["a:1", "b:1"]},
            "task": {"type": "worker", "index": rank},
        }
        monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))

    return become


def fail(error, message):
    with Team.at_work():
        raise error(None, None, message)


@pytest.mark.parametrize(
    "error, message, reason",
    [
        (tf.errors.UnavailableError, "Socket closed", "UnavailableError"),
        (tf.errors.InternalError, OF_ANOTHER, "task 1 is gone$"),
        (tf.errors.InternalError, "of step: NCCL: reset\n.", "NCCL: reset$"),
    ],
)
def test_a_lost_worker_is_reported(of_two, error, message, reason):
    of_two(0)
    with pytest.raises(ConnectionError, match=f"worker.* is lost.*: {reason}"):
        fail(error, message)


def test_errors_of_its_own_are_not_those_of_a_lost_worker(of_two):
    of_two(0)
    with pytest.raises(tf.errors.InternalError, match="no kernel"):
        fail(tf.errors.InternalError, "no kernel")


def test_a_process_alone_loses_nobody(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(tf.errors.UnavailableError):
        fail(tf.errors.UnavailableError, OF_ANOTHER)


def test_the_leader_alone_prints(of_two, capsys):
    for rank in range(2):
        of_two(rank)
        with Team.at_work():
            print(f"worker {rank}")
            print("error", file=sys.stderr)
    assert capsys.readouterr() == ("worker 0\n", "error\n" * 2)


@pytest.fixture
def pair(of_two, monkeypatch):
    """A function of the ranks of two workers that fail: Team, and its calls.

    What they gather is written down in place of the sum over a network.
    """

    def make(rank, failures):
        of_two(rank)
        team, gathered, turns = Team(None), [], iter(failures)

        def gather(value):
            gathered.append(value)
            others = next(turns)
            return [value, others] if rank == 0 else [others, value]

        monkeypatch.setattr(team, "_gather", gather)
        return team, gathered

    return make


@pytest.mark.parametrize("rank", [0, 1])
def test_all_of_a_turn_go_on_or_none(pair, rank):
    team, gathered = pair(rank, [0.0, 0.0])
    with team.leader_first():
        pass
    assert gathered == [0.0, 0.0]
    with pytest.raises(OSError, match="disk full"):
        team, gathered = pair(rank, [0.0, 0.0])
        with team.leader_first():
            raise OSError("disk full")
    assert gathered == ([0.0, 1.0] if rank else [1.0])
    # The leader's turn is the first, that of the others the second.
    team, gathered = pair(rank, [1.0] if rank else [0.0, 1.0])
    with pytest.raises(ConnectionError, match=f"Worker {1 - rank} has failed"):
        with team.leader_first():
            pass
    assert gathered == ([0.0] if rank else [0.0, 0.0])


def test_others_are_named(pair):
    team, _ = pair(0, [float(0x0ABCDEF1)])
    words = "have different data: give it.*0abcdef1 on worker 1"
    with pytest.raises(ValueError, match=words):
        team.agree("data", "text", "give it")
