"""What callbacks do at the end of batches."""

import io
import sys

import pytest

from keras_attention.training import callbacks


@pytest.mark.parametrize(
    "steps, start, expected",
    [(3, 0, [3, 6, 9]), (3, 4, [6, 9, 12]), (1, 0, range(1, 11)), (0, 0, [])],
)
def test_every_steps(steps, start, expected):
    called = []
    callback = callbacks.EverySteps(steps, called.append, start)
    for batch in range(10 if start == 0 else 9):
        callback.on_train_batch_end(batch)
    assert called == list(expected)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Notebook(io.StringIO):
    # `ipykernel.iostream.OutStream` takes its place.
    __module__ = "ipykernel.iostream"


@pytest.mark.parametrize(
    "output, expected", [(Terminal, 1), (Notebook, 1), (io.StringIO, 2)]
)
def test_verbosity(output, expected, monkeypatch):
    monkeypatch.setattr("sys.stdout", output())
    # A program that has imported it is no notebook for that.
    monkeypatch.setitem(sys.modules, "ipykernel", io)
    assert callbacks.verbosity() == expected
