"""Text in, text out: the live translator's functions, for every model."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import Translator, decoding, models
from keras_attention.models import catalog
from keras_attention.serving import token_rows
from keras_attention.tokens import END, PAD, START

MODELS = [
    name
    for name, entry in catalog.CATALOG.items()
    if entry.task == "translation"
]
# Signatures of pairs -> the name of the second text.
SECOND = {"score": "reference", "align": "reference", "inspect": "answer"}
WITH_ATTENTION = ("transformer", "rnnsearch", "luong")


@pytest.fixture(scope="module")
def transformer(random_translator):
    return random_translator("transformer")


@pytest.mark.fast_for("transformer")
@pytest.mark.parametrize(
    "num_beams", [pytest.param(1, marks=pytest.mark.slow), 4]
)
@pytest.mark.parametrize("name", MODELS)
def test_an_answer_does_not_depend_on_the_batch(
    name, num_beams, random_translator, sentences
):
    translator = random_translator(name)
    some = sentences[-10:]
    together = translator(some, num_beams=num_beams)
    assert len(set(together)) > 3
    alone = translator(some, num_beams=num_beams, batch_size=1)
    assert together == alone
    turned = translator(some[::-1], num_beams=num_beams, batch_size=3)
    assert together == turned[::-1]
    # Beside a text that makes the batch much wider.
    signature = {1: "greedy", 4: "serving_default"}[num_beams]
    wide = tf.constant([*some[:5], "three " * 15])
    padded = translator.signatures[signature](text=wide)["translation"].numpy()
    assert [text.decode() for text in padded[:5]] == together[:5]


@pytest.mark.slow
@pytest.mark.parametrize("num_beams", [1, 3])
def test_both_halves_of_a_batch_are_searched(num_beams, transformer, rng):
    lengths = np.arange(17) % 9 + 1  # odd, and enough to be halved
    source_ids = rng.integers(4, 200, (17, 9)).astype("int32")
    source_ids[np.arange(9) >= lengths[:, None]] = PAD
    search = tf.function(
        lambda ids: transformer.graph.search(ids, num_beams, n_best=num_beams),
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
        autograph=False,
    )
    together = search(source_ids)
    assert together.lengths.numpy().max() > together.lengths.numpy().min()
    for row, length in enumerate(lengths):
        alone = search(source_ids[row : row + 1, :length])
        width = alone.ids.shape[2]
        np.testing.assert_array_equal(
            together.ids[row, :, :width], alone.ids[0]
        )
        assert not together.ids[row, :, width:].numpy().any()
        np.testing.assert_allclose(together.score[row], alone.score[0], 1e-3)
        np.testing.assert_allclose(
            together.attention_weights[row, :, :width, :length],
            alone.attention_weights[0],
            atol=1e-3,
        )


def num_repeated(tokens, size):
    """How many n-grams of a list have stood there before."""
    grams = [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]
    return len(grams) - len(set(grams))


def test_a_greedy_text_without_a_score_is_that_with_one(
    random_translator, sentences
):
    plain = random_translator("transformer")
    greedy = Translator(
        plain.model,
        plain.graph.source_tokenizer,
        plain.graph.target_tokenizer,
        num_beams=1,
    )
    some = [text for text in sentences[:9] if text.strip()]
    scored = [row["translation"] for row in greedy.with_attention(some)]
    assert len({*scored}) > 3
    assert greedy(some) == greedy(some, batch_size=1) == scored
    assert plain(some, num_beams=1) == scored


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2])
def test_no_search_writes_an_ngram_again(random_translator, sentences, size):
    plain = random_translator("transformer")
    translate = Translator(
        plain.model,
        plain.graph.source_tokenizer,
        plain.graph.target_tokenizer,
        no_repeat_ngram_size=size,
    )
    some = [text for text in sentences[:30] if text.strip()]
    repeated = {
        translator: sum(
            num_repeated(row["target_tokens"], size)
            for row in translator.with_attention(some)
        )
        for translator in (plain, translate)
    }
    assert repeated[plain] > 5
    assert repeated[translate] == 0
    # Greedy search, as its ids.
    ids = plain.graph.source_tokenizer.tokenize(some)
    source_ids = token_rows.ended(ids)
    for num_beams in (1, 4):
        answers = translate.graph.search(source_ids, num_beams)
        for row, length in zip(
            answers.ids[:, 0].numpy().tolist(),
            answers.lengths[:, 0].numpy(),
            strict=True,
        ):
            assert num_repeated(row[:length], size) == 0
    assert translate(some, num_beams=1) != plain(some, num_beams=1)
    # What is given may repeat itself.
    given = ["eins eins eins eins"]
    assert translate.score(["one"], given) == plain.score(["one"], given)
    assert f"no {size} tokens in a row twice" in translate.graph.facts


def test_blank_texts_translate_to_blank(transformer):
    blank = ["", " ", "\n\t", "\u3000"]
    assert transformer([*blank, "one"])[:4] == [""] * 4
    rows = transformer.with_attention(blank)
    assert [row["target_tokens"] for row in rows] == [[]] * 4
    assert transformer.n_best(blank) == [[("", 0.0)]] * 4


def test_a_blank_text_takes_no_room(transformer):
    """What the search found for it is longer than the other answer."""
    ids = np.array([[[5, 6, 7, 8, 9, END]], [[5, END, 0, 0, 0, 0]]], "int32")
    scores = np.zeros((2, 1), "float32")
    answers = decoding.SearchResult(
        *map(tf.constant, (ids, [[6], [2]], scores, scores)),
        tf.ones((2, 1, 6, 3)),
    )
    source_ids = tf.constant([[END, 0, 0], [5, 6, END]])
    shown = transformer.graph._write_attention(
        answers, source_ids, tf.constant([1, 3])
    )
    assert shown["target_tokens"].shape == (2, 2)
    assert shown["attention"].shape == (2, 2, 3)


@pytest.mark.slow
def test_no_text_gives_no_translation(transformer):
    assert transformer([]) == []
    result = transformer.graph.search(tf.zeros([0, 0], tf.int32), 2, n_best=2)
    assert result.ids.shape == (0, 2, 1)
    for name, function in transformer.signatures.items():
        inputs = {"text": tf.zeros([0], tf.string)}
        if name in SECOND:
            inputs[SECOND[name]] = inputs["text"]
        for value in function(**inputs).values():
            assert value.shape[0] == 0, name


@pytest.mark.fast_for("transformer")
@pytest.mark.parametrize("name", WITH_ATTENTION)
def test_attention_sums_to_one_over_the_source(
    name, random_translator, sentences
):
    translator = random_translator(name)
    outputs = translator.signatures["with_attention"](
        text=tf.constant(sentences[-20:])
    )
    outputs = {key: value.numpy() for key, value in outputs.items()}
    attention = outputs["attention"]
    source, target = outputs["source_tokens"], outputs["target_tokens"]
    assert attention.shape == (20, target.shape[1], source.shape[1])
    is_token = target != b""
    np.testing.assert_allclose(
        attention.sum(axis=2), is_token.astype("float32"), atol=1e-5
    )
    padding = np.broadcast_to((source == b"")[:, None], attention.shape)
    assert padding.any() and not attention[padding].any()


def test_tokens_spell_the_translation(transformer):
    texts = ["one two", "nine"]
    rows = transformer.with_attention(texts)
    translations = transformer(texts)
    for row, text, translation in zip(rows, texts, translations, strict=True):
        assert row["translation"] == translation
        assert row["source_tokens"][-1] == "[END]"
        spelt = "".join(row["source_tokens"][:-1])
        assert spelt.replace("▁", " ").strip() == text
        assert row["attention"].shape == (
            len(row["target_tokens"]),
            len(row["source_tokens"]),
        )


@pytest.mark.fast_for("rnnsearch")
@pytest.mark.parametrize("name", MODELS)
def test_aligning_is_stepping_through_the_reference(name, random_translator):
    translator = random_translator(name)
    texts, references = ["one two three", "four"], ["eins zwei", "vier fünf"]
    rows = translator.align(texts, references)
    for text, reference, row in zip(texts, references, rows, strict=True):
        source = translator.graph.source_tokenizer.tokenize([text]).numpy()[0]
        target = translator.graph.target_tokenizer.tokenize(
            [reference]
        ).numpy()[0]
        memory = translator.model.encode(np.array([[*source, END]]))
        state = translator.model.initial_state(memory, len(target) + 1)
        expected = []
        for token in [START, *target]:
            _, state, weights = translator.model.step(
                np.array([token]), memory, state
            )
            weights = np.reshape(weights, (-1, len(source) + 1))  # by head
            expected.append(weights.mean(axis=0))
        np.testing.assert_allclose(row["attention"], expected, atol=1e-5)
        for tokens, spelt in (("source", text), ("target", reference)):
            assert row[f"{tokens}_tokens"][-1] == "[END]"
            joined = "".join(row[f"{tokens}_tokens"][:-1])
            assert joined.replace("▁", " ").strip() == spelt


def test_aligning_pads_and_cuts(random_translator):
    """The function itself, of texts that are blank, odd or too long."""
    translator = random_translator("transformer", max_source_length=6)
    texts = ["", "one", "\u00fc\U0001f600" * 9]
    outputs = translator.signatures["align"](
        text=tf.constant(texts), reference=tf.constant(["", "a b", "eins"])
    )
    outputs = {key: value.numpy() for key, value in outputs.items()}
    assert outputs["truncated"].tolist() == [False, False, True]
    weights = outputs["attention"]
    assert weights.shape[1:] == (max(outputs["num_tokens"]), 6)
    for row, length in enumerate(outputs["num_tokens"]):
        tokens = outputs["target_tokens"][row]
        assert tokens[length - 1] == b"[END]" and not any(tokens[length:])
        sources = outputs["source_tokens"][row] != b""
        np.testing.assert_allclose(weights[row, :length].sum(-1), 1, rtol=1e-5)
        assert not weights[row, length:].any()
        assert not weights[row][:, ~sources].any()
    assert outputs["source_tokens"][0].tolist() == [b"[END]"] + [b""] * 5


def test_n_best_is_sorted_and_begins_with_the_translation(
    transformer, sentences
):
    some = sentences[:8]
    n_best = transformer.n_best(some)
    assert [row[0][0] for row in n_best] == transformer(some)
    for row in n_best:
        scores = [score for _, score in row]
        assert len(scores) == 4
        assert scores == sorted(scores, reverse=True)


def test_score_asks_the_model(transformer, monkeypatch):
    """A model that sums over a lattice overrides `log_probability`."""
    monkeypatch.setattr(
        transformer.model,
        "log_probability",
        lambda source_ids, labels: (
            -tf.cast(
                tf.math.count_nonzero(source_ids, axis=1)
                + 10 * tf.math.count_nonzero(labels, axis=1),
                tf.float32,
            )
        ),
    )
    graph, texts = transformer.graph, tf.constant(["one two", "four"])
    references = tf.constant(["eins", "vier fünf"])
    scored = graph._score(texts, references)
    lengths = graph.source_tokenizer.tokenize(texts).row_lengths() + 1
    expected = -lengths - 10 * tf.cast(scored["num_tokens"], tf.int64)
    np.testing.assert_array_equal(scored["log_probability"], expected)


def test_score_is_the_log_probability_of_the_reference(transformer):
    """Against a sum over the model's logits, token by token."""
    texts = ["one two three", "four"]
    references = ["eins zwei", "vier fünf sechs sieben"]
    received = transformer.score(texts, references)
    for text, reference, (log_probability, num_tokens) in zip(
        texts, references, received, strict=True
    ):
        source = transformer.graph.source_tokenizer.tokenize([text]).numpy()[0]
        target = transformer.graph.target_tokenizer.tokenize(
            [reference]
        ).numpy()[0]
        logits = transformer.model(
            {
                "source_ids": np.array([[*source, END]]),
                "target_ids": np.array([[START, *target]]),
            },
            training=False,
        ).numpy()[0]
        labels = [*target, END]
        expected = 0.0
        for step, label in enumerate(labels):
            row = logits[step].astype("float64")
            expected += row[label] - np.log(np.sum(np.exp(row)))
        assert num_tokens == len(labels)
        assert log_probability == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", ["score", "align"])
