"""Minimum Bayes risk against sums of sacrebleu's chrF, called directly."""

import numpy as np
import pytest
import sacrebleu

from keras_attention import evaluation

ROWS = [
    ["the red dog", "a red cat", "the red cat", "the cat"],
    ["one two", "one two", "one two", "three four five", "three four"],
    ["same", "same"],
    [],
    [""],
]


def slowly(texts):
    gains = [
        sum(sacrebleu.sentence_chrf(text, [other]).score for other in texts)
        for text in texts
    ]
    return texts[int(np.argmax(gains))] if texts else ""


def test_the_answer_that_is_most_like_all_is_chosen():
    found = evaluation.minimum_bayes_risk(ROWS)
    assert found == [slowly(row) for row in ROWS]
    # It need not be the first, and how often a text was drawn counts.
    assert found[0] != ROWS[0][0]
    once = evaluation.minimum_bayes_risk([ROWS[1][2:]])
    assert found[1] == "one two" and once == [slowly(ROWS[1][2:])]
    assert once != [found[1]]


def test_a_text_is_no_row():
    with pytest.raises(ValueError, match="Put the candidates"):
        evaluation.minimum_bayes_risk(["one two"])
