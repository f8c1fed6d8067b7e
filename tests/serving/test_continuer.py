"""Text in, what comes next out: a language model, live and loaded."""

import json
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_attention import models
from keras_attention.serving import continuer, loading
from keras_attention.tokens import END, PAD, START, UNK

LOADERS = pathlib.Path(__file__).with_name("loaders")
TEXTS = ["one two", "three", "", "nine eight seven", "  ", "zwölf", "日本語"]


class Tiny(keras.Model):
    """A GRU on the contract of language models."""

    def __init__(self, vocabulary_size, units=23):
        super().__init__()
        self.units = units
        self.embedding = keras.layers.Embedding(vocabulary_size, units)
        self.gru = keras.layers.GRU(
            units, return_sequences=True, return_state=True
        )
        self.projection = keras.layers.Dense(vocabulary_size)

    def initial_state(self, batch_size, max_length):
        return ops.zeros((batch_size, self.units))

    def step(self, token_ids, state):
        x = self.embedding(token_ids[:, None])
        x, state = self.gru(x, initial_state=state)
        return self.projection(x)[:, 0], state

    def call(self, token_ids, training=None):
        return self.projection(self.gru(self.embedding(token_ids))[0])


def make(tokenizer, **options):
    keras.utils.set_random_seed(2)
    model = Tiny(tokenizer.vocabulary_size)
    model(np.array([[START, 5]]))
    for variable in model.trainable_variables:
        # Larger logits: one token is clearly the best.
        variable.assign(4 * variable)
    return continuer.Continuer(
        model, tokenizer, **{"max_length": 13, "max_new_tokens": 7} | options
    )


@pytest.fixture(scope="module")
def live(tokenizers):
    return make(tokenizers[0])


@pytest.fixture(scope="module")
def version(live, tmp_path_factory):
    return live.export(tmp_path_factory.mktemp("exported") / "language_model")


@pytest.fixture(scope="module")
def loaded(version):
    return loading.load(version.parent)


def continued(live, text, limit, size=0):
    """The greedy way, a token at a time, through `call`.

    With a `size`, no n-gram of this size comes again.
    """
    ids = live.graph.tokenizer.tokenize([text]).numpy()[0].tolist()[1 - limit :]
    given = len(ids)
    for count in range(live.graph.max_new_tokens):
        logits = live.model(np.array([[START, *ids]])).numpy()[0, -1]
        logits[[0, 1, 2]] = -np.inf
        grams = [ids[i - size : i] for i in range(size, len(ids) + 1)]
        for token in range(len(logits)):
            gram = [*ids, token][-size:]
            if size and gram in grams and token != END:
                logits[token] = -np.inf
        best = int(np.argmax(logits))
        if best == END or count == live.graph.max_new_tokens - 1:
            break
        ids.append(best)
    rows = tf.ragged.constant([ids, ids[:given]], dtype=tf.int32)
    whole, start = live.graph.tokenizer.detokenize(rows).numpy()
    return whole.removeprefix(start).decode("utf-8", "replace")


def test_the_most_probable_token_comes_next(live):
    texts = [*TEXTS, "three " * 30 + "one two"]
    received = live(texts, truncate=True)
    assert received == [continued(live, text, 13) for text in texts]
    assert len(set(received)) > 4
    # Of a long text, the end is continued.
    ids = live.graph.tokenizer.tokenize(texts[-1:]).numpy()[0]
    end = live.graph.tokenizer.detokenize([ids[-12:]]).numpy()[0].decode()
    assert live.num_tokens([end]) == [13]
    assert live([end]) == received[-1:]