@pytest.mark.parametrize("texts, references", [(1, 2), (3, 1), (2, 0)])
def test_a_signature_wants_one_reference_for_each_text(
    transformer, name, texts, references
):
    signature = transformer.signatures[name]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="one `reference` for each `text`"
    ):
        signature(
            text=tf.constant(["one"] * texts),
            reference=tf.constant(["two"] * references, tf.string),
        )


@pytest.mark.slow
def test_a_text_over_the_limit(random_translator):
    """Python refuses it; the function translates what fits, and says so."""
    translator = random_translator("transformer", max_source_length=6)
    fits, long = "one two", "one two three four five six seven eight"
    with pytest.raises(ValueError, match="line 2 .* at most 6"):
        translator([fits, long])
    outputs = translator.signatures["with_attention"](
        text=tf.constant([fits, long])
    )
    assert outputs["truncated"].numpy().tolist() == [False, True]
    cut = b"".join(outputs["source_tokens"].numpy()[1]).decode()
    cut = cut.removesuffix("[END]").replace("▁", " ").strip()
    assert long.startswith(cut) and len(cut) < len(long)
    counts = translator.num_tokens([cut, long])
    assert counts[0] == 6 < counts[1]
    alone = translator([cut])[0]
    assert outputs["translation"].numpy()[1].decode() == alone


