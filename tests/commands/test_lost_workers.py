"""A worker is killed or frozen: the other one says so, and both go on."""

import json
import shutil
import signal
import socket
import subprocess
import time

import numpy as np
import pytest

from keras_attention import files
from keras_attention.training import checkpoints


def hear():
    """Hears Ctrl+C, which a shell's background jobs ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start_two(arguments, environment):
    """Two workers, each with its words of the command."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return [
        subprocess.Popen(
            arguments[rank],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=hear,
            env={
                **environment,
                "TF_CONFIG": json.dumps(
                    {
                        "cluster": {"worker": addresses},
                        "task": {"type": "worker", "index": rank},
                    }
                ),
            },
        )
        for rank in range(2)
    ]


def outputs(processes):
    """What both print, when both have ended."""
    try:
        return [process.communicate(timeout=500) for process in processes]
    finally:
        for process in processes:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lost", "cause"),
    [(0, signal.SIGKILL), (1, signal.SIGKILL), (1, signal.SIGSTOP)],
)
def test_a_lost_worker_is_reported_and_both_go_on(
    corpus, train_arguments, command, environment, tmp_path, lost, cause
):
    """The weights are those of two replicas in one process."""
    run, whole = tmp_path / "run", tmp_path / "whole"
    # Masks of dropout were not compared with those of one process.
    more = ["--epochs=4", "--dropout=0"]
    arguments = command(train_arguments(corpus, run, *more, "--resume"))
    processes = start_two([arguments] * 2, environment)
    try:
        while not (run / "history.json").is_file():
            assert all(process.poll() is None for process in processes)
            time.sleep(0.1)
        processes[lost].send_signal(cause)
        start = time.monotonic()
        words = processes[1 - lost].communicate(timeout=60)[1].decode()
        assert time.monotonic() - start < 30
    finally:
        processes[lost].kill()
        outputs(processes)
    assert processes[lost].returncode == -signal.SIGKILL
    assert processes[1 - lost].returncode == 1
    assert "keras-attention train: One of 2 workers is lost" in words
    processes = start_two([arguments] * 2, environment)
    (printed, _), (silence, _) = outputs(processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert b"SavedModel:" in printed and silence == b""
    assert (run / "scores.json").is_file()
    alone = command(train_arguments(corpus, whole, *more))
    subprocess.run(
        [*alone, "--replicas=2"],
        stdout=subprocess.DEVNULL,
        env=environment,
        check=True,
    )
    expected, _ = checkpoints.load(whole / "checkpoint.npz")
    found, _ = checkpoints.load(run / "checkpoint.npz")
    assert expected.keys() == found.keys()
    assert any(name.startswith("model/") for name in expected)
    for name, array in expected.items():
        # The gradient of a key's bias is 0 but for rounding. Adam moves such a
        # weight as far as any.
        if name.startswith(("model/", "optimizer/")) and "key_bias" not in name:
            np.testing.assert_allclose(
                found[name],
                array,
                rtol=0,
                atol=1e-4 * np.abs(array).max(),
                err_msg=name,
            )


@pytest.mark.slow
def test_workers_with_other_choices_are_refused(
    corpus, train_arguments, command, environment, tmp_path
):
    """Both say so, and nothing is written."""
    run = tmp_path / "run"
    arguments = [
        command(train_arguments(corpus, run, f"--seed={seed}"))
        for seed in (1, 2)
    ]
    processes = start_two(arguments, environment)
    for _, words in outputs(processes):
        assert b"The 2 workers have different choices" in words
    assert [process.returncode for process in processes] == [1, 1]
    assert not run.exists()


@pytest.mark.slow
def test_workers_with_other_data_are_refused(
    corpus, train_arguments, command, environment, tmp_path
):
    """Both say so before they train."""
    run, other = tmp_path / "run", tmp_path / "corpus"
    shutil.copytree(corpus, other)
    lines = (other / "train.en").read_text().splitlines()
    (other / "train.en").write_text("\n".join(["7", *lines[1:]]) + "\n")
    arguments = [
        command(train_arguments(folder, run)) for folder in (corpus, other)
    ]
    processes = start_two(arguments, environment)
    for _, words in outputs(processes):
        assert b"The 2 workers have different data" in words
    assert [process.returncode for process in processes] == [1, 1]
    assert not (run / "history.json").exists()


@pytest.mark.slow
def test_the_others_end_when_the_leader_fails(
    corpus, train_arguments, command, environment, tmp_path
):
    """Here it may not write in the folder."""
    run = tmp_path / "run"
    arguments = command(train_arguments(corpus, run))
    with files.lock(run):
        processes = start_two([arguments] * 2, environment)
        (_, own), (_, others) = outputs(processes)
    assert b"Another process writes in" in own
    assert b"Worker 0 has failed. Its own output says why." in others
    assert [process.returncode for process in processes] == [1, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cause", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)]
)
def test_a_worker_that_waits_can_be_ended(
    corpus, train_arguments, command, environment, tmp_path, cause, code
):
    """The other one has no corpus, and does not come."""
    arguments = [
        command(train_arguments(folder, tmp_path / "run"))
        for folder in (corpus, tmp_path / "nothing")
    ]
    first, second = start_two(arguments, environment)
    try:
        assert b"nothing" in second.communicate(timeout=300)[1]
        words = b""
        while b"Waiting for worker 1 at" not in words:
            words = first.stderr.readline()
            assert words
        first.send_signal(cause)
        first.wait(timeout=30)
    finally:
        first.kill()
        second.kill()
        outputs([first, second])
    assert [first.returncode, second.returncode] == [code, 1]
