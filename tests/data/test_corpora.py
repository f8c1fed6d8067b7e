"""Corpora by name: phrases, TensorFlow Datasets, Multi30k."""

import os
import pathlib
import re
import socket
import time

import pytest
import tensorflow_datasets as tfds

from keras_attention.data import corpora, phrases
from keras_attention.data.phrases import phrases_dataset_builder

SIZES = {"train": 700, "validation": 40, "test": 30}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home for prepared data, and a corpus that is small."""
    monkeypatch.setenv("KERAS_ATTENTION_HOME", str(tmp_path))
    monkeypatch.setattr(
        phrases_dataset_builder,
        "generate",
        lambda source, target: phrases.generate(source, target, **SIZES),
    )
    return tmp_path


@pytest.mark.parametrize("pair", [("en", "de"), ("fr", "es"), ("it", "nl")])
def test_the_builder_gives_what_the_generator_draws(home, read, pair):
    corpus = corpora.load("phrases", *pair)
    assert (corpus.source_language, corpus.target_language) == pair
    drawn = phrases.generate(*pair, **SIZES)
    assert sorted(corpus.splits) == sorted(drawn)
    for split, pairs in drawn.items():
        expected = [(p.source, p.target) for p in pairs]
        assert read(corpus.splits[split]) == expected
        assert corpus.sizes[split] == len(expected)
    assert os.listdir(home)


def test_phrases_are_prepared_once(home, monkeypatch, read):
    first = read(corpora.load("phrases").splits["validation"])

    def fail(*args):
        pytest.fail("prepared again")

    monkeypatch.setattr(phrases_dataset_builder, "generate", fail)
    assert read(corpora.load("phrases").splits["validation"]) == first


def test_phrases_are_prepared_without_a_word(home, capfd, caplog):
    corpora.load("phrases")
    # TFDS would speak of a download, and of a folder that is not there yet.
    assert "ataset" not in "".join(capfd.readouterr()) + caplog.text


def test_two_processes_may_prepare_phrases(home, monkeypatch, read):
    generate = phrases_dataset_builder.generate

    def is_overtaken(source, target):
        monkeypatch.setattr(phrases_dataset_builder, "generate", generate)
        corpora.load("phrases")
        return generate(source, target)

    monkeypatch.setattr(phrases_dataset_builder, "generate", is_overtaken)
    corpus = corpora.load("phrases")
    assert len(read(corpus.splits["train"])) == SIZES["train"]
    assert len(os.listdir(home)) == 1


def test_data_dir_comes_before_the_environment(home, tmp_path):
    folder = tmp_path / "elsewhere"
    corpora.load("phrases", data_dir=str(folder))
    assert os.listdir(home) == ["elsewhere"]
    assert os.listdir(folder)


def test_the_embedded_corpus_is_a_translation_set():
    builder = phrases_dataset_builder.Builder
    names = {config.name for config in builder.BUILDER_CONFIGS}
    assert len(names) == 4 * 3
    assert {"en_de", "de_en", "fr_es"} <= names
    assert phrases_dataset_builder.config_for("it", "nl").name == "it_nl"


@pytest.mark.parametrize("pair", [("en", "xx"), ("tlh", "de")])
def test_an_unknown_language_is_named(home, pair):
    wrong = pair[0] if pair[0] != "en" else pair[1]
    with pytest.raises(ValueError, match=f"Received: '{wrong}'"):
        corpora.load("phrases", *pair)


def test_one_language_is_no_pair():
    with pytest.raises(ValueError, match="source='de', target='de'"):
        corpora.load("phrases", "de", "de")


# Paths.


@pytest.mark.parametrize("kind", [str, pathlib.Path])
def test_paths_and_home(tmp_path, monkeypatch, read, kind):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "größe"
    folder.mkdir()
    for name in ("train.en", "train.de", "val.en", "val.de"):
        (folder / name).write_bytes(b"a\nb\n")
    for path in (kind(folder), kind("~/größe")):
        corpus = corpora.load(path, "en", "de")
        assert corpus.name == str(path)
        assert corpus.sizes == {"train": 2, "validation": 2}
        assert len(read(corpus.splits["train"])) == 2


def test_a_path_is_never_the_embedded_corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="Received: 'phrases'"):
        corpora.load(pathlib.Path("phrases"))


def test_data_dir_may_be_a_path_from_home(home, monkeypatch):
    monkeypatch.setenv("HOME", str(home))
    for data_dir in ("~/one", pathlib.Path("~/two"), pathlib.Path(home / "3")):
        corpora.load("phrases", data_dir=data_dir)
    monkeypatch.setenv("KERAS_ATTENTION_HOME", "~/four")
    corpora.load("phrases")
    assert sorted(os.listdir(home)) == ["3", "four", "one", "two"]


# TensorFlow Datasets.


def test_a_translation_set_by_name(read):
    with tfds.testing.mock_data(num_examples=7):
        corpus = corpora.load("tfds:ted_hrlr_translate/pt_to_en", "pt", "en")
        assert {"train", "validation", "test"} <= set(corpus.splits)
        assert corpus.sizes["train"] == 7
        pairs = read(corpus.splits["train"])
        assert len(pairs) == 7
        assert pairs != [(target, source) for source, target in pairs]
        turned = corpora.load("tfds:ted_hrlr_translate/pt_to_en", "en", "pt")
        assert read(turned.splits["train"]) == [(t, s) for s, t in pairs]


def test_another_language_is_named():
    with tfds.testing.mock_data():
        with pytest.raises(ValueError, match="Received: 'de'") as caught:
            corpora.load("tfds:ted_hrlr_translate/pt_to_en", "pt", "de")
    assert "['en', 'pt']" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["no_such_set", "ted_hrlr_translate/no_such_config"]
)
def test_an_unknown_set_is_named(name, tmp_path):
    with pytest.raises(ValueError, match=f"Received: '{name}'"):
        corpora.load(f"tfds:{name}", "pt", "en", data_dir=str(tmp_path))


def test_an_unprepared_set_fails_at_once(tmp_path, monkeypatch):
    attempts = []

    def connect(*address):
        attempts.append(address)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)
    start = time.monotonic()
    name = "ted_hrlr_translate/pt_to_en"
    with pytest.raises(ValueError, match="download_and_prepare") as caught:
        corpora.load(f"tfds:{name}", "pt", "en", data_dir=str(tmp_path))
    assert time.monotonic() - start < 20
    assert attempts == []
    # What the message tells to run is Python.
    command = re.search("python -c '(.*?)'", str(caught.value))[1]
    compile(command, "command", "exec")
    assert f'tfds.builder("{name}")' in command


@pytest.mark.skipif(
    "KERAS_ATTENTION_MULTI30K" not in os.environ,
    reason="KERAS_ATTENTION_MULTI30K names no folder of train.en, train.de, "
    "val.en, val.de, ...",
)
def test_multi30k_can_be_read(read):
    corpus = corpora.load(os.environ["KERAS_ATTENTION_MULTI30K"], "en", "de")
    assert corpus.sizes["train"] == 29_000
    assert corpus.sizes["validation"] == 1_014
    pairs = read(corpus.splits["validation"])
    assert len(pairs) == 1_014
    assert all(source and target for source, target in pairs)