def test_texts_over_the_limit_are_listed(random_translator):
    translator = random_translator("transformer", max_source_length=6)
    texts = ["one two", "three " * 8, "", "four " * 9]
    lengths = translator.num_tokens(texts)
    assert lengths[0] < 6 < lengths[1] < lengths[3]
    expected = {2: (lengths[1], 6), 4: (lengths[3], 6)}
    assert translator.too_long(texts) == expected
    assert translator.num_truncated(texts) == 2
    assert translator.too_long([]) == {}


def test_what_is_too_long_can_be_cut(random_translator):
    """Scored and aligned is then what the bare functions cut."""
    translator = random_translator("transformer", max_source_length=6)
    texts, references = ["three " * 8, "one"], ["zwei", "eins " * 50]
    inputs = {"text": tf.constant(texts), "reference": tf.constant(references)}
    scored = translator.signatures["score"](**inputs)
    expected = zip(
        scored["log_probability"].numpy(),
        scored["num_tokens"].numpy(),
        strict=True,
    )
    received = translator.score(texts, references, truncate=True)
    for ours, theirs in zip(received, expected, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4)
    rows = translator.align(texts, references, truncate=True)
    assert [len(row["source_tokens"]) for row in rows] == [6, 2]
    assert [len(row["target_tokens"]) for row in rows] == [2, 44]
    for asked in (translator.score, translator.align):
        with pytest.raises(ValueError, match="line 1 .* at most 6"):
            asked(texts, references)


