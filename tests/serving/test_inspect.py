"""Looking inside a live model: maps, choices and the beam, for all models."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny

from keras_attention import layers, models
from keras_attention.models import catalog
from keras_attention.serving import (
    continuer,
    kinds,
    labeller,
    loading,
    translator,
)
from keras_attention.serving import text_model as text_models
from keras_attention.tokens import END, START, START_TEXT

TEXT, ANSWER = "one two three", "vier fünf"
# Models of four tasks; the slow tests have all.
SOME = ("transformer", "encoder_classifier", "decomposable_attention")
SOME += ("vision_transformer",)


@pytest.fixture(scope="module")
def live(tokenizers, random_translator):
    """A function of a model's name: the live model, before any training."""

    @functools.cache
    def create(name):
        task = catalog.CATALOG[name].task
        if task == "translation":
            return random_translator(name)
        keras.utils.set_random_seed(3)
        model = tiny.create(name, tokenizers[0].vocabulary_size)
        if task == "image_classification":
            model(np.zeros((1, 14, 2, 1), "float32"))
            labels = [f"label {n}" for n in range(5)]
            return labeller.Labeller.of_images(model, labels, (14, 2, 1))
        if hasattr(model, "read_vocabulary"):
            ids = np.arange(tokenizers[0].vocabulary_size)[None]
            pieces = tokenizers[0].pieces(ids)[0].numpy()
            model.read_vocabulary([piece.decode() for piece in pieces])
        model.build()
        for variable in model.trainable_variables:
            variable.assign(3 * variable)
        if task == "language_modelling":
            return continuer.Continuer(model, tokenizers[0], max_new_tokens=5)
        return labeller.Labeller(
            model,
            tokenizers[0],
            [f"label {n}" for n in range(5)],
            kind=getattr(kinds, task.upper()),
        )

    return create


def row_of(name):
    """What a model of this name reads, and whether it writes text."""
    task = catalog.CATALOG[name].task
    if task == "image_classification":
        return np.random.default_rng(0).random((14, 2, 1)), False
    if task in ("entailment", "question_answering"):
        return ("one two three", "four five"), False
    return TEXT, task != "classification"


def logits_of(model, text, ids):
    """What a call gives for the labels: [T, V]."""
    inputs = np.array([[START, *ids[:-1]]], "int32")
    if isinstance(model.model, models.Seq2Seq):
        source = model.graph.source_tokenizer.tokenize([text]).numpy()[0]
        source_ids = np.array([[*source, END]], "int32")
        inputs = {"source_ids": source_ids, "target_ids": inputs}
    return model.model(inputs)[0].numpy()


@pytest.mark.fast_for(*SOME)
@pytest.mark.parametrize("name", catalog.CATALOG)
def test_every_model(name, live):
    model, (row, writes) = live(name), row_of(name)
    seen = model.inspect(row, k=3)
    assert seen.maps.keys() == model.model.maps.keys()
    for key, looks in seen.maps.items():
        rows, columns = model.model.maps[key]
        for word, names in ((rows, looks.rows), (columns, looks.columns)):
            if hasattr(seen, f"{word}_tokens"):
                assert names == getattr(seen, f"{word}_tokens")
            assert len({*names}) == len(names) or "_" not in word
        shape = (len(looks.rows), len(looks.columns))
        assert looks.weights.shape[2:] == shape and 0 not in shape
    if not writes:
        shown = model.with_attention([row])[0]
        assert (seen.answer,) == seen.target_tokens
        assert seen.answer == seen.best[0][0][0] == model([row])[0]
        np.testing.assert_allclose(
            [p for _, p in seen.best[0]],
            sorted(shown["probabilities"])[: -3 - 1 : -1],
            rtol=1e-4,
        )
        keys = [k for k in ("attention", "attention_pair") if k in shown]
        for key, looks in zip(keys, seen.maps.values(), strict=True):
            theirs = np.reshape(shown[key], looks.weights.shape)
            # Rows of padding show nothing, and have weights.
            np.testing.assert_allclose(looks.weights, theirs, atol=1e-5)
        with pytest.raises(ValueError, match="writes no text"):
            model.inspect(row, "an answer")
        return
    assert seen.answer == model([row])[0]
    compare_choices(model, row, seen, 3)
    given = model.inspect(row, ANSWER)
    compare_choices(model, row, given, 5)
    if catalog.CATALOG[name].task == "translation":
        assert given.answer == ANSWER and given.num_given == 0
        ((expected, _),) = model.score([row], [ANSWER])
        # Of what is read before, each step has one more token.
        assert given.input_tokens == (START_TEXT, *given.target_tokens[:-1])
        compare_beam(model, row, seen)
        assert given.tree == seen.tree
    else:
        ((expected, _),) = model.score([row + ANSWER])
        assert given.num_given == len(TEXT.split())
        assert seen.target_tokens[:3] == given.target_tokens[:3]
        assert seen.tree == ()
    # One that is 0 in float32 has lost its logarithm.
    if given.probabilities.all():
        total = np.log(given.probabilities).sum()
        assert total == pytest.approx(expected, rel=1e-3)


