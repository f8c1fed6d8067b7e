"""What a run chooses where nothing is said, and the recipes."""

import dataclasses
import pathlib

import pytest

from keras_attention import config
from keras_attention.commands import parsing
from keras_attention.training import runs


@pytest.mark.parametrize(
    "choices, rate",
    [
        ({"model": "luong"}, 4e-3),
        ({"model": "luong", "learning_rate": 1e-3}, 1e-3),
        ({"model": "luong", "corpus": "folder"}, 2e-3),
        ({"model": "rnnsearch"}, 2e-3),
    ],
)
def test_the_learning_rate_depends_on_model_and_corpus(choices, rate):
    resolved = config.resolve(config.TrainingConfig(**choices))
    assert resolved.learning_rate == rate


def test_what_is_said_is_kept():
    said = config.TrainingConfig(epochs=3, dropout=0.4, output="here")
    resolved = config.resolve(said)
    assert (resolved.epochs, resolved.dropout, resolved.output) == (
        3,
        0.4,
        "here",
    )
    assert resolved.vocabulary_size == 550


def test_steps_leave_the_epochs_open():
    assert config.resolve(config.TrainingConfig(steps=7)).epochs is None


def parsed(words):
    arguments = parsing.make_parser().parse_args(words)
    names = [field.name for field in dataclasses.fields(config.TrainingConfig)]
    return config.resolve(
        config.TrainingConfig(**{n: arguments.train[n] for n in names})
    )


@pytest.mark.parametrize("name", sorted(parsing.RECIPES))
def test_a_recipe_trains_the_model_that_it_names(name):
    recipe = parsed(["train", "--config", name])
    assert recipe.output == f"runs/{name}"
    assert "Elliott" in recipe.data_note
    size = recipe.vocabulary_size
    assert runs.create_model(recipe, size, size).count_params() > 1e6


def test_a_recipe_gives_way_to_flags_and_to_a_file_of_its_name(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    name = "multi30k_en_de_rnnsearch"
    later = parsed(["train", f"--config={name}", "--corpus=a/b", "--seed=3"])
    assert (later.model, later.corpus, later.seed) == ("rnnsearch", "a/b", 3)
    for words in (["--config", name], [f"--config={name}"]):
        argv = parsing.reordered(["train", "--corpus=a/b", *words, "--seed=3"])
        assert parsed(argv) == later
    # Not the name nor the note of another corpus.
    assert later.output == "runs/b_en_de_rnnsearch"
    assert "Elliott" not in later.data_note
    pathlib.Path(name).write_text("model: luong\n", "utf-8")
    assert parsed(["train", "--config", name]).model == "luong"


def test_a_recipe_that_does_not_exist_is_refused_with_a_list(capsys):
    with pytest.raises(SystemExit):
        parsed(["train", "--config", "multi30k_en_de_long"])
    message = capsys.readouterr().err
    assert "multi30k_en_de_luong" in message and "en_de_long" in message
