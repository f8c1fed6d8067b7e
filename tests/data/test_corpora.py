"""Corpora by name: phrases, TensorFlow Datasets, Multi30k."""

import functools
import os
import pathlib
import re
import socket
import time

import pytest
import tensorflow_datasets as tfds

from keras_attention.data import corpora
from keras_attention.data.embedded import phrases

SIZES = {"train": 700, "validation": 40, "test": 30}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home for prepared data, and a corpus that is small."""
    monkeypatch.setenv("KERAS_ATTENTION_HOME", str(tmp_path))
    monkeypatch.setattr(
        phrases, "generate", functools.partial(phrases.generate, **SIZES)
    )
    return tmp_path


@pytest.mark.parametrize("pair", [("en", "de"), ("fr", "es"), ("it", "nl")])
def test_the_corpus_is_what_the_generator_draws(home, read, pair):
    corpus = corpora.load("phrases", *pair)
    assert corpus.languages == pair
    drawn = phrases.generate(*pair)
    assert sorted(corpus.splits) == sorted(drawn)
    for split, pairs in drawn.items():
        expected = [(p.source, p.target) for p in pairs]
        assert read(corpus.splits[split]) == expected
        assert corpus.sizes[split] == len(expected)
    assert len(os.listdir(home)) == 1


def test_phrases_are_prepared_once(home, monkeypatch, read):
    first = read(corpora.load("phrases").splits["validation"])

    def fail(*args):
        pytest.fail("prepared again")

    monkeypatch.setattr(phrases, "generate", fail)
    assert read(corpora.load("phrases").splits["validation"]) == first


def test_two_processes_may_prepare_phrases(home, monkeypatch, read):
    generate = phrases.generate

    def is_overtaken(source, target):
        monkeypatch.setattr(phrases, "generate", generate)
        corpora.load("phrases")
        return generate(source, target)

    monkeypatch.setattr(phrases, "generate", is_overtaken)
    corpus = corpora.load("phrases")
    assert len(read(corpus.splits["train"])) == SIZES["train"]
    assert len(os.listdir(home)) == 1


def test_data_dir_comes_before_the_environment(home, tmp_path):
    folder = tmp_path / "elsewhere"
    corpora.load("phrases", data_dir=str(folder))
    assert os.listdir(home) == ["elsewhere"]
    assert os.listdir(folder)


@pytest.mark.parametrize("pair", [("en", "xx"), ("tlh", "de")])
def test_an_unknown_language_is_named(home, pair):
    wrong = pair[0] if pair[0] != "en" else pair[1]
    with pytest.raises(ValueError, match=f"the language '{wrong}'"):
        corpora.load("phrases", *pair)


@pytest.mark.parametrize("names", ["{}.de", "{}.txt", "ptb.{}.txt"])
def test_one_language_twice_pairs_each_line_with_itself(tmp_path, read, names):
    """From a translator's files, or from those of a language model."""
    for split in ("train", "validation", "test_2"):
        path = tmp_path / names.format(split)
        path.write_text(f"eins {split}\nzwei\n", "utf-8")
    (tmp_path / "train.en").write_text("one\ntwo\nthree\n", "utf-8")
    corpus = corpora.load(tmp_path, "de", "de")
    assert corpus.sizes == {"train": 2, "validation": 2, "test_2": 2}
    assert corpus.languages == ("de", "de")
    for split, pairs in corpus.splits.items():
        assert read(pairs) == [
            (f"eins {split}", f"eins {split}"),
            ("zwei", "zwei"),
        ]


@pytest.mark.parametrize("name", ["phrases", "sentences"])
def test_embedded_texts_are_their_own_targets(home, read, name):
    corpus = corpora.load(name, "en", "en")
    pairs = read(corpus.splits["validation"])
    assert len(pairs) == corpus.sizes["validation"] > 0
    assert all(source == target for source, target in pairs)
    assert len(set(pairs)) > 0.9 * len(pairs)


def test_a_corpus_of_pairs_alone_is_no_autoencoders(tmp_path):
    for name in ("addition", "pronunciations"):
        with pytest.raises(ValueError, match=f"{name} has no texts of one"):
            corpora.load(name, "a", "a")
    table = tmp_path / "train.tsv"
    table.write_text("one\teins\n")
    with pytest.raises(ValueError, match="has no texts of one language"):
        corpora.load(table, "de", "de")
    with pytest.raises(ValueError, match="has no train.de, nor train.txt"):
        corpora.load(tmp_path, "de", "de")


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
    with pytest.raises(ValueError, match="no corpus 'phrases'"):
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


