"""What the choices of a search do to texts, in live models."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import Translator, data
from keras_attention.serving import (
    constraints,
    loading,
    quick_search,
    token_rows,
)
from keras_attention.tokens import END, PAD

TEXTS = ["one", "two three", "five one seven", "nine nine two four"]


@pytest.fixture(scope="module")
def plain(random_translator):
    return random_translator("transformer")


def with_choices(plain, **search):
    graph = plain.graph
    return Translator(
        plain.model, graph.source_tokenizer, graph.target_tokenizer, **search
    )


def search_of(translator, num_beams, texts=TEXTS):
    """The `SearchResult` of some texts, and their ids."""
    ids = token_rows.ended(translator.graph.source_tokenizer.tokenize(texts))
    return translator.graph.search(ids, num_beams), ids


def test_no_answer_is_shorter(plain, monkeypatch):
    """Of a model that would end at once."""
    step = plain.model.prepared_step()

    def ending(*arguments, **options):
        logits, state, weights = step(*arguments, **options)
        is_end = tf.range(logits.shape[-1]) == END
        return tf.where(is_end, 99.0, logits), state, weights

    monkeypatch.setattr(plain.model, "prepared_step", lambda: ending)
    for least in (1, 9):
        translate = with_choices(plain, min_length=least)
        for num_beams in (1, 4):
            found, _ = search_of(translate, num_beams)
            assert (found.lengths[:, 0].numpy() == least).all()
    assert "length penalty 1.0, at least 9 tokens" in translate.graph.facts


@pytest.mark.slow
def test_a_sample_depends_on_its_text_and_the_seed(plain):
    drawn = {"temperature": 1.0, "top_p": 0.9, "max_target_offset": 5}
    translate = with_choices(plain, **drawn)
    found = translate.n_best(TEXTS)
    assert len({text for text, _ in found[3]}) > 1
    for row in found:
        scores = [score for _, score in row]
        assert scores == sorted(scores, reverse=True)
    turned = translate.n_best(TEXTS[::-1], batch_size=3)
    for row, same in zip(found, turned[::-1], strict=True):
        assert [text for text, _ in row] == [text for text, _ in same]
    one = translate(TEXTS)
    assert [translate([text])[0] for text in TEXTS] == one
    assert one != with_choices(plain, **drawn, sampling_seed=2)(TEXTS)
    greedy = with_choices(plain, max_target_offset=5)(TEXTS, num_beams=1)
    assert translate(TEXTS, num_beams=1) == greedy
    assert one != greedy
    first = with_choices(plain, temperature=0.7, top_k=1, max_target_offset=5)
    assert first(TEXTS) == greedy


@pytest.fixture(scope="module")
def one_sample(plain):
    return with_choices(
        plain, temperature=1.0, num_beams=1, max_target_offset=5
    )


def test_what_draws_has_no_quick_search(one_sample):
    """Nor is one sample what a call with one beam asks for."""
    assert not one_sample.graph.quick_searches
    assert one_sample._signature_of(1) == "greedy"
    assert one_sample._signature_of(None) == "serving_default"
    facts = one_sample.graph.facts
    assert "- Search: sampling, 1 for `n_best`, tokens drawn at" in facts
    assert "plain log-probabilities" in facts and "beam" not in facts


@pytest.mark.slow
def test_one_sample_is_not_greedy(plain, one_sample, tmp_path):
    greedy = with_choices(plain, num_beams=1, max_target_offset=5)(TEXTS)
    loaded = loading.load(one_sample.export(tmp_path / "drawn"))
    signature = loaded.signatures["serving_default"]
    assert not isinstance(signature, quick_search.QuickSearch)
    assert loaded(TEXTS) == one_sample(TEXTS) != greedy
    assert loaded(TEXTS, num_beams=1) == greedy


def test_coverage_is_in_the_score(plain):
    """Equation 14 of Wu et al. 2016, from what the search returns."""
    # So few tokens do not look at each token of the source.
    short = {"max_target_factor": 0.0, "max_target_offset": 3}
    translate = with_choices(plain, coverage_penalty=0.3, **short)
    found, ids = search_of(translate, 4)
    log_p = found.log_probability[:, 0].numpy()
    lengths = found.lengths[:, 0].numpy()
    for row in range(len(TEXTS)):
        score = log_p[row] / ((5 + lengths[row]) / 6)
        looks = found.attention_weights[row, 0].numpy().sum(axis=0)
        for look, token in zip(looks, ids[row].numpy(), strict=True):
            if token != PAD:
                score += 0.3 * np.log(min(look, 1))
        assert float(found.score[row, 0]) == pytest.approx(score, rel=1e-4)
    without, _ = search_of(with_choices(plain, **short), 4)
    assert np.any(found.score[:, 0] < without.score[:, 0] - 0.01)


@pytest.fixture(scope="module")
def constrained(plain):
    return with_choices(plain, constraints=True, max_target_offset=6)


def test_translations_begin_and_hold_what_they_are_told(constrained):
    prefixes = ["", "zwei", "eins drei", ""]
    terms = [["neun"], [], ["acht", "zwei null"], []]
    found = constrained.constrained(TEXTS, prefixes, terms)
    for (text, score), prefix, row in zip(found, prefixes, terms, strict=True):
        assert text.startswith(prefix) and np.isfinite(score)
        assert all(term in text for term in row)
    # Without either it is the translation.
    assert found[3][0] == constrained(TEXTS[3:])[0]
    alone = constrained.constrained(TEXTS[2:3], prefixes[2:3], terms[2:3])
    assert alone[0][0] == found[2][0]
    assert constrained.constrained([""], terms=[["neun"]]) == [("", 0.0)]


def test_terms_without_room_have_no_translation(constrained):
    long = "neun " * 30
    (found,) = constrained.constrained(["one"], terms=[[long.strip()]])
    assert found == ("", -np.inf)


@pytest.mark.slow
def test_an_export_has_the_signature_if_it_was_asked_for(
    constrained, plain, tmp_path
):
    version = constrained.export(tmp_path / "terms")
    loaded = loading.load(version)
    asked = ([*TEXTS[:1]], ["zwei"], [["neun"]])
    assert (
        loaded.constrained(*asked)[0][0]
        == (constrained.constrained(*asked)[0][0])
    )
    with pytest.raises(ValueError, match="constraints=True"):
        plain.constrained(TEXTS)


def test_a_term_that_cannot_be_written_is_named(plain):
    vocabulary = data.train_vocabulary(["neun eins"] * 9, 40, "word")
    translate = Translator(
        plain.model,
        plain.graph.source_tokenizer,
        data.Tokenizer(vocabulary),
        constraints=True,
    )
    with pytest.raises(ValueError, match="cannot write the term 'neun zehn'"):
        translate.constrained(["one"], terms=[["neun", "neun zehn"]])
    constraints.check_known(["neun\neins", ""], data.Tokenizer(vocabulary))


@pytest.mark.parametrize("wrong", [["neun"], [["ne\nun"]]])
def test_what_is_no_list_of_terms_is_refused(constrained, wrong):
    with pytest.raises(ValueError, match="a list of terms"):
        constrained.constrained(["one"], terms=wrong)
