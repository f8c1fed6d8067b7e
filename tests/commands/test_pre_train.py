"""A translator that begins as an autoencoder, or as a language model."""

import json

import numpy as np
import pytest

from keras_attention import cli, config, runs
from keras_attention.training import checkpoints, run_directory

SIZES = {"embedding_dim": 8, "units": 12, "num_layers": 2}


@pytest.fixture(scope="module")
def texts(corpus, tmp_path_factory):
    """The lines of both languages, as a language model reads them."""
    folder = tmp_path_factory.mktemp("texts")
    for split in ("train", "validation"):
        both = [
            (corpus / f"{split}.{language}").read_text("utf-8")
            for language in ("en", "de")
        ]
        (folder / f"{split}.txt").write_text("".join(both), "utf-8")
    return folder


CHOICES = {
    "vocabulary_type": "word",
    "max_tokens": 64,
    "epochs": 1,
    "warmup_steps": 5,
}


def first_stage(output, **choices):
    """A training that is neither scored nor exported."""
    choices = config.make(output=str(output), **CHOICES, **choices)
    return runs.train(choices).directory


def second_stage(output, **choices):
    """A training by the command line."""
    flags = {"output": output, **CHOICES, **choices}
    cli.main(["train", *(f"--{name}={flags[name]}" for name in flags)])
    return run_directory.at(output)


@pytest.mark.slow
def test_an_autoencoder_begins_a_translator(corpus, texts, tmp_path, capsys):
    first = first_stage(
        tmp_path / "autoencoder",
        model="lstm_encoder_decoder",
        model_arguments=SIZES,
        corpus=str(texts),
        source="en",
        target="en",
    )
    # Both languages' lines: digits and their names.
    assert "300 rows kept" in capsys.readouterr().out
    second = second_stage(
        tmp_path / "translator",
        init=first.path,
        corpus=corpus,
        # So low that the first weights remain.
        learning_rate=1e-9,
    )
    printed = capsys.readouterr().out
    assert "The model begins with 16 of its 16 weights, from " in printed
    choices = run_directory.read_config(second)
    assert (choices.data.source, choices.data.target) == ("en", "de")
    before, _ = checkpoints.load(first.weights)
    after, _ = checkpoints.load(second.weights)
    for name, array in after.items():
        np.testing.assert_allclose(array, before[name], atol=1e-5)
    (vocabulary,) = first.vocabularies()
    (same,) = second.vocabularies()
    assert same.read_bytes() == vocabulary.read_bytes()


@pytest.mark.slow
def test_a_language_model_begins_a_decoder(corpus, texts, tmp_path, capsys):
    first = first_stage(
        tmp_path / "language_model",
        model="rnn_language_model",
        model_arguments={**SIZES, "cell": "lstm"},
        corpus=str(texts),
    )
    second_stage(
        tmp_path / "translator",
        model="lstm_encoder_decoder",
        model_arguments=json.dumps(SIZES),
        init=first.path,
        corpus=corpus,
    )
    printed = capsys.readouterr().out
    # An embedding, three weights of each LSTM, and two of the output.
    assert (
        "The model begins with 9 of its 16 weights (fresh: "
        "source_embedding/embeddings, encoder_0/lstm_cell/kernel, "
    ) in printed
    assert "not taken" not in printed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "m.keras", "m.safetensors"])
def test_a_run_or_a_file_of_its_weights_begins_a_training(
    name, corpus, tmp_path, capsys
):
    first = first_stage(
        tmp_path / "first",
        model="lstm_encoder_decoder",
        model_arguments=SIZES,
        corpus=str(corpus),
        source="en",
        target="de",
    )
    model = runs.load(first.path).model
    if name.endswith(".keras"):
        model.save(first.path / name)
    elif name:
        files = pytest.importorskip("safetensors.numpy")
        weights = {
            weight.path.partition("/")[2]: weight.numpy()
            for weight in model.trainable_weights
        }
        files.save_file(weights, first.path / name)
    capsys.readouterr()
    second = second_stage(
        tmp_path / "second",
        init=first.path / name,
        model="lstm_encoder_decoder",
        model_arguments=json.dumps(SIZES),
        corpus=corpus,
        source="en",
        target="de",
        # So low that the first weights remain.
        learning_rate=1e-9,
    )
    all_of_them = "all its" if name.endswith(".keras") else "16 of its 16"
    printed = capsys.readouterr().out
    assert f"The model begins with {all_of_them} weights, from " in printed
    before, _ = checkpoints.load(first.weights)
    after, _ = checkpoints.load(second.weights)
    for path, array in after.items():
        np.testing.assert_allclose(array, before[path], atol=1e-5)
