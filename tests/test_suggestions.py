"""A mistyped name is answered with the one that it may have meant."""

import pytest

import keras_attention as ka
from keras_attention import cli, suggestions, tasks
from keras_attention.evaluation import scores
from keras_attention.models import catalog
from keras_attention.tasks import models

pytestmark = pytest.mark.usefixtures("without_pydantic")


@pytest.mark.parametrize(
    "received, names, expected",
    [
        ("transfomer", ["luong", "transformer"], "transformer"),
        ("adamm", ("sgd", "adam"), "adam"),
        (3, [1, 33, 2], "33"),
        ("zebra", ["luong", "transformer"], ""),
        ("", ["luong"], ""),
        ("luong", [], ""),
    ],
)
def test_the_closest_name_is_asked_for(received, names, expected):
    question = f" (did you mean {expected}?)" if expected else ""
    assert suggestions.closest(received, names) == question


@pytest.mark.parametrize(
    "line, meant",
    [
        ("trian", "train"),
        ("train --epoch 3", "--epochs"),
        ("train --model transfomer", "transformer"),
        ("train --optimizer adamm", "adam"),
        ("train --size tny", "tiny"),
        ("train --vocabulary_type wrod", "word"),
        ("train --learns question_answerin", "question_answering"),
        ("train --corpus phrasess", "phrases"),
        (
            "train --config multi30k_en_de_transfomer",
            "multi30k_en_de_transformer",
        ),
        ("train --config group.yaml", "optimizer"),
        ("train --config option.yaml", "epochs"),
        ("predict runs/pharses one", "runs/phrases"),
        ("evaluate runs/phrases --tokenise 13a", "--tokenize"),
        ("export runs/phrase --to there", "runs/phrases"),
        ("serve runs/phrases --prot 80", "--port"),
        ("serve runs/phrases/savedmodl", "runs/phrases/savedmodel"),
        ("completion zhs", "zsh"),
    ],
)
def test_the_command_line_asks(line, meant, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/phrases/savedmodel").mkdir(parents=True)
    (tmp_path / "runs/phrases/config.yaml").write_text("{}")
    (tmp_path / "group.yaml").write_text("optimizr: {epochs: 3}")
    (tmp_path / "option.yaml").write_text("optimizer: {epoch: 3}")
    with pytest.raises(SystemExit) as error:
        cli.main(line.split())
    assert f"(did you mean {meant}?)" in str(error.value)


@pytest.mark.parametrize(
    "call, meant",
    [
        (lambda: ka.config.make(modle="luong"), "model"),
        (lambda: ka.config.make(schedule="cosin"), "cosine"),
        (lambda: ka.models.Transformer.from_size("tinny", 97), "tiny"),
        (lambda: catalog.create("transfomer", "tiny"), "transformer"),
        (lambda: ka.data.corpora.load("phrasess", "en", "de"), "phrases"),
        (lambda: tasks.get("translaton"), "translation"),
        (lambda: scores.check_tokenizer("ja-mecb"), "ja-mecab"),
        # An argument of the model's own, and one of the class below it.
        (
            lambda: models.create(
                ka.config.resolve(
                    ka.config.make(model_arguments={"num_layer": 2})
                ).architecture,
                vocabulary_size=97,
            ),
            "num_layers",
        ),
        (
            lambda: models.create(
                ka.config.resolve(
                    ka.config.make(
                        model="monotonic_rnnsearch",
                        model_arguments={"unit": 11},
                    )
                ).architecture,
                vocabulary_size=97,
            ),
            "units",
        ),
    ],
)
def test_python_asks(call, meant):
    with pytest.raises(ValueError) as error:
        call()
    assert f"(did you mean {meant}?)" in str(error.value)