@pytest.mark.parametrize("size", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_ngram_of_the_text_or_its_continuation_comes_again(
    tokenizers, size, live
):
    other = make(tokenizers[0], no_repeat_ngram_size=size)
    texts = [*TEXTS, "three " * 30 + "one two"]
    received = other(texts, truncate=True)
    assert received == [continued(other, text, 13, size) for text in texts]
    assert received != live(texts, truncate=True)
    assert other.score(TEXTS) == live.score(TEXTS)
    assert f"- Search: greedy, no {size} tokens in a" in other.graph.facts


def test_no_continuation_is_shorter(tokenizers, monkeypatch):
    """Of a model that would end at once."""
    texts, new = tf.constant(TEXTS), []
    for least in (0, 6):
        continuer_ = make(tokenizers[0], min_length=least)
        step = continuer_.model.step

        def ending(token_ids, state, step=step):
            logits, state = step(token_ids, state)
            is_end = ops.arange(logits.shape[-1]) == END
            return ops.where(is_end, 99.0, logits), state

        monkeypatch.setattr(continuer_.model, "step", ending)
        prompts, answers = continuer_.graph._answers(texts)
        given = np.count_nonzero(prompts, axis=1)
        new.append(answers.lengths[:, 0].numpy() - given)
    assert (new[0] == 1).all() and (new[1] == 6).all()


def test_a_blank_text_is_begun(live):
    assert live(["", " "]) == [continued(live, "", 13)] * 2
    assert live([""]) != [""]


def test_a_continuation_begins_with_the_blank_of_a_word(tokenizers):
    continuer_ = make(tokenizers[0])
    word = continuer_.graph.tokenizer.tokenize(["two"]).numpy()[0]
    assert len(word) == 1
    bias = np.zeros(continuer_.graph.tokenizer.vocabulary_size, "float32")
    bias[word] = 1e4
    continuer_.model.projection.bias.assign(bias)
    assert continuer_(["one", ""]) == [" two" * 6, " ".join(["two"] * 6)]


def test_score_is_the_log_probability_of_the_text(live):
    """Against a sum over the model's logits, token by token."""
    for text, (log_probability, num_tokens) in zip(
        TEXTS, live.score(TEXTS, truncate=True), strict=True
    ):
        ids = live.graph.tokenizer.tokenize([text]).numpy()[0].tolist()[:12]
        logits = live.model(np.array([[START, *ids]])).numpy()[0]
        expected = 0.0
        for row, label in zip(
            logits.astype("float64"), [*ids, END], strict=True
        ):
            expected += row[label] - np.log(np.sum(np.exp(row)))
        assert num_tokens == len(ids) + 1
        assert log_probability == pytest.approx(expected, rel=1e-4)


def test_an_answer_does_not_depend_on_the_batch(live):
    texts = [*TEXTS, "five six", "seven"]
    together = live(texts)
    assert live(texts, batch_size=1) == together
    assert live(texts[::-1], batch_size=2) == together[::-1]
    scores = live.score(texts)
    np.testing.assert_allclose(live.score(texts, batch_size=1), scores, 1e-5)


def test_a_text_over_the_limit_is_refused(live, loaded):
    long = "three " * 30
    for model in (live, loaded):
        ((num_tokens, limit),) = model.too_long([long]).values()
        assert num_tokens > limit == 13
        for asked in (model, model.score):
            with pytest.raises(ValueError, match="line 2 .* at most 13"):
                asked(["one", long])
    outputs = live.signatures["score"](text=tf.constant(["one", long]))
    assert outputs["truncated"].numpy().tolist() == [False, True]


def test_the_loaded_one_answers_alike(live, loaded):
    assert isinstance(loaded, continuer.Continuer)
    assert loaded(TEXTS) == live(TEXTS)
    np.testing.assert_allclose(loaded.score(TEXTS), live.score(TEXTS), 1e-5)
    assert loaded.num_tokens(TEXTS) == live.num_tokens(TEXTS)
    assert set(loaded.signatures) == set(live.signatures)


def test_the_signatures_are_dense_with_the_batch_first(loaded):
    shapes = {
        (name, key): (spec.dtype.name, spec.shape.as_list())
        for name, function in loaded.signatures.items()
        for key, spec in function.structured_outputs.items()
    }
    assert shapes == {
        ("serving_default", "continuation"): ("string", [None]),
        ("score", "log_probability"): ("float32", [None]),
        ("score", "num_tokens"): ("int32", [None]),
        ("score", "truncated"): ("bool", [None]),
        ("num_tokens", "num_tokens"): ("int32", [None]),
        ("num_tokens", "limit"): ("int32", [None]),
    }
    for function in loaded.signatures.values():
        for texts in ([], [""], [b"\xff\xfe", b"\x00"]):
            outputs = function(text=tf.constant(texts, tf.string))
            assert {value.shape[0] for value in outputs.values()} == {
                len(texts)
            }


@pytest.mark.slow
def test_a_bare_session_continues(live, version):
    """Graph mode, what TF Serving does, and without this package."""
    result = subprocess.run(
        [
            sys.executable,
            LOADERS / "session.py",
            version,
            "serving_default",
            "continuation",
        ],
        input=json.dumps(TEXTS),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert json.loads(result.stdout) == live(TEXTS)


def test_its_card_says_what_it_is(version):
    card = (version.parent / "README.md").read_text()
    assert "\n- Longest input: 13 tokens" in card
    assert "\n- Longest continuation: 7 tokens" in card
    assert "\n| `serving_default` | `text` | `continuation` |" in card


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_length": 1},
        {"max_new_tokens": 0},
        {"stored_precision": "int8"},
        {"no_repeat_ngram_size": -1},
    ],
)
def test_a_continuer_that_cannot_be(wrong, live):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"Received: .*{name}={value!r}"):
        continuer.Continuer(live.model, live.graph.tokenizer, **wrong)


