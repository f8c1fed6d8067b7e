"""Two processes train what one process trains."""

import json
import os
import pathlib
import runpy
import socket
import subprocess
import sys

import numpy as np
import pytest

import keras_attention

PROGRAM = pathlib.Path(__file__).with_name("two_workers.py")
ROOT = pathlib.Path(keras_attention.__file__).parents[1]


def free_ports(count):
    """Ports of this machine that nobody listens to."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2])
def test_keras_fit_across_two_workers_is_that_of_one_process(
    tmp_path, replicas
):
    """It guards the methods of Keras that `AcrossWorkers` overrides."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    processes = []
    for rank in range(2):
        cluster = {
            "cluster": {"worker": addresses},
            "task": {"type": "worker", "index": rank},
        }
        environment = {
            "PYTHONPATH": str(ROOT),
            "TF_CONFIG": json.dumps(cluster),
        }
        with (tmp_path / f"{rank}.log").open("wb") as log:
            processes.append(
                subprocess.Popen(
                    [sys.executable, PROGRAM, tmp_path, str(replicas)],
                    env={**os.environ, **environment},
                    stderr=log,
                )
            )
    try:
        weights, logs = runpy.run_path(str(PROGRAM))["fit"]()
        assert [process.wait(300) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    # One graph does for batches of all shapes.
    for rank in range(2):
        assert "retracing" not in (tmp_path / f"{rank}.log").read_text()
    first, second = (np.load(tmp_path / f"{rank}.npz") for rank in range(2))
    assert len(first.files) == len(second.files) == len(weights)
    for expected, name in zip(weights, first.files, strict=True):
        np.testing.assert_allclose(first[name], expected, rtol=0, atol=1e-6)
        assert first[name].tobytes() == second[name].tobytes()
    draws = []
    for rank in range(2):
        found, masks = json.loads((tmp_path / f"{rank}.json").read_text())
        assert found == pytest.approx(logs, rel=1e-5)
        draws += masks
    # All replicas draw the same dropout, and each step another one.
    assert len(draws) == 2 * replicas
    assert draws == [draws[0]] * len(draws) and draws[0][0] != draws[0][1]
