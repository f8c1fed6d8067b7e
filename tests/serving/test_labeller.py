"""Text in, label out: classifiers of one text and of two, live and loaded."""

import dataclasses
import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import models
from keras_attention.serving import kinds, labeller, loading
from keras_attention.tokens import END

CLASSES = ["high", "low", "odd"]
TEXTS = ["one two", "three", "", "nine eight seven", "  ", "zwölf", "日本語"]
LONG = "one " * 30
PROGRAM = """
import json, sys
import tensorflow as tf
import tensorflow_text
loaded = tf.saved_model.load(sys.argv[1])
inputs = {k: tf.constant(v) for k, v in json.loads(sys.argv[2]).items()}
answers = {
    name: {k: v.numpy().tolist() for k, v in loaded.signatures[name](
        **inputs).items() if v.dtype != tf.string}
    for name in ("serving_default", "with_attention")
}
labels = loaded.signatures["serving_default"](**inputs)["label"].numpy()
answers["labels"] = [label.decode() for label in labels.tolist()]
assert "keras_attention" not in sys.modules
print(json.dumps(answers))
"""


def opinionated(model):
    model.build()
    rng = np.random.default_rng(1)
    model.set_weights([rng.normal(size=w.shape) for w in model.weights])
    return model


@pytest.fixture(scope="module")
def tokenizer(tokenizers):
    return tokenizers[0]


@pytest.fixture(scope="module")
def live(tokenizer):
    keras.utils.set_random_seed(2)
    model = models.EncoderClassifier(
        tokenizer.vocabulary_size, 3, 2, 16, 13, 2, answer_position=None
    )
    return labeller.Labeller(opinionated(model), tokenizer, CLASSES, 12)


@pytest.fixture(scope="module")
def live_pairs(tokenizer):
    keras.utils.set_random_seed(2)
    model = models.DecomposableAttention(tokenizer.vocabulary_size, 3, 7, 11)
    return labeller.Labeller(
        opinionated(model), tokenizer, CLASSES, 12, kinds.ENTAILMENT
    )


@pytest.fixture(scope="module")
def version(live, tmp_path_factory):
    return live.export(tmp_path_factory.mktemp("exported") / "labels")


@pytest.fixture(scope="module")
def pair_version(live_pairs, tmp_path_factory):
    return live_pairs.export(tmp_path_factory.mktemp("exported") / "pairs")


def ids_of(live, text):
    ids = live.graph.tokenizer.tokenize([text]).numpy()[0].tolist()
    return np.array([[*ids[: live.graph.max_length - 1], END]])


def softmax(logits):
    return np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()


def test_the_label_has_the_greatest_logit(live):
    texts = [*TEXTS, LONG]
    answers = live(texts, batch_size=3, truncate=True)
    probabilities = live.probabilities(texts, truncate=True)
    for text, answer, row in zip(texts, answers, probabilities, strict=True):
        logits = live.model({"source_ids": ids_of(live, text)}).numpy()[0]
        assert answer == CLASSES[logits.argmax()]
        np.testing.assert_allclose(row, softmax(logits), atol=1e-5)
    assert len(set(answers)) > 1


def test_attention_is_that_of_the_text_alone(live):
    shown = live.with_attention(TEXTS, batch_size=7)
    for text, row in zip(TEXTS, shown, strict=True):
        ids = ids_of(live, text)
        _, weights = live.model.attend({"source_ids": ids})
        np.testing.assert_allclose(row["attention"], weights[0], atol=1e-4)
        assert len(row["source_tokens"]) == ids.shape[1]
        assert row["source_tokens"][-1] == "[END]"


def test_a_pair_is_two_texts(live_pairs):
    pairs = list(zip(TEXTS, TEXTS[::-1], strict=True))
    answers = live_pairs(pairs, batch_size=3)
    shown = live_pairs.with_attention(pairs)
    for pair, answer, row in zip(pairs, answers, shown, strict=True):
        source, other = (ids_of(live_pairs, one) for one in pair)
        inputs = {"source_ids": source, "pair_ids": other}
        logits, (of_pair, of_source) = live_pairs.model.attend(inputs)
        assert answer == row["label"] == CLASSES[logits.numpy()[0].argmax()]
        np.testing.assert_allclose(row["attention"], of_pair[0], atol=1e-4)
        np.testing.assert_allclose(
            row["attention_pair"], of_source[0], atol=1e-4
        )
    assert len(set(answers)) > 1


