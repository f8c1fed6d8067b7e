"""Few texts are translated by compiled functions, in the same words."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

import keras_attention as ka
from keras_attention.server import versions
from keras_attention.serving import quick_search

TEXTS = ["one", "two three", "twenty-one", "", "four"]
NAMES = ["greedy", "serving_default"]


@pytest.fixture(scope="module")
def live(random_translator):
    return random_translator("transformer", max_target_offset=8)


@pytest.fixture(scope="module")
def path(live, export_some, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "quick"
    return export_some(live, folder, ["num_tokens", "with_attention", *NAMES])


@pytest.fixture(scope="module")
def loaded(path):
    return ka.load(path)


def ask(signature, texts):
    found = signature(text=tf.constant(texts, tf.string))["translation"]
    return [text.decode() for text in found.numpy()]


def compiled(signature, texts):
    """The signature once it has compiled what answers so many texts."""
    for _ in range(2):
        ask(signature, texts)
    for future in signature._compiled.values():
        assert future is None or future.result() is not None
    return signature


def without_graph(signature, monkeypatch):
    """A signature that must answer without the graph's search."""

    def fail(text):
        raise AssertionError(f"The graph was asked: {text}")

    monkeypatch.setattr(signature, "_signature", fail)
    return signature


@pytest.mark.fast_for("greedy")
@pytest.mark.parametrize("name", NAMES)
def test_a_compiled_search_finds_the_same(live, loaded, name, monkeypatch):
    signature = compiled(loaded.signatures[name], ["one"])
    expected = ask(live.signatures[name], TEXTS)
    without_graph(signature, monkeypatch)
    assert [ask(signature, [text]) for text in TEXTS] == [
        [text] for text in expected
    ]
    num_beams = 1 if name == "greedy" else None
    assert loaded(["two three"], num_beams=num_beams) == [expected[1]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", ["roformer", "conv_seq2seq", "bytenet", "lstm_encoder_decoder"]
)
def test_other_models(model, random_translator, tmp_path, monkeypatch):
    live = random_translator(model)
    loaded = ka.load(live.export(tmp_path / "model"))
    for name in NAMES:
        expected = ask(live.signatures[name], ["two three"])
        signature = compiled(loaded.signatures[name], ["one"])
        without_graph(signature, monkeypatch)
        assert ask(signature, ["two three"]) == expected


def test_four_texts_of_a_greedy_search(live, loaded, monkeypatch):
    """Two or three have rows of padding beside them."""
    signature = compiled(loaded.signatures["greedy"], TEXTS[:4])
    without_graph(signature, monkeypatch)
    for texts in (TEXTS[:2], TEXTS[1:4], TEXTS[1:]):
        assert ask(signature, texts) == ask(live.signatures["greedy"], texts)


def test_the_graph_answers_more_and_longer_texts(live, loaded):
    for name, count in (("greedy", 5), ("serving_default", 2)):
        for texts in (["one"] * count, [], ["one " * 40]):
            expected = ask(live.signatures[name], texts)
            for _ in range(3):
                assert ask(loaded.signatures[name], texts) == expected


@pytest.mark.slow
def test_what_is_asked_once_is_not_compiled(path):
    signature = ka.load(path).signatures["greedy"]
    ask(signature, ["one"])
    assert [*signature._compiled.values()] == [None]


def test_the_server_has_the_same_functions(path):
    version = versions.load(path, 1)
    for name in NAMES:
        function = version.functions.by_name[name]
        assert isinstance(function, quick_search.QuickSearch)


def test_a_server_begins_with_a_part_of_the_model(path):
    version = versions.load(path, 1, in_parts=True)
    functions = version.functions
    first = {"serving_default", "with_attention", "num_tokens"}
    assert functions.by_name.keys() == first < version.signatures.keys()
    assert version.cold
    texts = {"text": np.array([text.encode() for text in TEXTS], object)}
    early = version.signatures["serving_default"](texts)
    version.warm()
    assert not version.cold
    assert functions.by_name.keys() == version.signatures.keys()
    later = version.signatures["serving_default"](texts)
    assert early["translation"].tolist() == later["translation"].tolist()


@pytest.mark.parametrize(
    "error",
    [
        OSError,
        pytest.param(tf.errors.InvalidArgumentError, marks=pytest.mark.slow),
    ],
)
def test_the_graph_answers_where_none_is_compiled(
    error, path, live, monkeypatch
):
    """Without XLA, or when the files are gone."""

    def fail(self):
        raise error(None, None, "No")

    monkeypatch.setattr(quick_search.QuickSearch, "_search", property(fail))
    signature = ka.load(path).signatures["greedy"]
    expected = ask(live.signatures["greedy"], ["one"])
    for _ in range(2):
        assert ask(signature, ["one"]) == expected
    (future,) = signature._compiled.values()
    assert future.result() is None
    assert ask(signature, ["one"]) == expected


@pytest.mark.parametrize(
    "count, length, shape",
    [
        (1, 1, (1, 16)),
        (1, 16, (1, 16)),
        (1, 17, (1, 32)),
        (2, 3, (4, 16)),
        (4, 32, (4, 32)),
    ],
)
def test_few_shapes(count, length, shape):
    ids = np.arange(1, 1 + count * length, dtype="int32")
    ids = ids.reshape(count, length)
    limits = np.full(count, 7, "int32")
    padded, all_limits = quick_search._padded(ids, limits)
    assert padded.shape == shape and padded.dtype == "int32"
    np.testing.assert_array_equal(padded[:count, :length], ids)
    assert not padded[count:].any() and not padded[:, length:].any()
    assert [*all_limits] == [7] * count + [1] * (shape[0] - count)


def test_a_longer_text_has_no_shape():
    assert quick_search._padded(np.ones((1, 33)), np.ones(1)) is None


def test_no_function_asks_for_xla(path):
    """TensorFlow Serving would refuse it. The searches stand in other files."""
    files = sorted(path.rglob("saved_model.pb"))
    assert {file.parent.name for file in files} == {path.name, *NAMES}
    for file in files:
        found = saved_model_pb2.SavedModel()
        found.ParseFromString(file.read_bytes())
        for function in found.meta_graphs[0].graph_def.library.function:
            assert not function.attr["_XlaMustCompile"].b


@pytest.mark.slow
def test_a_model_that_xla_cannot_compile_has_none(random_translator, tmp_path):
    path = random_translator("rnnsearch").export(tmp_path / "model")
    loaded = tf.saved_model.load(str(path))
    assert quick_search.signatures(loaded, path, 1) is loaded.signatures


@pytest.mark.parametrize(
    "num_beams, searches",
    [(1, ["greedy"]), (4, ["greedy", "serving_default"]), (5, ["greedy"])],
)
def test_a_search_without_beams_is_written_once(
    random_translator, num_beams, searches
):
    live = random_translator("transformer", num_beams=num_beams)
    assert [*live.graph.quick_searches] == searches


@pytest.mark.parametrize("num_beams, is_shared", [(1, True), (5, False)])
def test_both_signatures_share_a_search_without_beams(
    tmp_path, num_beams, is_shared
):
    class Loaded:
        signatures = {"serving_default": len, "greedy": len, "score": len}
        weights = dict

    (tmp_path / quick_search.FOLDER / "greedy").mkdir(parents=True)
    found = quick_search.signatures(Loaded, tmp_path, num_beams)
    assert isinstance(found["greedy"], quick_search.QuickSearch)
    assert (found["serving_default"] is found["greedy"]) == is_shared
    assert found["score"] is len
