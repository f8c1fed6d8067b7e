"""Trainings that begin with published weights: `train --init`."""

import json

import numpy as np
import pytest

from keras_attention import config, models, runs
from keras_attention.config import beginnings
from keras_attention.training import (
    checkpoints,
    initial_weights,
    run_directory,
)

ARGUMENTS = {
    "num_layers": 1,
    "hidden_dim": 14,
    "intermediate_dim": 56,
    "num_heads": 7,
    "max_length": 13,
    "activation": "tanh_gelu",
    "epsilon": 1e-5,
}
IDS = np.array([[2, 7, 11, 13, 3]])


@pytest.fixture
def folder(write_gpt2, tensors):
    return write_gpt2(tensors)


def language_model(vocabulary_size):
    model = models.TransformerLanguageModel(vocabulary_size, **ARGUMENTS)
    model.build()
    return model


def test_a_model_takes_all_weights_but_those_of_other_tokens(folder):
    """Even of as many tokens: a training has a vocabulary of its own."""
    expected = models.from_pretrained(folder)
    for path in (folder, folder / "model.safetensors"):
        model = language_model(31)
        embedding = model.embedding.embeddings.numpy()
        initial_weights.take(model, str(path))
        np.testing.assert_array_equal(model.embedding.embeddings, embedding)
        model.embedding.embeddings.assign(expected.embedding.embeddings)
        np.testing.assert_array_equal(model(IDS), expected(IDS))


@pytest.mark.parametrize("name", ["model.weights.h5", "run.npz", "m.keras"])
def test_a_file_of_keras_beside_a_config_is_not_published(tmp_path, name):
    (tmp_path / "config.json").write_text('{"model_type": "other"}')
    (tmp_path / name).write_bytes(b"")
    assert config.handed_on(str(tmp_path / name), "transformer") == {}


def test_another_vocabulary_keeps_its_embedding(folder, capsys):
    model = language_model(23)
    embedding = model.embedding.embeddings.numpy()
    initial_weights.take(model, str(folder))
    assert (
        "with 19 of its 20 weights (fresh: embedding/embeddings) (not taken: "
        "embedding/embeddings [31, 14]), from "
    ) in capsys.readouterr().out
    np.testing.assert_array_equal(model.embedding.embeddings, embedding)
    np.testing.assert_array_equal(
        model.position_embedding.embeddings,
        models.from_pretrained(folder).position_embedding.embeddings,
    )


def test_a_weight_of_another_shape_is_refused(folder):
    model = models.TransformerLanguageModel(
        31, **ARGUMENTS | {"intermediate_dim": 55}
    )
    model.build()
    with pytest.raises(ValueError, match=r"shape \[14, 56\] in .* \[14, 55\]"):
        initial_weights.take(model, str(folder))


def test_safetensors_may_have_our_names(tmp_path, capsys):
    numpy_files = pytest.importorskip("safetensors.numpy")
    first, second = language_model(31), language_model(31)
    weights = {
        weight.path.partition("/")[2]: weight.numpy()
        for weight in first.trainable_weights
    }
    numpy_files.save_file(weights, tmp_path / "mine.safetensors")
    initial_weights.take(second, str(tmp_path / "mine.safetensors"))
    assert "with 20 of its 20 weights, from" in capsys.readouterr().out
    np.testing.assert_array_equal(second(IDS), first(IDS))


def test_a_folder_hands_on_its_model(folder):
    handed = config.handed_on(str(folder))
    assert handed == {
        "model": "transformer_language_model",
        "size": "gpt2",
        "model_arguments": ARGUMENTS,
    }
    assert config.handed_on(str(folder), "luong") == {}
    choices = config.make(init=str(folder), max_length=9)
    assert choices.architecture.model_arguments == ARGUMENTS


@pytest.mark.slow
def test_a_training_begins_with_them(folder, tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    for split, count in (("train", 40), ("validation", 5)):
        lines = "".join(f"one two {'three ' * (i % 4)}\n" for i in range(count))
        (texts / f"{split}.txt").write_text(lines)
    choices = config.make(
        init=str(folder),
        corpus=str(texts),
        output=str(tmp_path / "run"),
        max_length=9,
        max_tokens=64,
        steps=1,
        # So low that the first weights remain.
        learning_rate=1e-9,
    )
    directory = runs.train(choices).directory
    saved = run_directory.read_config(directory).architecture
    assert saved.model == "transformer_language_model"
    assert saved.model_arguments == ARGUMENTS
    arrays, _ = checkpoints.load(directory.weights)
    (kernel,) = (
        array
        for name, array in arrays.items()
        if name.endswith("layer_0/feed_forward/expand/kernel")
    )
    expected = models.from_pretrained(folder).stack[0].feed_forward.expand
    np.testing.assert_allclose(kernel, expected.kernel, atol=1e-6)


def test_what_holds_no_weights_is_refused(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="has no model.safetensors"):
        beginnings.weights_of(str(folder))
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(ValueError, match="family 'bert'. Families"):
        config.make(init=str(folder))
    with pytest.raises(ValueError, match="found no weights at .*safetensors"):
        beginnings.weights_of(str(tmp_path / "nothing"))
