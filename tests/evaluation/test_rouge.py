"""ROUGE counted by hand and by a loop, and what is said without its package."""

import collections
import importlib.util

import pytest

from keras_attention import evaluation
from keras_attention.evaluation import rouge

needs_rouge = pytest.mark.skipif(
    importlib.util.find_spec("rouge_score") is None,
    reason="the extra `rouge` is not installed",
)
REFERENCES = ["the cat sat on the mat", "oil falls", "a b c d", "x y"]
HYPOTHESES = ["the the cat on a mat", "Oil FALLS!", "d c b a", "z"]


def f1(common, hypothesis, reference):
    """In percent, of numbers of what is common and of what there is."""
    return 100 * 2 * common / (hypothesis + reference) if common else 0.0


def shared(hypothesis, reference, size):
    """F1 of the n-grams that two lists of words share."""
    sides = [
        collections.Counter(
            zip(*(words[i:] for i in range(size)), strict=False)
        )
        for words in (hypothesis, reference)
    ]
    common = sum((sides[0] & sides[1]).values())
    return f1(common, *(sum(side.values()) for side in sides))


def longest(hypothesis, reference):
    """F1 of the longest common subsequence, by all ways to leave words out."""

    def length(a, b):
        if not a or not b:
            return 0
        if a[0] == b[0]:
            return 1 + length(a[1:], b[1:])
        return max(length(a[1:], b), length(a, b[1:]))

    common = length(hypothesis, reference)
    return f1(common, len(hypothesis), len(reference))


@needs_rouge
def test_scores_counted_by_hand():
    # 5 of 6 words, "the cat" of 5 pairs, "the cat on mat" of 6 words.
    scores = evaluation.rouge_scores(HYPOTHESES[:1], REFERENCES[:1])
    assert scores["rouge_1"]["score"] == pytest.approx(100 * 5 / 6)
    assert scores["rouge_2"]["score"] == pytest.approx(100 * 1 / 5)
    assert scores["rouge_l"]["score"] == pytest.approx(100 * 4 / 6)


@needs_rouge
def test_the_mean_of_pairs_equals_a_loop():
    scores = evaluation.rouge_scores(HYPOTHESES, REFERENCES)
    pairs = [
        (hypothesis.lower().rstrip("!").split(), reference.split())
        for hypothesis, reference in zip(HYPOTHESES, REFERENCES, strict=True)
    ]
    for name, values in {
        "rouge_1": [shared(*pair, 1) for pair in pairs],
        "rouge_2": [shared(*pair, 2) for pair in pairs],
        "rouge_l": [longest(*pair) for pair in pairs],
    }.items():
        mean = sum(values) / len(values)
        assert scores[name]["score"] == pytest.approx(mean), name
        assert scores[name]["signature"].startswith("F1|mean|stem:porter|")


@needs_rouge
def test_a_stem_is_a_word():
    scores = evaluation.rouge_scores(["markets falling"], ["market falls"])
    assert scores["rouge_2"]["score"] == 100


@needs_rouge
def test_an_empty_answer_has_nothing_right():
    scores = evaluation.rouge_scores(["", "oil falls"], ["oil", "oil falls"])
    assert scores["rouge_1"]["score"] == 50


@needs_rouge
@pytest.mark.parametrize(
    "hypotheses, message",
    [
        (["a"], "1 hypotheses, 2 references"),
        ("ab", "not one string"),
        ([1, "a"], "strings only"),
    ],
)
def test_what_cannot_be_scored_is_refused(hypotheses, message):
    with pytest.raises(ValueError, match=message):
        evaluation.rouge_scores(hypotheses, ["a", "b"])


def test_the_package_is_named_if_it_is_missing(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for check in (
        rouge.check_installed,
        lambda: evaluation.rouge_scores(["a"], ["a"]),
    ):
        with pytest.raises(ImportError, match=r"pip install rouge-score"):
            check()
