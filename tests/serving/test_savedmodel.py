"""Exports answer everywhere as the live model does, and break loudly."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

import keras_attention as ka
from keras_attention import files
from keras_attention.serving import cards, loading, manifest, savedmodel

LOADERS = pathlib.Path(__file__).with_name("loaders")
# Names that would be control tokens, broken UTF-8, and what else hurts.
NASTY = [
    b"",
    b" ",
    b"\x00",
    b"one\x00two",
    b"\xff\xfe",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x82",
    b"<s></s><pad><unk>",
    b"[START] [END] [PAD] [UNK]",
    b"<0x41>",
    "▁▁".encode(),
    "\ufeffone".encode(),
    "\u202eowt".encode(),
    "👩‍👩‍👧‍👦🏳️‍🌈".encode(),
    ("e" + "\u0301" * 200).encode(),
    "ﷺ".encode() * 20,
    "\U0010ffff\u2028\x85".encode(),
    b"one " * 2500,
    b"\r\n\t\v\f",
]


@pytest.fixture(scope="module")
def live(random_translator):
    return random_translator("transformer", max_source_length=64)


class Small(tf.Module):
    """A model that is written in no time."""

    @property
    def signatures(self):
        spec = tf.TensorSpec([None], tf.string, name="text")
        return {"serving_default": tf.function(_upper, [spec])}


def _upper(text):
    return {"translation": tf.strings.upper(text)}


@pytest.fixture(scope="module")
def version(live, tmp_path_factory):
    """An export, moved to a folder with a blank and a letter that bends."""
    folder = tmp_path_factory.mktemp("exported") / "numbers"
    live.export(folder, card="# Numbers\n")
    moved = tmp_path_factory.mktemp("moved") / "größere Zahlen"
    shutil.move(folder, moved)
    return moved / "1"


@pytest.fixture(scope="module")
def loaded(version):
    return ka.load(version)


@pytest.fixture(scope="module")
def meta_graph(version):
    saved_model = saved_model_pb2.SavedModel()
    saved_model.ParseFromString((version / "saved_model.pb").read_bytes())
    return saved_model.meta_graphs[0]


def run_loader(program, arguments, texts):
    result = subprocess.run(
        [sys.executable, LOADERS / program, *arguments],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    "loader, search, texts",
    [
        ("fresh_python", "serving_default", "sentences"),
        ("c_api", "serving_default", "sentences"),
        *(
            (loader, search, "thousand_sentences")
            for loader in ("fresh_python", "session", "c_api")
            for search in ("serving_default", "greedy")
        ),
    ],
)
def test_three_loaders_answer_like_the_live_model(
    loader, search, texts, live, version, meta_graph, request
):
    sentences = request.getfixturevalue(texts)
    # The loaders send 50 texts at a time: last comes one that has no half.
    sentences = [*sentences, sentences[0]]
    assert len(sentences) % 50 == 1
    expected = live(sentences, num_beams=1 if search == "greedy" else None)
    assert len(set(expected)) > 100
    arguments = [str(version), search]
    if loader == "c_api":
        signature = meta_graph.signature_def[search]
        arguments[1:] = [
            signature.inputs["text"].name,
            signature.outputs["translation"].name,
        ]
    assert run_loader(f"{loader}.py", arguments, sentences) == expected


@pytest.mark.slow
def test_every_signature_answers_alike(live, loaded, sentences):
    some = sentences[:20]
    assert loaded(some) == live(some)
    for ours, theirs in zip(
        live.with_attention(some), loaded.with_attention(some), strict=True
    ):
        np.testing.assert_allclose(
            ours.pop("attention"), theirs.pop("attention"), atol=1e-5
        )
        assert ours.pop("score") == pytest.approx(theirs.pop("score"), 1e-4)
        assert ours == theirs
    for ours, theirs in zip(
        live.n_best(some), loaded.n_best(some), strict=True
    ):
        assert [text for text, _ in ours] == [text for text, _ in theirs]
        np.testing.assert_allclose(
            [score for _, score in ours],
            [score for _, score in theirs],
            rtol=1e-4,
        )
    np.testing.assert_allclose(
        live.score(some, some[::-1]), loaded.score(some, some[::-1]), rtol=1e-4
    )
    for ours, theirs in zip(
        live.align(some, some[::-1]),
        loaded.align(some, some[::-1]),
        strict=True,
    ):
        np.testing.assert_allclose(
            ours.pop("attention"), theirs.pop("attention"), atol=1e-5
        )
        assert ours == theirs


def in_half_precision(whole):
    tokenizers = whole.graph.source_tokenizer, whole.graph.target_tokenizer
    return ka.Translator(whole.model, *tokenizers, stored_precision="float16")


def round_weights(model):
    for variable in model.trainable_variables:
        variable.assign(np.float16(variable))


def scores(translate, texts):
    return [score for score, _ in translate.score(texts, texts[::-1])]


@pytest.mark.slow
def test_half_precision_is_that_of_rounded_weights(
    random_translator, sentences
):
    # Of its own, as its weights will be others.
    whole, some = random_translator.__wrapped__("transformer"), sentences[:20]
    half = in_half_precision(whole)
    unrounded, rounded = scores(whole, some), scores(half, some)
    assert np.abs(np.subtract(unrounded, rounded)).max() > 1e-3
    # What an export stores.
    assert tf.float32 not in {
        variable.dtype for variable in half.graph.weights.variables
    }
    round_weights(whole.model)
    np.testing.assert_allclose(rounded, scores(whole, some), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["transformer", "rnnsearch", "luong", "lstm_encoder_decoder"]
)
def test_an_export_in_half_precision(
    name, random_translator, sentences, tmp_path
):
    whole, some = random_translator.__wrapped__(name), sentences[:20]
    half = in_half_precision(whole)
    version = half.export(tmp_path / "half")
    answers, rounded = half(some), scores(half, some)
    assert np.abs(np.subtract(scores(whole, some), rounded)).max() > 1e-3
    round_weights(whole.model)
    loaded = ka.load(version)
    np.testing.assert_allclose(scores(loaded, some), rounded, rtol=1e-6)
    expected = whole(some)
    assert loaded(some) == answers == expected
    arguments = [str(version), "serving_default"]
    assert run_loader("session.py", arguments, some) == expected
    for ours, theirs in zip(
        loaded.align(some, some), whole.align(some, some), strict=True
    ):
        np.testing.assert_allclose(
            ours["attention"], theirs["attention"], atol=1e-5
        )
    weights = tf.train.load_checkpoint(
        str(tmp_path / "half/1/variables/variables")
    )
    types = weights.get_variable_to_dtype_map()
    stored = [
        np.prod(shape)
        for path, shape in weights.get_variable_to_shape_map().items()
        if types[path] == tf.float16
    ]
    assert sum(stored) == whole.model.count_params()
    assert tf.float32 not in types.values()


def test_the_signatures_are_dense_with_the_batch_first(meta_graph):
    described = {}
    for name, signature in meta_graph.signature_def.items():
        if name.startswith("__"):
            continue
        described[name] = {}
        for tensors in (signature.inputs, signature.outputs):
            for key, tensor in tensors.items():
                assert tensor.name and tensor.tensor_shape.dim[0].size == -1
                described[name][key] = (
                    tf.dtypes.as_dtype(tensor.dtype).name,
                    len(tensor.tensor_shape.dim),
                )
    string = ("string", 1)
    assert described == {
        "serving_default": {"text": string, "translation": string},
        "greedy": {"text": string, "translation": string},
        "with_attention": {
            "text": string,
            "translation": string,
            "score": ("float32", 1),
            "truncated": ("bool", 1),
            "source_tokens": ("string", 2),
            "target_tokens": ("string", 2),
            "attention": ("float32", 3),
        },
        "n_best": {
            "text": string,
            "translations": ("string", 2),
            "scores": ("float32", 2),
        },
        "score": {
            "text": string,
            "reference": string,
            "log_probability": ("float32", 1),
            "num_tokens": ("int32", 1),
            "truncated": ("bool", 1),
        },
        "align": {
            "text": string,
            "reference": string,
            "source_tokens": ("string", 2),
            "target_tokens": ("string", 2),
            "attention": ("float32", 3),
            "num_tokens": ("int32", 1),
            "truncated": ("bool", 1),
        },
        "num_tokens": {
            "text": string,
            "num_tokens": ("int32", 1),
            "limit": ("int32", 1),
        },
        "inspect": {
            "text": string,
            "answer": string,
            "translation": string,
            "truncated": ("bool", 1),
            "source_tokens": ("string", 2),
            "input_tokens": ("string", 2),
            "target_tokens": ("string", 2),
            "token_log_probabilities": ("float32", 2),
            "best_tokens": ("string", 3),
            "best_log_probabilities": ("float32", 3),
            "nodes": ("string", 2),
            "node_parents": ("int32", 2),
            "node_log_probabilities": ("float32", 2),
            "node_scores": ("float32", 2),
            "node_is_finished": ("bool", 2),
            "encoder": ("float32", 5),
            "decoder": ("float32", 5),
            "cross": ("float32", 5),
        },
    }


def test_inspect_after_a_load(live, loaded):
    for arguments in (["one two"], ["three", "vier fünf"]):
        ours, theirs = (one.inspect(*arguments, k=3) for one in (live, loaded))
        assert ours.answer == theirs.answer
        assert ours.target_tokens == theirs.target_tokens
        assert len(ours.tree) == len(theirs.tree) > 10
        for our_steps, their_steps in zip(ours.best, theirs.best, strict=True):
            assert [token for token, _ in our_steps] == [
                token for token, _ in their_steps
            ]
        for name, looks in ours.maps.items():
            other = theirs.maps[name]
            assert (looks.rows, looks.columns) == (other.rows, other.columns)
            np.testing.assert_allclose(looks.weights, other.weights, atol=1e-4)


@pytest.mark.slow
def test_only_core_and_sentencepiece_ops(meta_graph):
    functions = meta_graph.graph_def.library.function
    ops = [node.op for node in meta_graph.graph_def.node]
    ops += [node.op for function in functions for node in function.node_def]
    # A vocabulary in each: to read sources and references, and to write.
    assert ops.count("SentencepieceOp") == 3
    used = {*ops} - {function.signature.name for function in functions}
    code = (
        "import sys, tensorflow as tf\n"
        "from tensorflow.python.framework import op_def_registry\n"
        "for name in sys.argv[1:]:\n"
        "    if op_def_registry.get(name) is None: print(name)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *used],
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(used) > 20
    assert set(result.stdout.split()) == {
        "SentencepieceOp",
        "SentencepieceTokenizeOp",
        "SentencepieceDetokenizeOp",
    }


@pytest.mark.parametrize(
    "count", [100, pytest.param(10_000, marks=pytest.mark.slow)]
)
def test_random_bytes_are_read_in_order(count, loaded):
    generator = np.random.default_rng(count)
    texts = NASTY + [
        generator.bytes(size) for size in generator.integers(0, 40, count)
    ]
    translate = loaded.signatures["greedy"]

    def answers(order):
        found = [None] * len(texts)
        for start in range(0, len(order), 100):
            rows = order[start : start + 100]
            batch = tf.constant([texts[row] for row in rows])
            received = translate(text=batch)["translation"].numpy()
            assert len(received) == len(rows)
            for row, text in zip(rows, received, strict=True):
                found[row] = text.decode("utf-8")  # valid, or an error
        return found

    first = answers(np.arange(len(texts)))
    again = answers(generator.permutation(len(texts)))
    # Of random weights, an answer in thousands is a near tie, which another
    # shape of the batch may round the other way.
    different = sum(a != b for a, b in zip(first, again, strict=True))
    assert different <= count // 1000
    assert len(set(first)) > count // 2


@pytest.mark.slow
def test_warmup_requests_run(version, loaded):
    from tensorflow_serving.apis import prediction_log_pb2

    path = version / "assets.extra" / "tf_serving_warmup_requests"
    signatures = loaded.signatures
    asked = []
    for record in tf.data.TFRecordDataset(str(path)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        request = log.predict_log.request
        inputs = {
            name: tf.constant(tf.make_ndarray(tensor))
            for name, tensor in request.inputs.items()
        }
        assert signatures[request.model_spec.signature_name](**inputs)
        assert request.model_spec.name == "numbers"
        asked.append(request.model_spec.signature_name)
    # All but the count of tokens, which is quick.
    assert {*asked, "num_tokens"} == set(signatures)


@pytest.mark.slow
def test_a_version_elsewhere_answers_alike(version, loaded, tmp_path):
    """Loaded through links and under another number; more is in
    test_manifest.py."""
    shutil.copytree(version, tmp_path / "store" / "abc")
    model = tmp_path / "model"
    model.mkdir()
    shutil.copy(version.parent / savedmodel.MANIFEST, model)
    (model / "20250101").symlink_to("../store/abc")
    (model / "20250101" / ".DS_Store").touch()
    for path in (model, model / "20250101"):
        elsewhere = ka.load(path)
        assert elsewhere.path == model / "20250101"
    assert elsewhere(["one two"]) == loaded(["one two"])


def test_an_export_finds_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "model" / "1"
    assert savedmodel.export(Small(), "~/model", "# Small\n") == path
    assert (tmp_path / "model/README.md").read_text() == "# Small\n"
    assert savedmodel.newest("~/model") == path


@pytest.mark.slow
def test_loading_registers_the_operations_by_itself(version):
    """No other part of the package has imported tensorflow-text."""
    code = (
        "import sys\n"
        "from keras_attention.serving import loading\n"
        "print(loading.load(sys.argv[1]).num_beams)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, version],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "4\n"


@pytest.mark.slow
def test_loading_prints_what_it_is_and_nothing_else(version):
    code = "import sys, keras_attention as ka; print(ka.load(sys.argv[1]))"
    environment = {**os.environ}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    result = subprocess.run(
        [sys.executable, "-c", code, version],
        capture_output=True,
        text=True,
        env=environment,
    )
    facts = f"translation, {version}, 4 beams, at most 64 tokens"
    assert result.stdout == f"<Translator: {facts}>\n"
    assert result.stderr == ""


@pytest.fixture
def copy(version, tmp_path):
    shutil.copytree(version.parent, tmp_path / "copy")
    return tmp_path / "copy"


def test_sha256sum_reads_the_manifest(copy):
    program = shutil.which("sha256sum")
    if program is None:
        pytest.skip("sha256sum is not installed")
    subprocess.run([program, "-c", savedmodel.MANIFEST], cwd=copy, check=True)


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda file, copy: file.unlink(), "is missing"),
        (
            lambda file, copy: file.write_bytes(file.read_bytes()[:-1] + b"?"),
            "was changed",
        ),
        (
            lambda file, copy: (copy / savedmodel.MANIFEST).unlink(),
            "copy it along with the versions",
        ),
        (
            lambda file, copy: (copy / "1" / "saved_model.pb").unlink(),
            "saved_model.pb is missing",
        ),
        (lambda file, copy: (copy / "2").mkdir(), "2/.* is missing"),
    ],
)
def test_a_damaged_version_is_refused(damage, message, copy):
    damage(next((copy / "1" / "variables").iterdir()), copy)
    with pytest.raises(ValueError, match=message):
        ka.load(copy)


@pytest.mark.slow
def test_the_next_version_keeps_the_old_one(live, copy):
    expected = live(["one two"])
    assert live.export(copy) == copy / "2"
    assert (copy / "README.md").read_text() == "# Numbers\n"
    assert savedmodel.versions(copy) == [copy / "1", copy / "2"]
    newest = ka.load(copy)
    assert newest.path == copy / "2"
    assert newest(["one two"]) == expected
    assert ka.load(copy / "1")(["one two"]) == expected


def test_a_failed_export_leaves_the_folder_as_it_was(copy, monkeypatch):
    before = {
        path: path.read_bytes() for path in copy.rglob("*") if path.is_file()
    }

    def fail(*args, **kwargs):
        raise OSError("no space left on device")

    for module, name in (
        (savedmodel, "_write_warmup"),
        (manifest, "lines"),
        (savedmodel.os, "rename"),  # With the manifest written.
    ):
        with monkeypatch.context() as context:
            context.setattr(module, name, fail)
            with pytest.raises(OSError, match="no space"):
                savedmodel.export(Small(), copy)
        after = {
            path: path.read_bytes()
            for path in copy.rglob("*")
            if path.is_file()
        }
        assert after == before
        assert len(list(copy.iterdir())) == 3


def test_a_failed_first_export_leaves_no_manifest(tmp_path, monkeypatch):
    def fail(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr(savedmodel.os, "rename", fail)
    with pytest.raises(OSError, match="no space"):
        savedmodel.export(Small(), tmp_path / "new")
    assert not list((tmp_path / "new").iterdir())


def test_two_exports_at_a_time(copy):
    with files.lock(copy):
        with pytest.raises(ValueError, match="Another process writes"):
            savedmodel.export(Small(), copy)
    assert savedmodel.newest(copy) == copy / "1"


def test_without_a_card_a_plain_one_is_written(
    random_translator, tmp_path, monkeypatch
):
    def write(_, folder, card, kind, searches):
        if card:
            (pathlib.Path(folder).expanduser() / "README.md").write_text(card)

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(savedmodel, "export", write)

    def card(num_beams, text=""):
        translate = random_translator(
            "transformer",
            num_beams=num_beams,
            length_penalty=0.5,
            max_source_length=61,
        )
        translate.export("~", text)
        return translate, (tmp_path / "README.md").read_text()

    translate, first = card(3)
    assert f"Parameters: {translate.model.count_params():,}, " in first
    assert "\n- Search: beam 3, length penalty 0.5\n" in first
    assert "\n- Longest input: 61 tokens" in first
    for name in translate.signatures:
        assert f"\n| `{name}` |" in first
    _, second = card(2)  # Not the first one's beams.
    assert "\n- Search: beam 2," in second
    assert card(2, "# Mine\n")[1] == "# Mine\n"
    assert card(3)[1] == "# Mine\n"


@pytest.mark.slow
def test_an_export_writes_no_ngram_again(
    random_translator, sentences, tmp_path
):
    plain = random_translator("transformer")
    live = ka.Translator(
        plain.model,
        plain.graph.source_tokenizer,
        plain.graph.target_tokenizer,
        no_repeat_ngram_size=2,
    )
    live.export(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert "length penalty 1.0, no 2 tokens in a row twice\n" in card
    loaded = loading.load(tmp_path / "model")
    some = sentences[:40]
    for num_beams in (1, 4):
        answers = loaded(some, num_beams=num_beams)
        assert answers == live(some, num_beams=num_beams)
        assert answers != plain(some, num_beams=num_beams)


def test_somebodys_readme_is_kept(tmp_path):
    (tmp_path / "README.md").write_text("My repository.")
    with pytest.raises(ValueError, match="its own, which would be lost"):
        savedmodel.export(Small(), tmp_path, "# Small\n")
    # A file with a number for a name is no version, but in the way of one.
    (tmp_path / "1").write_text("")
    assert savedmodel.export(Small(), tmp_path) == tmp_path / "2"
    assert (tmp_path / "README.md").read_text() == "My repository."


@pytest.mark.parametrize("wrong", ["one", [["one"]], [1]])
def test_another_rank_or_type_is_refused_after_a_load(loaded, wrong):
    """A live function checks its input by itself, a loaded one does not."""
    right = tf.constant(["one"])
    for name, function in loaded.signatures.items():
        cases = [{"text": tf.constant(wrong)}]
        if name in ("score", "align", "inspect"):
            other = "answer" if name == "inspect" else "reference"
            cases = [
                {"text": tf.constant(wrong), other: right},
                {"text": right, other: tf.constant(wrong)},
            ]
        for inputs in cases:
            with pytest.raises((TypeError, ValueError, tf.errors.OpError)):
                function(**inputs)


def test_a_folder_without_a_model(tmp_path):
    with pytest.raises(ValueError, match="numeric versions"):
        loading.load(tmp_path)


@pytest.mark.slow
def test_a_loaded_savedmodel_is_exported_again(version, loaded, tmp_path):
    """With no class of ours: TensorFlow's own loader has read it."""
    again = tf.saved_model.load(str(version))
    copied = ka.load(savedmodel.export(again, tmp_path / "copied"))
    assert copied(["one two"]) == loaded(["one two"])


def test_what_a_card_says_to_whoever_tries_its_model(tmp_path):
    assert cards.read(tmp_path) == {}
    rows = ["one", ("a", "b"), "long " * 30, "`", "one", 'so "ä"', "last"]
    line = cards.examples(rows)
    (tmp_path / "README.md").write_text(
        f"# A model\n\n- Data: `words`. Small.\n{line}- Seed: 1\n"
    )
    assert cards.read(tmp_path) == {
        "data": "words. Small.",
        "examples": ["one", ["a", "b"], 'so "ä"'],
    }
    assert cards.examples([]) == ""
    (tmp_path / "README.md").write_text("- Examples: one, two\n")
    assert cards.read(tmp_path) == {}