def compare_choices(model, text, seen, k):
    """The k best of the logits of a call."""
    graph = model.graph
    tokenizer = getattr(graph, "target_tokenizer", None) or graph.tokenizer
    size = tokenizer.vocabulary_size
    table = tokenizer.pieces(np.arange(size)[None])[0].numpy()
    table = [piece.decode() for piece in table]
    table[END], table[0] = "[END]", "[PAD]"
    ids = [table.index(token) for token in seen.target_tokens]
    logits = logits_of(model, text, ids)
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    for step, token in enumerate(ids):
        assert seen.probabilities[step] == pytest.approx(
            p[step, token], rel=2e-3, abs=1e-6
        )
        best = [value for _, value in seen.best[step]]
        expected = np.sort(p[step])[: -k - 1 : -1]
        np.testing.assert_allclose(best, expected, rtol=2e-3, atol=1e-6)
        for piece, value in seen.best[step]:
            assert p[step, table.index(piece)] == pytest.approx(
                value, rel=2e-3, abs=1e-6
            )


def compare_beam(model, text, seen):
    """Its finished hypotheses are those of the search."""
    found = [
        (place, node)
        for place, node in enumerate(seen.tree)
        if node.is_finished
    ]
    scores = sorted((node.score for _, node in found), reverse=True)
    (hypotheses,) = model.n_best([text])
    np.testing.assert_allclose(
        scores, [score for _, score in hypotheses], rtol=1e-4
    )
    best = max(found, key=lambda pair: pair[1].score)
    path = seen.path(best[0])
    assert tuple(node.token for node in path) == seen.target_tokens
    assert best[1].log_probability == pytest.approx(
        np.log(seen.probabilities).sum(), rel=1e-3, abs=1e-4
    )
    totals = [node.log_probability for node in path]
    assert totals == sorted(totals, reverse=True)
    assert path[0].parent is None


@pytest.mark.fast_for("transformer")
@pytest.mark.parametrize("name", ["transformer", "luong", "rnn_transducer"])
def test_a_given_answer_is_looked_at_as_by_align(name, live):
    """Whose weights are those of the cached steps."""
    model = live(name)
    seen = model.inspect(TEXT, ANSWER)
    (aligned,) = model.align([TEXT], [ANSWER])
    assert list(seen.target_tokens) == aligned["target_tokens"]
    assert list(seen.source_tokens) == aligned["source_tokens"]
    last = seen.maps["cross"].weights[-1].mean(axis=0)
    np.testing.assert_allclose(last, aligned["attention"], atol=1e-4)


