"""`benchmarks/on_jax.py` does the steps of `keras-attention train`."""

import argparse
import importlib.util
import json
import os
import pathlib
import runpy
import subprocess
import sys

import numpy as np
import pytest

import keras_attention as ka
from keras_attention import tasks
from keras_attention.data.embedded import sentences
from keras_attention.training import checkpoints, parts, run_directory

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = ROOT / "benchmarks" / "on_jax.py"
SIZES = '{"embedding_dim": 7, "units": 11}'


def write_corpus(folder):
    """Texts, and pairs of texts, in files."""
    folder.mkdir()
    texts = sentences.generate(train=60, validation=10, test=1)
    for split, lines in texts.items():
        (folder / f"{split}.txt").write_text("\n".join(lines))
    for split, lines in texts.items():
        backwards = [" ".join(line.split()[::-1]) for line in lines]
        (folder / f"{split}.en").write_text("\n".join(lines))
        (folder / f"{split}.de").write_text("\n".join(backwards))
    return folder


@pytest.fixture
def program():
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed")
    return runpy.run_path(str(PROGRAM))


def fit_on_jax(*paths):
    subprocess.run(
        [sys.executable, str(PROGRAM), "fit", *map(str, paths)],
        env={**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT)},
        check=True,
    )


def first_weights(path, config, directory):
    """Those that a training begins with, which its seed has drawn."""
    task = tasks.get(config.task)
    model = parts.build(config, task, directory, task.load(config.data)).model
    arrays = checkpoints.variables_to_arrays("model", model.trainable_variables)
    checkpoints.save(path, arrays, {})
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        ["--model=luong", "--max_tokens=256", "--vocabulary_size=300"],
        ["--model=rnn_language_model", "--context=stream", "--max_length=24"]
        + ["--max_tokens=240", "--optimizer=sgd", "--learning_rate=1"],
    ],
    ids=["translator", "language model"],
)
def test_jax_has_the_losses_of_the_trainer(program, tmp_path, flags):
    corpus = write_corpus(tmp_path / "corpus")
    run, batches, weights = (tmp_path / name for name in ("run", "b", "w"))
    flags += [f"--corpus={corpus}", "--model_arguments", SIZES]
    flags += ["--dropout=0", "--epochs=2", "--replicas=1"]
    program["prepare"](argparse.Namespace(run=str(run), batches=batches), flags)

    directory = run_directory.at(run)
    config = run_directory.read_config(directory)
    begin = first_weights(tmp_path / "begin.npz", config, directory)
    trained = ka.train(
        ka.config.replace(config, output=str(tmp_path / "other"))
    )
    expected = json.loads(trained.directory.history.read_text())

    fit_on_jax(run / "on_jax.npz", batches, weights, "--begin", begin)
    program["finish"](argparse.Namespace(run=str(run), weights=weights))
    history = json.loads(directory.history.read_text())
    assert len(history) == len(expected) == 2
    for logs, wanted in zip(history, expected, strict=True):
        for name in ("loss", "val_loss", "perplexity", "val_perplexity"):
            np.testing.assert_allclose(logs[name], wanted[name], rtol=1e-4)
    # The run answers with the weights that JAX has learned.
    assert expected[1]["loss"] < expected[0]["loss"]
    assert ka.load(run)(["a"]) == ka.load(trained.directory.path)(["a"])


@pytest.mark.parametrize(
    "model, flag, message",
    [
        ("rnn_language_model", "--context=carry", "no state is carried"),
        ("rnn_language_model", "--schedule=plateau", "no state is carried"),
        ("luong", "--guided_alignment=hmm", "a loss sees no attention"),
    ],
)
def test_what_it_cannot_train_is_refused(
    program, tmp_path, model, flag, message
):
    corpus = write_corpus(tmp_path / "corpus")
    run = argparse.Namespace(run=str(tmp_path / "run"), batches=tmp_path / "b")
    flags = [f"--model={model}", f"--corpus={corpus}", flag]
    with pytest.raises(ValueError, match=message):
        program["prepare"](run, flags)
