"""Minimum Bayes risk in graph, beside sacrebleu."""

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies
from sacrebleu import metrics

from keras_attention import Translator, evaluation
from keras_attention.serving import loading, minimum_risk

TEXTS = strategies.lists(
    strategies.one_of(
        strategies.text("ab c\n\u3000\x85", max_size=9),
        strategies.sampled_from(
            ["", " ", "a red dog", "the red cat", "日本語"]
        ),
    ),
    min_size=1,
    max_size=5,
)


@hypothesis.settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
@hypothesis.given(TEXTS)
def test_chrf_is_that_of_sacrebleu(texts):
    chrf = metrics.CHRF()
    expected = [
        [chrf.sentence_score(one, [other]).score for other in texts]
        for one in texts
    ]
    found = minimum_risk.chrf(tf.constant(texts))
    np.testing.assert_allclose(100 * found, expected, atol=1e-9)
    chosen = minimum_risk.chosen(
        tf.constant([[*texts, "a red dog"]]),
        tf.constant([[True] * len(texts) + [False]]),
    )
    (best,) = evaluation.minimum_bayes_risk([texts])
    gains = dict(zip(texts, np.sum(expected, axis=1), strict=True))
    found = chosen.numpy()[0].decode()
    assert gains[found] == pytest.approx(gains[best], abs=1e-6)


def test_a_row_without_texts_has_none():
    texts = tf.constant([["a", "b"], ["b", "a"], ["a", "a"]])
    is_there = tf.constant([[False, False], [True, True], [False, True]])
    found = minimum_risk.chosen(texts, is_there)
    assert found.numpy().tolist() == [b"", b"b", b"a"]


def test_no_tensor_has_all_n_grams_of_all_pairs(monkeypatch):
    sizes, minimum = [], tf.minimum

    def measured(*both):
        sizes.append(minimum(*both).shape.num_elements())
        return minimum(*both)

    monkeypatch.setattr(tf, "minimum", measured)
    texts = ["abcdefgh", "ijklmnop", "qrstuvwx", "yz123456", "78900000"]
    minimum_risk.chrf(tf.constant(texts))
    assert max(sizes) <= 5 * 5 * 8  # A row for each text, at most.


@pytest.mark.slow
def test_a_savedmodel_chooses_as_python_does(random_translator, tmp_path):
    plain = random_translator("transformer")
    graph = plain.graph
    for search in ({"num_beams": 3}, {"num_beams": 4, "temperature": 1.0}):
        translate = Translator(
            plain.model,
            graph.source_tokenizer,
            graph.target_tokenizer,
            minimum_risk=True,
            max_target_offset=6,
            **search,
        )
        texts = ["one", "two three", "", "nine nine two four"]
        expected = evaluation.minimum_bayes_risk(
            [[text for text, _ in row] for row in translate.n_best(texts)]
        )
        assert translate.minimum_risk(texts) == expected
    loaded = loading.load(translate.export(tmp_path / "risk"))
    assert loaded.minimum_risk(texts) == expected
    assert loaded.kind.search["temperature"] == 1.0
    with pytest.raises(ValueError, match="minimum_risk=True"):
        plain.minimum_risk(texts)
    with pytest.raises(ValueError, match="num_beams of at least 2"):
        Translator(
            plain.model,
            graph.source_tokenizer,
            num_beams=1,
            minimum_risk=True,
        )
