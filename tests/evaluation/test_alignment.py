"""Links of tokens, their error rate, and IBM Model 1 against a plain loop."""

import collections

import numpy as np
import pytest

from keras_attention.evaluation import alignment

PAIRS = [
    ("das Haus", "the house"),
    ("das Buch", "the book"),
    ("ein Buch", "a book"),
    ("ein Haus ein Haus", "house a house"),
]


def test_pieces_stand_where_they_are_spelt():
    pieces = ["▁zwei", "und", "▁f", "<0xC3>", "<0xBC>", "nf"]
    spans = alignment.token_spans(pieces, "zweiund fünf")
    assert spans == [(0, 4), (4, 7), (7, 9), (9, 10), (9, 10), (10, 12)]
    text = "zweiund fünf"
    assert [text[a:b] for a, b in spans[:3]] == ["zwei", "und", " f"]
    assert alignment.token_spans(["a", "▁b"], "a b") == [(0, 1), (1, 3)]
    assert alignment.token_spans(["▁", "ab"], "ab") == [(0, 0), (0, 2)]


def test_pieces_of_another_text_are_refused():
    with pytest.raises(ValueError, match="do not spell the text"):
        alignment.token_spans(["▁ab"], "ac")


def test_links_of_characters_become_links_of_tokens():
    # "twenty-one" / "einundzwanzig": one/ein, -/und, twenty/zwanzig.
    links = [
        ([(0, 6)], [(6, 13)]),
        ([(6, 7)], [(3, 6)]),
        ([(7, 10)], [(0, 3)]),
    ]
    words = [(0, 6), (6, 7), (7, 10)]
    sure, possible = alignment.token_links(links, words, [(0, 6), (6, 13)])
    assert sure == possible == {(0, 1), (1, 0), (2, 0)}
    # Two pieces on both sides: which is which, nobody knows.
    sure, possible = alignment.token_links(
        links[:1], [(0, 3), (3, 6)], [(6, 10), (10, 13)]
    )
    assert sure == set()
    assert possible == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_error_rate_by_hand():
    sure, possible = {(0, 0), (1, 1)}, {(0, 0), (1, 1), (2, 1)}
    rate = alignment.alignment_error_rate
    assert rate([([0, 1], sure, possible)]) == 0
    # A = {(0, 0), (2, 1)}: both possible, one sure.
    assert rate([([0, 2], sure, possible)]) == 1 - (1 + 2) / (2 + 2)
    # A = {(1, 0)}, as the second token has no link.
    assert rate([([1, alignment.NULL], sure, possible)]) == 1
    # Nothing is asked of a target token that comes from nothing.
    assert rate([([0, 1, 0], sure, possible)]) == 0
    # Counts are summed over sentences: 1 - (2 + 2 + 0 + 0) / (2 + 2 + 1 + 1).
    second = ([1], {(0, 0)}, {(0, 0)})
    assert rate([([0, 1], sure, possible), second]) == pytest.approx(1 / 3)


def test_attention_is_greatest_somewhere():
    weights = np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3]])
    assert alignment.best_links(weights) == [1, 0]
    nowhere = np.zeros((1, 3))
    assert alignment.best_links(nowhere) == [alignment.NULL]


def test_nothing_can_be_better_than_true_links():
    sure, possible = {(0, 1), (2, 0)}, {(0, 1), (1, 1), (2, 0), (1, 2)}
    assert alignment.true_links(4, sure, possible) == [2, 0, 1, alignment.NULL]
    # One token says what three say: one link of three.
    three = {(0, 0), (1, 0), (2, 0)}
    best = alignment.true_links(1, three, three)
    assert alignment.alignment_error_rate([(best, three, three)]) == 0.5


def test_a_rate_where_nothing_is_sure_and_nothing_was_found():
    assert alignment.alignment_error_rate([([0], set(), set())]) == 1


def as_ids(pairs):
    ids = collections.defaultdict(lambda: len(ids))
    return [
        tuple([ids[word] for word in text.split()] for text in pair)
        for pair in pairs
    ]


def model_1(pairs, iterations):
    """Brown et al. 1993, section 4.1, word by word; None is the empty word."""
    t = collections.defaultdict(lambda: 1.0)
    for _ in range(iterations):
        counts = collections.defaultdict(float)
        totals = collections.defaultdict(float)
        for sources, targets in pairs:
            for f in targets:
                total = sum(t[e, f] for e in [None, *sources])
                for e in [None, *sources]:
                    counts[e, f] += t[e, f] / total
                    totals[e] += t[e, f] / total
        t = {(e, f): count / totals[e] for (e, f), count in counts.items()}
    best = []
    for sources, targets in pairs:
        words = [None, *sources]
        best.append(
            [
                max(range(len(words)), key=lambda i: t[words[i], f]) - 1
                for f in targets
            ]
        )
    return best


def test_model_1_equals_the_loop():
    rng = np.random.default_rng(3)
    pairs = as_ids(PAIRS) + [
        (rng.integers(9, size=m).tolist(), rng.integers(9, size=n).tolist())
        for m, n in rng.integers(1, 6, size=(40, 2))
    ]
    for iterations in (1, 3, 10):
        found = alignment.ibm_model_1(pairs, iterations)
        assert found == model_1(pairs, iterations)


def test_model_1_of_empty_sentences():
    assert alignment.ibm_model_1([([], [1, 2]), ([1], []), ([3], [4])]) == [
        [alignment.NULL] * 2,
        [],
        [0],
    ]
    assert alignment.ibm_model_1([]) == []


def test_model_1_finds_the_words():
    found = alignment.ibm_model_1(as_ids(PAIRS), iterations=20)
    assert found[:3] == [[0, 1], [0, 1], [0, 1]]
    assert found[3][1] in (0, 2)  # a: one of the two "ein"