@pytest.mark.slow
def test_half_precision_is_that_of_rounded_weights(tokenizers):
    whole = make(tokenizers[0])
    half = make(tokenizers[0], stored_precision="float16")
    before = whole.score(TEXTS)
    for variable in whole.model.trainable_variables:
        variable.assign(np.float16(variable))
    assert half.score(TEXTS) == whole.score(TEXTS) != before
    assert half(TEXTS) == whole(TEXTS)


@pytest.fixture(scope="module")
def short_table(tokenizers, tmp_path_factory):
    """A continuer, live and loaded, of a model with 11 learned positions."""
    keras.utils.set_random_seed(2)
    (tokenizer, _) = tokenizers
    model = models.TransformerLanguageModel(
        tokenizer.vocabulary_size,
        num_layers=1,
        hidden_dim=8,
        intermediate_dim=8,
        num_heads=2,
        max_length=11,
        dropout=0.0,
    )
    model.build()
    live = continuer.Continuer(model, tokenizer)
    folder = tmp_path_factory.mktemp("short") / "table"
    return live, loading.load(live.export(folder))


@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize(
    "num_words", [1, pytest.param(5, marks=pytest.mark.slow), 9, 10]
)
def test_learned_positions_end_the_continuation(
    short_table, num_words, is_loaded
):
    """By hand: the most probable token after all that came before."""
    model, tokenizer = short_table[0].model, short_table[0].graph.tokenizer
    prompt = " ".join(["three"] * num_words)
    ids = [START, *tokenizer.tokenize([prompt]).numpy()[0]]
    assert len(ids) == num_words + 1
    while len(ids) < 11:
        logits = model(np.array([ids], "int32")).numpy()[0, -1]
        logits[[PAD, UNK, START]] = -np.inf
        ids.append(int(np.argmax(logits)))
        if ids[-1] == END:
            break
    new = [[i for i in ids[1:] if i != END]]
    text = tokenizer.detokenize(tf.ragged.constant(new, tf.int32)).numpy()[0]
    (answer,) = short_table[is_loaded]([prompt])
    assert prompt + answer == text.decode()


@pytest.mark.parametrize("is_loaded", [False, True])
def test_learned_positions_are_the_limit_of_a_text(short_table, is_loaded):
    one = short_table[is_loaded]
    long = " ".join(["three"] * 11)
    assert one.too_long([long]) == {1: (12, 11)}
    with pytest.raises(ValueError, match="line 1 .* at most 11"):
        one([long])
    (score,) = one.score([" ".join(["three"] * 10)])
    assert np.isfinite(score[0]) and score[1] == 11
    # What is cut anyway leaves room for a continuation.
    assert one([long], truncate=True) != [""]


@pytest.mark.slow
def test_a_sample_depends_on_its_text_and_the_seed(tokenizers, tmp_path):
    """In a batch and alone, live and exported."""
    options = {"temperature": 2.0, "max_new_tokens": 5}
    texts, live = TEXTS[:4], make(tokenizers[0], **options)
    drawn = live(texts)
    for asked in (live, loading.load(live.export(tmp_path / "drawing"))):
        assert asked(texts[::-1], batch_size=3) == drawn[::-1]
        assert [asked([text])[0] for text in texts] == drawn
    assert make(tokenizers[0], **options, sampling_seed=2)(texts) != drawn
    first = make(tokenizers[0], **options, top_k=1)
    assert first(texts) == make(tokenizers[0], max_new_tokens=5)(texts)
