"""A new kind of model is one declaration and one function of tensors."""

import functools
import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_attention as ka
from keras_attention.server import execution, model_configs, versions
from keras_attention.serving import graph, kinds, loading

ROWS = [("one two three", "two"), ("", "one"), ("two", "two")]
# A new kind is this declaration and the function below.
MARKS = kinds.Kind(
    "marks",
    {
        "serving_default": kinds.Signature(
            ("text", "word"), {"marked": ()}, ("marked",)
        ),
        "with_attention": kinds.Signature(
            ("text", "word"),
            {
                "marked": (),
                "words": ("words",),
                "hits": ("words",),
                "size": ("scales",),
            },
        ),
        "num_tokens": kinds.Signature(
            ("text", "word"), {"num_tokens": (), "limit": ()}
        ),
    },
    limit=9,
)


def mark(model, names, text, word):
    """Puts each word that is `word` into capitals."""
    words = tf.strings.split(text).to_tensor("")
    hits = (words == word[:, None]) & (words != "")
    marked = tf.where(hits, tf.strings.upper(words), words)
    length = tf.cast(tf.strings.length(text), tf.float32)
    outputs = {
        "marked": tf.strings.strip(
            tf.strings.reduce_join(marked, 1, separator=" ")
        ),
        "words": words,
        "hits": tf.cast(hits, tf.float32),
        "size": model(length[:, None]),
    }
    return {name: outputs[name] for name in names}


@pytest.fixture(scope="module")
def toy(tokenizers):
    model = keras.Sequential([keras.layers.Dense(2, use_bias=False)])
    model.build((None, 1))
    model.set_weights([np.array([[1.0, 10.0]])])
    toy = graph.Graph(model, tokenizers[:1])
    toy.define(
        MARKS,
        {
            name: functools.partial(mark, model, MARKS.signatures[name].outputs)
            for name in ("serving_default", "with_attention")
        },
    )
    return toy


@pytest.fixture(scope="module")
def version(toy, tmp_path_factory):
    return toy.export(tmp_path_factory.mktemp("toy") / "marks")


def test_a_new_kind_is_loaded(version):
    loaded = ka.load(version)
    assert repr(loaded) == f"<TextModel: marks, {version}, at most 9 tokens>"
    assert loaded(ROWS) == ["one TWO three", "", "TWO"]
    first, blank, last = loaded.with_attention(ROWS)
    assert first["words"] == ["one", "two", "three"]
    assert first["hits"].tolist() == [0, 1, 0]
    assert first["size"].tolist() == [13, 130]
    # Without the padding that the first row brings.
    assert blank["words"] == [] and blank["hits"].shape == (0,)
    assert last["words"] == ["two"] and last["hits"].tolist() == [1]
    assert loaded.num_tokens([("one two", "one")]) == [3]
    with pytest.raises(ValueError, match="line 1 has 10 tokens.* at most 9"):
        loaded([("one " * 9, "one")])


def test_a_new_kind_is_served(version, run_server):
    config = model_configs.ModelConfig("marks", version.parent)
    with run_server([config]) as client:
        status, _, answer = client.predict(
            "marks", instances=[{"text": "one two", "word": "two"}]
        )
        assert (status, answer) == (200, {"predictions": ["one TWO"]})
        _, _, answer = client.predict(
            "marks",
            signature_name="with_attention",
            inputs={"text": ["a", "a b"], "word": ["b", "b"]},
        )
        assert answer["outputs"]["words"] == [["a", ""], ["a", "b"]]
        status, _, answer = client.predict(
            "marks", instances=[{"text": "one " * 9, "word": "two"}]
        )
        assert status == 400 and "takes at most 9" in answer["error"]
        _, _, answer = client.request("/v1/models/marks/metadata")
    found = kinds.from_json(json.dumps(answer["metadata"]["kind"]))
    assert found == MARKS


def test_an_answer_of_a_new_kind_is_that_of_its_request_alone(version):
    loaded = versions.load(version, 1)
    signature = loaded.signatures["with_attention"]
    assert signature.is_batched
    requests = [
        {
            "text": np.array([text.encode()], object),
            "word": np.array([b"two"], object),
        }
        for text in ("one two three", "one")
    ]
    long, short = execution.split_on_failure(loaded, signature, requests)
    assert long["hits"].shape == (1, 3) and short["hits"].shape == (1, 1)
    assert short["words"].tolist() == [[b"one"]]


def test_what_is_declared_stands_in_the_manifest(version, tmp_path):
    path = version / kinds.ASSET
    assert kinds.from_json(path.read_bytes()) == MARKS
    copy = shutil.copytree(version.parent, tmp_path / "marks")
    (copy / "1" / kinds.ASSET).write_text("{}")
    with pytest.raises(ValueError, match="keras_attention.json was changed"):
        loading.load(copy)