def test_a_reference_over_the_limit(random_translator):
    """As many tokens as the longest answer: 2 x 6 + 32, END included."""
    translator = random_translator("transformer", max_source_length=6)
    fits, long = "eins " * 43, "eins " * 44
    one = len(translator.graph.target_tokenizer.tokenize(["eins"]).numpy()[0])
    assert one == 1
    assert translator.score(["one"], [fits])[0][1] == 44
    for asked in (translator.score, translator.align):
        with pytest.raises(ValueError, match="line 2 has more than 44 tokens"):
            asked(["one", "one"], [fits, long])


def test_learned_positions_limit_texts_and_answers(tokenizers):
    source, target = (one.vocabulary_size for one in tokenizers)
    sizes = {"num_layers": 1, "embedding_dim": 8, "hidden_dim": 8}
    model = models.ConvSeq2Seq(target, source, **sizes, num_positions=9)
    model.build()
    translator = Translator(model, *tokenizers)
    assert translator.too_long(["one " * 9]) == {1: (10, 9)}
    result = translator.graph.search(tf.constant([[5, END]] * 2), num_beams=2)
    assert np.isfinite(result.score).all() and result.ids.shape[-1] <= 9


def test_tokens_are_counted_with_end(transformer, sentences):
    ids = transformer.graph.source_tokenizer.tokenize(sentences)
    expected = [len(row) + 1 for row in ids.to_list()]
    assert transformer.num_tokens(sentences) == expected
    assert transformer.num_tokens([]) == []


