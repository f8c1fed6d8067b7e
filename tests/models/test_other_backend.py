"""Layers and models use `keras.ops` alone: another backend agrees."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import forward_passes
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]

# What Keras needs for each backend.
NEEDED = {"jax": ["jax"], "torch": ["torch"], "numpy": ["jax", "scipy"]}


@pytest.mark.slow
@pytest.mark.parametrize("backend", NEEDED)
@pytest.mark.parametrize("share", range(forward_passes.SHARES))
def test_another_backend_computes_the_same(tmp_path, share, backend):
    for package in NEEDED[backend]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    weights, expected = forward_passes.run(share)
    np.savez(tmp_path / "weights.npz", **weights)
    subprocess.run(
        [
            sys.executable,
            forward_passes.__file__,
            str(share),
            str(tmp_path / "weights.npz"),
            str(tmp_path / "outputs.npz"),
        ],
        env={
            **os.environ,
            "KERAS_BACKEND": backend,
            # Compiling takes far longer than what is compiled.
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "True",
            "PYTHONPATH": str(ROOT),
        },
        check=True,
    )
    with np.load(tmp_path / "outputs.npz") as outputs:
        assert set(outputs) == set(expected)
        for name, values in expected.items():
            np.testing.assert_allclose(
                outputs[name], values, atol=1e-5, err_msg=name
            )


@pytest.mark.slow
def test_no_module_asks_for_tensorflow_itself():
    """With any import of it refused after Keras has loaded its backend."""
    program = (
        "import sys, keras\n"
        "sys.modules['tensorflow'] = None\n"
        "import keras_attention.layers, keras_attention.models\n"
        "keras_attention.models.Seq2Seq\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