def test_texts_that_are_too_long(live, live_pairs):
    assert live.num_tokens([LONG, "one two"]) == [31, 3]
    assert live_pairs.num_tokens([("one", LONG), (LONG, "one")]) == [31, 31]
    with pytest.raises(ValueError, match="line 2 has 31 tokens.* at most 12"):
        live(["one", LONG])
    with pytest.raises(ValueError, match="line 1 has 31 tokens.* at most 12"):
        live_pairs([("one", LONG)])
    truncated = live.signatures["with_attention"](
        text=tf.constant(["one two", LONG])
    )["truncated"]
    assert truncated.numpy().tolist() == [False, True]


@pytest.mark.parametrize("row", ["one", ("a", "b", "c"), {"text": "a"}, 7])
def test_no_pair_is_refused(live_pairs, row):
    with pytest.raises(ValueError, match=r"\(text, text_pair\). Line 2 is"):
        live_pairs([("one", "two"), row])
    with pytest.raises(ValueError, match="Line 1 is None"):
        live_pairs([("one", None)])


def test_a_row_may_be_a_dict(live_pairs):
    rows = [("one", "two"), {"text_pair": "two", "text": "one"}]
    one, other = live_pairs.probabilities(rows)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["one\ttwo", "one\t", "\t"])
def test_a_tab_is_a_character(name, live, live_pairs):
    assert live([name])[0] in CLASSES
    (row,) = live_pairs.with_attention([(name, "two")])
    ids = ids_of(live_pairs, name)
    assert row["attention"].shape == (ids.shape[1], 2)


def test_a_savedmodel_answers_as_the_live_model(
    live, live_pairs, version, pair_version
):
    pairs = list(zip(TEXTS, TEXTS[::-1], strict=True))
    for model, path, texts in (
        (live, version, TEXTS),
        (live_pairs, pair_version, pairs),
    ):
        loaded = loading.load(path.parent)
        assert type(loaded) is labeller.Labeller and loaded.kind == model.kind
        assert loaded.labels == tuple(CLASSES)
        assert loaded(texts) == model(texts)
        assert loaded([]) == []
        for one, other in zip(
            loaded.with_attention(texts),
            model.with_attention(texts),
            strict=True,
        ):
            np.testing.assert_allclose(
                one["attention"], other["attention"], atol=1e-5
            )


@pytest.mark.slow
def test_tensorflow_alone_answers(live, live_pairs, version, pair_version):
    for model, path, inputs, texts in (
        (live, version, {"text": TEXTS}, TEXTS),
        (
            live_pairs,
            pair_version,
            {"text": TEXTS, "text_pair": TEXTS[::-1]},
            list(zip(TEXTS, TEXTS[::-1], strict=True)),
        ),
    ):
        program = [sys.executable, "-c", PROGRAM, str(path)]
        result = subprocess.run(
            [*program, json.dumps(inputs)],
            check=True,
            capture_output=True,
            text=True,
        )
        answers = json.loads(result.stdout.strip().splitlines()[-1])
        assert answers["labels"] == model(texts)
        for signature in ("serving_default", "with_attention"):
            np.testing.assert_allclose(
                answers[signature]["probabilities"],
                model.probabilities(texts),
                atol=1e-5,
            )


def test_a_card_names_labels_and_inputs(version, pair_version):
    card = (version.parent / "README.md").read_text("utf-8")
    assert "in this order: `high`, `low`, `odd`" in card
    card = (pair_version.parent / "README.md").read_text("utf-8")
    assert "| `serving_default` | `text`, `text_pair` | `label`" in card
    assert 'text_pair=tf.constant(["..."])' in card


def test_wrong_arguments_are_refused(live):
    for options in ({"max_length": 1}, {"classes": []}):
        arguments = {"classes": CLASSES, "max_length": 12} | options
        with pytest.raises(ValueError, match="one label or more. Received"):
            labeller.Labeller(live.model, live.graph.tokenizer, **arguments)


def test_a_kind_of_another_name_is_loaded_with_its_labels(live, tmp_path):
    """Its outputs say what it is: no list has to name it."""
    kind = dataclasses.replace(kinds.CLASSIFICATION, name="sentence_selection")
    graph = live.graph
    other = labeller.Labeller(graph.model, graph.tokenizer, CLASSES, 12, kind)
    loaded = loading.load(other.export(tmp_path / "other"))
    assert isinstance(loaded, labeller.Labeller)
    assert loaded.labels == tuple(CLASSES)
    assert loaded(TEXTS) == live(TEXTS)
    card = (tmp_path / "other" / "README.md").read_text()
    assert "The last axis of `attention` is the source's tokens" in card
