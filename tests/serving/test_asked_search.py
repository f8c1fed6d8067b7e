"""The signatures `search` and `sample`: choices that come with each text."""

import numpy as np
import pytest
import search_limits
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

import keras_attention as ka
from keras_attention import Translator
from keras_attention.serving import asked_search, constraints_graph, kinds

TEXTS = ["one", "two three", "five one seven", ""]
SHORT = {"max_target_offset": 4, "max_target_factor": 1.0}
# Each is one choice that changes what the model finds.
CHOICES = [
    {},
    {"num_beams": 2},
    {"length_penalty": 0.0},
    {"coverage_penalty": 0.5},
    {"no_repeat_ngram_size": 1},
    {"min_length": 5},
]
DRAWN = [
    {},
    {"temperature": 0.5},
    {"top_k": 2},
    {"top_p": 0.5},
    {"min_p": 0.4},
    {"sampling_seed": 5},
    {"no_repeat_ngram_size": 1},
    {"min_length": 5},
]


def with_choices(plain, **search):
    graph = plain.graph
    tokenizers = graph.source_tokenizer, graph.target_tokenizer
    return Translator(plain.model, *tokenizers, **SHORT, **search)


@pytest.fixture(scope="module")
def plain(random_translator):
    return random_translator("transformer")


@pytest.fixture(scope="module")
def translator(plain):
    return with_choices(plain, per_request=True, num_beams=3)


@pytest.fixture(scope="module")
def version(translator, tmp_path_factory):
    return translator.export(tmp_path_factory.mktemp("exports") / "asked")


@pytest.fixture(scope="module")
def loaded(version):
    return ka.load(version)


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert [text for text, _ in one] == [text for text, _ in other]
        scores = [[score for _, score in row] for row in (one, other)]
        np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("choices", CHOICES, ids=str)
def test_a_search_is_that_of_a_model_that_was_made_so(
    plain, translator, choices
):
    made = with_choices(plain, **{"num_beams": 3, **choices})
    expected = made.n_best(TEXTS)
    same(translator.search(TEXTS, **choices), expected)
    if choices:
        assert translator.search(TEXTS) != expected


@pytest.mark.slow
@pytest.mark.parametrize("choices", DRAWN, ids=str)
def test_samples_are_those_of_a_model_that_was_made_so(
    plain, translator, choices
):
    made = with_choices(plain, **{"num_beams": 3, "temperature": 1.0} | choices)
    expected = made.n_best(TEXTS)
    same(translator.sample(TEXTS, **choices), expected)
    if choices:
        assert translator.sample(TEXTS) != expected


@pytest.mark.slow
def test_terms_and_a_prefix_are_held(translator):
    prefixes = ["", "zwei", "", "eins"]
    terms = [["neun"], [], [], []]
    found = translator.search(TEXTS, prefixes, terms, min_length=3)
    assert "neun" in found[0][0][0] and found[1][0][0].startswith("zwei")
    # A blank text has the blank translation.
    assert found[3] == [("", 0.0)]
    drawn = translator.sample(TEXTS, prefixes)
    assert all(text.startswith("zwei") for text, _ in drawn[1])


@pytest.mark.slow
def test_each_row_has_its_own_choices(translator):
    """A row of many is as if it had been asked alone."""
    rows = {
        "num_beams": [1, 3, 2, 3],
        "length_penalty": [0.0, 1.0, 0.5, 1.0],
        "coverage_penalty": [0.0, 0.5, 0.0, 0.0],
        "no_repeat_ngram_size": [1, 0, 2, 0],
        "min_length": [0, 4, 5, 0],
        "prefix": ["", "", "drei", ""],
        "terms": ["neun", "", "", ""],
    }
    declared = translator.kind.signatures["search"].choices
    types = {name: kinds.dtype_of(value) for name, value in declared.items()}
    inputs = {
        name: tf.constant(values, types[name]) for name, values in rows.items()
    }
    search = translator.signatures["search"]
    together = search(text=tf.constant(TEXTS), **inputs)
    assert together["translations"].shape == (4, 3)
    for row, text in enumerate(TEXTS):
        alone = search(
            text=tf.constant([text]),
            **{name: values[row : row + 1] for name, values in inputs.items()},
        )
        for name, values in alone.items():
            if values.dtype == tf.string:
                assert (values[0] == together[name][row]).numpy().all()
                continue
            np.testing.assert_allclose(
                values[0], together[name][row], rtol=1e-4, atol=1e-4
            )


@pytest.mark.parametrize(
    "name, choices, message",
    [
        ("search", {"num_groups": 2}, "search takes num_beams, .* num_groups"),
        ("search", {"num_beams": 4}, "at most 3 beams.*num_beams=4"),
        ("search", {"length_penalty": -1.0}, "length_penalty"),
        ("sample", {"temperature": 0.0}, "above 0"),
        ("sample", {"top_p": 2.0}, "top_p"),
        ("search", {"length_penalty": 1e39}, "length_penalty must be from 0 "),
        ("search", {"coverage_penalty": 1e9}, "from 0 to 100. Received"),
        ("search", {"min_length": 2**40}, "from 0 to 2147483647"),
        ("sample", {"temperature": 1e-40}, "from 0.001 to 1000"),
        ("sample", {"top_p": 1e-60}, "from 1e-06 to 1"),
        ("search", {"terms": [["a"] * 17] * 4}, "at most 16 terms.*17 terms"),
        ("sample", {"num_beams": 2}, "sample takes temperature"),
    ],
)
def test_a_wrong_choice_is_named(translator, name, choices, message):
    with pytest.raises(ValueError, match=message):
        getattr(translator, name)(TEXTS, **choices)