class TalksInManyLanguages(tfds.core.GeneratorBasedBuilder):
    """20 talks, as ted_multi_translate has them; training alone."""

    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            features=tfds.features.FeaturesDict(
                {
                    "talk_name": tfds.features.Text(),
                    "translations": tfds.features.TranslationVariableLanguages(
                        languages=["de", "en", "pt-br", "xx"]
                    ),
                }
            ),
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples()}

    def _generate_examples(self):
        for number in range(20):
            texts = {"en": f"{number}", "pt-br": f"um {number}"}
            if number % 4:
                texts["de"] = f"eins {number}"
            if number == 7:
                texts["de"] = ["sieben", "7"]
            yield number, {"talk_name": "a talk", "translations": texts}


@pytest.fixture(scope="module")
def talks(tmp_path_factory):
    """Where the talks are prepared."""
    data_dir = tmp_path_factory.mktemp("tfds")
    tfds.disable_progress_bar()
    TalksInManyLanguages(data_dir=str(data_dir)).download_and_prepare()
    return data_dir


def german_talks(numbers):
    """The pairs of talks, by hand."""
    pairs = []
    for number in numbers:
        if number == 7:
            pairs += [("7", "7"), ("7", "sieben")]
        elif number % 4:
            pairs.append((f"{number}", f"eins {number}"))
    return pairs


@pytest.mark.parametrize(
    "slices, train, validation",
    [
        ("train[:90%]", range(18), range(18, 20)),
        ("train[:5]", range(5), range(5, 20)),
        ("train[2:12], train[15:]", range(2, 12), range(15, 20)),
        ("train[:50%]+train[-10%:],train[10:18]", [*range(10), 18, 19], None),
    ],
)
def test_slices_of_talks_in_many_languages(
    talks, read, slices, train, validation
):
    name = f"tfds:talks_in_many_languages@{slices}"
    corpus = corpora.load(name, "en", "de", data_dir=talks)
    expected = {
        "train": german_talks(train),
        "validation": german_talks(validation or range(10, 18)),
    }
    assert corpus.sizes == {name: len(p) for name, p in expected.items()}
    for split, pairs in corpus.splits.items():
        assert sorted(read(pairs)) == sorted(expected[split])
        assert pairs.cardinality() == corpus.sizes[split]


def test_three_slices_make_a_test_as_well(talks, read):
    name = "tfds:talks_in_many_languages@train[:10],train[10:15],train[15:]"
    corpus = corpora.load(name, "pt-br", "en", data_dir=str(talks))
    assert corpus.sizes == {"train": 10, "validation": 5, "test": 5}
    assert ("um 15", "15") in read(corpus.splits["test"])


@pytest.mark.parametrize(
    "slices, message",
    [
        ("", r"such as .tfds:NAME@train\[:98%\],train\[98%:\]"),
        ("@train", "without validation"),
        ("@train[2:]", "without validation"),
        ("@train[:x]", "train\\[:x\\]"),
        ("@train[:9],dev", "Unknown split 'dev'"),
        ("@train[:5],train,train,train", "up to three slices"),
    ],
)
def test_a_set_without_validation_wants_slices(talks, slices, message):
    with pytest.raises(ValueError, match=message):
        corpora.load(f"tfds:talks_in_many_languages{slices}", "en", "de", talks)


@pytest.mark.parametrize("language, message", [("xx", "pairs"), ("fr", "fr")])
def test_a_language_that_no_talk_has(talks, language, message):
    with pytest.raises(ValueError, match=message):
        corpora.load(
            "tfds:talks_in_many_languages@train[:9]", "en", language, talks
        )


def test_slices_replace_the_splits_of_a_set(read):
    with tfds.testing.mock_data(num_examples=10):
        corpus = corpora.load(
            "tfds:ted_hrlr_translate/pt_to_en@train[:3],test", "pt", "en"
        )
    assert {"train", "validation", "test"} <= set(corpus.splits)


def test_another_language_is_named():
    with tfds.testing.mock_data():
        with pytest.raises(ValueError, match="no language 'de'") as caught:
            corpora.load("tfds:ted_hrlr_translate/pt_to_en", "pt", "de")
    assert "['en', 'pt']" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["no_such_set", "ted_hrlr_translate/no_such_config"]
)
def test_an_unknown_set_is_named(name, tmp_path):
    with pytest.raises(ValueError, match=f"no translation set '{name}'"):
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