@pytest.mark.slow
def test_which_experts_each_token_uses(tokenizers, rng, tmp_path):
    """Live and loaded: a share for each token and expert."""
    experts = layers.MixtureOfExperts(5, 3, num_chosen=2)
    source, target = (one.vocabulary_size for one in tokenizers)
    network = tiny.create("transformer", target, source, feed_forward=experts)
    network.build()
    for variable in network.trainable_variables:
        variable.assign(rng.normal(scale=0.3, size=variable.shape))
    model = translator.Translator(network, *tokenizers)
    loaded = loading.load(model.export(tmp_path / "experts"))
    seen, theirs = model.inspect(TEXT, ANSWER), loaded.inspect(TEXT, ANSWER)
    for name, tokens in (
        ("encoder_experts", seen.source_tokens),
        ("decoder_experts", seen.target_tokens),
    ):
        looks = seen.maps[name]
        assert looks.rows == tokens
        assert looks.columns == tuple(f"expert {n}" for n in range(5))
        assert looks.weights.shape == (2, 1, len(tokens), 5)
        np.testing.assert_array_equal((looks.weights > 0).sum(axis=-1), 2)
        np.testing.assert_allclose(looks.weights.sum(axis=-1), 1, atol=1e-5)
        assert theirs.maps[name].columns == looks.columns
        np.testing.assert_allclose(
            theirs.maps[name].weights, looks.weights, atol=1e-4
        )


def test_rows_of_a_batch_do_not_change_each_other(live):
    """Each tensor has a row for each text, padded by "" and 0."""
    model = live("transformer")
    texts = ["one", TEXT, ""]
    answers = ["", ANSWER, ""]
    outputs = model.signatures["inspect"](
        text=tf.constant(texts), answer=tf.constant(answers)
    )
    padded = model.kind.signatures["inspect"].padded
    for row, (text, answer) in enumerate(zip(texts, answers, strict=True)):
        own = {k: v[row : row + 1].numpy() for k, v in outputs.items()}
        cut = kinds.cut(own, padded)
        alone = model.signatures["inspect"](
            text=tf.constant([text]), answer=tf.constant([answer])
        )
        alone = kinds.cut({k: v.numpy() for k, v in alone.items()}, padded)
        for name, values in cut.items():
            if values.dtype == "float32":
                np.testing.assert_allclose(values, alone[name], atol=1e-3)
                hidden = own[name].size - values.size
                assert np.count_nonzero(own[name] == 0) >= hidden
            else:
                np.testing.assert_array_equal(values, alone[name])
    blank = model.inspect("")
    assert (blank.answer, blank.target_tokens, blank.tree) == ("", (), ())
    assert blank.maps["cross"].weights.shape[2:] == (0, 1)
    # The answer is the model's to give, and may be asked of a blank text.
    assert model.inspect("", ANSWER).answer == ANSWER


def test_what_cannot_be_inspected(live, tokenizers):
    model = live("transformer")
    for k in (0, 11):
        with pytest.raises(ValueError, match=f"from 1 to 10.*k={k}"):
            model.inspect(TEXT, k=k)
    with pytest.raises(ValueError, match="answer is longer than any"):
        model.inspect(TEXT, "vier " * 400)
    with pytest.raises(ValueError, match="The text in line 1 has"):
        model.inspect("one " * 400)
    kind = kinds.TRANSLATION
    older = text_models.TextModel(kind, dict.fromkeys(kind.signatures))
    older.path = "old/1"
    with pytest.raises(ValueError, match="not by 'inspect'"):
        older.inspect(TEXT)


@pytest.mark.fast_for("decomposable_attention")
@pytest.mark.parametrize(
    "name", ["transformer_language_model", "decomposable_attention"]
)
def test_after_a_load(name, live, tmp_path):
    model, (row, _) = live(name), row_of(name)
    loaded = loading.load(model.export(tmp_path / name))
    # Few ask for it: it is loaded when somebody does.
    assert loaded.signatures.keys() == model.signatures.keys()
    at_once = {*loaded.signatures} - {"inspect"}
    assert {*loaded._loaded.signatures} == at_once
    ours, theirs = model.inspect(row), loaded.inspect(row)
    assert ours.answer == theirs.answer
    assert ours.target_tokens == theirs.target_tokens
    assert ours.pair_tokens == theirs.pair_tokens
    for key, looks in ours.maps.items():
        assert looks.rows == theirs.maps[key].rows
        np.testing.assert_allclose(
            looks.weights, theirs.maps[key].weights, atol=1e-4
        )
