"""On JAX, plain `fit` in two processes is that of one."""

import importlib.util
import os
import pathlib
import socket
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = pathlib.Path(__file__).with_name("data_parallel.py")
ROOT = PROGRAM.parents[2]


def start(model, rank, count, address, weights):
    place = [str(rank), str(count), address]
    return subprocess.Popen(
        [sys.executable, PROGRAM, model, *place, weights],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="jax is not installed"
)
@pytest.mark.parametrize("model", ["transformer", "rnnsearch"])
def test_two_processes_train_as_one(tmp_path, model):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    places = [(0, 1), (0, 2), (1, 2)]
    paths = [tmp_path / f"{rank}of{count}.npz" for rank, count in places]
    processes = [
        start(model, *place, address, path)
        for place, path in zip(places, paths, strict=True)
    ]
    try:
        assert [process.wait(300) for process in processes] == [0, 0, 0]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    alone, first, second = (np.load(path) for path in paths)
    assert alone["moved"] > 0.01
    for name in alone.files:
        np.testing.assert_allclose(
            first[name], alone[name], rtol=0, atol=1e-6, err_msg=name
        )
        assert first[name].tobytes() == second[name].tobytes()