def test_the_graph_refuses_too_many_and_too_long_terms(plain):
    """Otherwise one request could take all memory."""
    tokenizer = plain.graph.target_tokenizer
    ids = constraints_graph.term_ids(
        tokenizer, tf.constant(["neun\n" * 15, "neun " * 128])
    )
    assert ids.shape[:2] == (2, 17)
    for terms, message in (
        ("neun\n" * 16, "at most 16 lines"),
        ("neun " * 129, "at most 128 tokens"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            constraints_graph.term_ids(tokenizer, tf.constant(["", terms]))


def test_a_translator_without_them_says_so(plain):
    for ask in (plain.search, plain.sample):
        with pytest.raises(ValueError, match="per_request=True"):
            ask(TEXTS)
    assert not {"search", "sample"} & {*plain.signatures}


def asked(translator, name, choices):
    """What a signature gives to a text with some choices of its own."""
    declared = translator.kind.signatures[name].choices
    inputs = {
        key: tf.constant([choices.get(key, value)], kinds.dtype_of(value))
        for key, value in declared.items()
    }
    return translator.signatures[name](text=tf.constant(["one"]), **inputs)


def test_each_number_has_its_limits(translator):
    for name, limits in search_limits.LIMITS.items():
        declared = translator.kind.signatures[name].choices
        assert {*limits} == {*declared} - {"prefix", "terms"}


@pytest.mark.parametrize("name, choice", search_limits.ROWS)
def test_python_refuses_what_is_just_out_of_bounds(translator, name, choice):
    declared = translator.kind.signatures[name].choices
    _, limits, others = search_limits.of(translator.kind, name, choice)
    for value in limits:
        found = asked_search.values(name, declared, {choice: value})
        assert found[choice] == np.array([value], found[choice].dtype)
    for value in others:
        with pytest.raises(ValueError, match=f"Received: {choice}="):
            asked_search.values(name, declared, {choice: value})


@pytest.mark.slow
@pytest.mark.parametrize("name, choice", search_limits.ROWS)
def test_an_export_refuses_what_is_just_out_of_bounds(loaded, name, choice):
    """A bare SavedModel has no Python that would look."""
    words, limits, others = search_limits.of(loaded.kind, name, choice)
    for value in limits:
        found = asked(loaded, name, {choice: value})
        assert found["translations"].shape == (1, 3)
        assert not np.isnan(found["scores"]).any()
    for value in others:
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            asked(loaded, name, {choice: value})


@pytest.mark.slow
def test_what_is_no_number_is_out_of_bounds(loaded):
    for name, choice in search_limits.ROWS:
        declared = loaded.kind.signatures[name].choices[choice]
        if isinstance(declared, float):
            words, _, _ = search_limits.of(loaded.kind, name, choice)
            with pytest.raises(tf.errors.InvalidArgumentError, match=words):
                asked(loaded, name, {choice: np.nan})


def test_a_declaration_keeps_the_values(translator):
    kind = kinds.from_json(kinds.to_json(translator.kind))
    assert kind == translator.kind
    signatures = asked_search.signatures(
        ka.config.Search(
            temperature=0.7, top_k=3, min_p=0.1, sampling_seed=2**43 - 1
        ).whole()
    )
    sample = signatures["sample"].choices
    assert sample["temperature"] == 0.7 and sample["top_k"] == 3
    assert sample["top_p"] == 1.0 and sample["min_p"] == 0.1
    assert sample["sampling_seed"] == 2**43 - 1
    assert signatures["search"].choices["length_penalty"] == 1.0


@pytest.mark.slow
def test_a_savedmodel_has_the_defaults_in_its_graph(
    translator, version, loaded
):
    """Who knows nothing of choices leaves them out, and finds `n_best`."""
    expected = translator.n_best(TEXTS)
    same(loaded.search(TEXTS), expected)
    same(
        loaded.search(TEXTS, min_length=5),
        translator.search(TEXTS, min_length=5),
    )
    same(loaded.sample(TEXTS, top_k=2), translator.sample(TEXTS, top_k=2))
    saved = saved_model_pb2.SavedModel.FromString(
        (version / "saved_model.pb").read_bytes()
    )
    definitions = saved.meta_graphs[0].signature_def
    for name in ("search", "sample"):
        declared = translator.kind.signatures[name].choices
        found = {
            key: tf.make_ndarray(proto).tolist()
            for key, proto in definitions[name].defaults.items()
        }
        told = {
            key: [value.encode() if isinstance(value, str) else value]
            for key, value in declared.items()
        }
        assert found == told
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.saved_model.load(session, ["serve"], str(version))
        definition = definitions["search"]
        outputs = session.run(
            {key: one.name for key, one in definition.outputs.items()},
            {definition.inputs["text"].name: TEXTS},
        )
    found = [
        [text.decode() for text in row if text]
        for row in outputs["translations"]
    ]
    assert found == [[text for text, _ in row if text] for row in expected]
