"""A corpus of a few lines, and how to train on it."""

import os
import pathlib
import sys

import numpy as np
import pytest

import keras_attention

MODEL_ARGUMENTS = (
    '{"num_layers": 1, "hidden_dim": 16, "intermediate_dim": 32, '
    '"num_heads": 2}'
)
WORDS = "ein zwei drei vier fünf sechs sieben acht neun zehn".split()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Digits and their names; the last line of the test set is blank."""
    folder = tmp_path_factory.mktemp("corpus")
    generator = np.random.default_rng(0)
    for split, size in (("train", 150), ("validation", 7), ("test", 5)):
        rows = [
            generator.integers(0, 10, generator.integers(1, 6))
            for _ in range(size)
        ]
        if split == "test":
            rows.append([])
        source = "\n".join(" ".join(map(str, row)) for row in rows)
        target = "\n".join(" ".join(WORDS[d] for d in row) for row in rows)
        (folder / f"{split}.en").write_text(source + "\n", "utf-8")
        (folder / f"{split}.de").write_text(target + "\n", "utf-8")
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
            MODEL_ARGUMENTS,
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
