"""A corpus of a few lines, and how to train on it."""

import json
import os
import pathlib
import sys

import pytest
import small_runs

import keras_attention


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Digits and their names; the last line of the test set is blank."""
    folder = tmp_path_factory.mktemp("corpus")
    small_runs.write_digits(folder, train=150, validation=7, test=5)
    for language in ("en", "de"):
        with open(folder / f"test.{language}", "a") as file:
            file.write("\n")
    return folder


@pytest.fixture(scope="session")
def train_arguments():
    """A function of corpus, output and more: a small run's command line."""

    def arguments(corpus, output, *more):
        return [
            "train",
            f"--corpus={corpus}",
            f"--output={output}",
            "--model_arguments",
            json.dumps(small_runs.SIZES),
            "--vocabulary_size=320",
            "--max_tokens=64",
            "--epochs=2",
            "--warmup_steps=5",
            "--checkpoint_steps=3",
            *more,
        ]

    return arguments


@pytest.fixture(scope="session")
def command():
    """A function of arguments: the command line, as for `subprocess`."""
    return lambda arguments: [
        sys.executable,
        "-m",
        "keras_attention",
        *arguments,
    ]


@pytest.fixture(scope="session")
def environment():
    """Of a process in which the package is this one."""
    root = pathlib.Path(keras_attention.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": str(root)}