def test_texts_may_come_one_by_one(transformer):
    texts = ["one two", "", "nine"]
    assert transformer(iter(texts)) == transformer(texts)
    scores = transformer.score(iter(texts), iter(texts[::-1]))
    assert scores == transformer.score(texts, texts[::-1])


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda ka: ka("one"), "Put a single text in a list"),
        (lambda ka: ka(b"one"), "Put a single text in a list"),
        (lambda ka: ka(["one", b"two"]), "Line 2 is b'two'"),
        (lambda ka: ka([None]), "Line 1 is None"),
        (lambda ka: ka(["one"], batch_size=0), "batch_size=0"),
        (lambda ka: ka.score(["a", "b"], "cd"), "Put a single text in a list"),
        (lambda ka: ka(["one"], num_beams=3), "not with 3"),
        (lambda ka: ka.score(["a", "b"], ["c"]), "2 texts and 1 references"),
    ],
)
def test_mistakes_are_explained(make, message, transformer):
    with pytest.raises(ValueError, match=message):
        make(transformer)


@pytest.mark.parametrize(
    "wrong",
    [
        {"num_beams": 0},
        {"length_penalty": -1.0},
        {"max_source_length": 1},
        {"max_target_factor": -1.0},
        {"max_target_offset": -1},
        {"max_target_factor": 0.0, "max_target_offset": 0},
        {"stored_precision": "int8"},
        {"no_repeat_ngram_size": -1},
    ],
)
def test_a_translator_that_cannot_be(wrong, transformer):
    received = ".*".join(f"{name}={value!r}" for name, value in wrong.items())
    with pytest.raises(ValueError, match=f"Received: .*{received}"):
        Translator(
            transformer.model, transformer.graph.source_tokenizer, **wrong
        )


def test_choices_are_given_by_name(transformer):
    """What stood behind the tokenizers was once the number of beams."""
    tokenizer = transformer.graph.source_tokenizer
    with pytest.raises(TypeError, match="positional"):
        Translator(transformer.model, tokenizer, tokenizer, 4)


def test_a_model_without_weights_is_refused(transformer):
    model = type(transformer.model).from_config(transformer.model.get_config())
    with pytest.raises(ValueError, match="is not built"):
        Translator(model, transformer.graph.source_tokenizer)


def test_weights_that_half_precision_cannot_hold(random_translator):
    translator = random_translator.__wrapped__("transformer")
    translator.model.trainable_variables[0].assign_add(1e5)
    with pytest.raises(ValueError, match="embedding.* too large for float16"):
        Translator(
            translator.model,
            translator.graph.source_tokenizer,
            stored_precision="float16",
        )


@pytest.mark.parametrize(
    "text", [tf.constant("one"), tf.constant([["one"]]), tf.constant([1])]
)
def test_another_rank_or_type_is_refused(text, transformer):
    for name, function in transformer.signatures.items():
        inputs = {"text": text}
        if name in SECOND:
            inputs[SECOND[name]] = text
        with pytest.raises((TypeError, ValueError)):
            function(**inputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_batch_of_no_texts_has_no_answers(name, random_translator):
    translator = random_translator(name)
    none = tf.constant([], tf.string)
    for signature, function in translator.signatures.items():
        inputs = {"text": none}
        if signature in SECOND:
            inputs[SECOND[signature]] = none
        outputs = function(**inputs)
        assert {value.shape[0] for value in outputs.values()} == {0}
