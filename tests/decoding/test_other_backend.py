"""Searches use `keras.ops` alone: another backend finds the same."""

import importlib.util
import os
import pathlib
import runpy
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = pathlib.Path(__file__).with_name("searches.py")
ROOT = PROGRAM.parents[2]


# What Keras needs for each backend.
@pytest.mark.slow
@pytest.mark.parametrize(
    "backend, packages", [("jax", ["jax"]), ("numpy", ["jax", "scipy"])]
)
def test_another_backend_finds_the_same(tmp_path, backend, packages):
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    expected = runpy.run_path(str(PROGRAM))["run"]()
    subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path / "results.npz")],
        env={
            **os.environ,
            "KERAS_BACKEND": backend,
            "PYTHONPATH": str(ROOT),
        },
        check=True,
    )
    with np.load(tmp_path / "results.npz") as results:
        assert set(results) == set(expected)
        for name, values in expected.items():
            np.testing.assert_allclose(
                results[name], values, atol=1e-5, err_msg=name
            )
