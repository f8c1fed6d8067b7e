"""`benchmarks/scan_one_by_one.py` learns, and its LSTM is Keras's."""

import importlib.util
import pathlib
import runpy
import sys

import keras
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = ROOT / "benchmarks" / "scan_one_by_one.py"
LINES = [
    "IN: jump OUT: I_JUMP",
    "IN: jump twice OUT: I_JUMP I_JUMP",
    "IN: walk OUT: I_WALK",
    "IN: walk twice OUT: I_WALK I_WALK",
]


@pytest.fixture
def program():
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed")
    return runpy.run_path(str(PROGRAM))


def test_lstm_is_that_of_keras(program):
    units = program["UNITS"]
    rng = np.random.default_rng(1)
    kernel = rng.normal(size=(2 * units, 4 * units)).astype("float32")
    bias = rng.normal(size=4 * units).astype("float32")
    x, output, memory = rng.normal(size=(3, units)).astype("float32")
    weights = {"encoder_0": kernel, "encoder_0_bias": bias}
    ours = program["lstm"](weights, "encoder_0", x, (output, memory))
    cell = keras.layers.LSTMCell(units)
    cell.build((1, units))
    cell.set_weights([kernel[:units], kernel[units:], bias])
    _, theirs = cell(x[None], [output[None], memory[None]])
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, np.array(other)[0], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("own_share", ["0", "1"])
def test_it_learns_a_few_commands(
    own_share, program, tmp_path, monkeypatch, capsys
):
    for half in ("train", "test"):
        path = tmp_path / f"tasks_{half}_toy.txt"
        path.write_text("\n".join(LINES) + "\n")
    argv = [str(tmp_path), "toy", "--steps", "600", "--own_share", own_share]
    monkeypatch.setattr(sys, "argv", [str(PROGRAM), *argv])
    program["main"]()
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("60 steps, ")
    assert last.startswith("600 steps, ")
    assert last.endswith("test 100.0 %")
