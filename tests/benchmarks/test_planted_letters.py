"""`benchmarks/planted_letters.py`: its texts, and what it measures."""

import numpy as np
import planted_letters

from keras_attention.tokens import END, PAD


def test_a_label_names_the_two_letters_of_a_text():
    texts, labels = planted_letters.draw(np.random.default_rng(5), 200)
    for words, label in zip(texts, labels, strict=True):
        (capital,) = [w for w in words if w in planted_letters.CAPITALS]
        (small,) = [w for w in words if w in planted_letters.SMALL]
        assert label == 16 * (ord(capital) - ord("A")) + ord(small) - ord("a")
        assert 30 <= len(words) <= 40
    ids = planted_letters.to_ids(texts)
    assert (np.sum(ids >= END + 1 + 30, axis=1) == 2).all()
    assert (np.sum(ids == END, axis=1) == 1).all()
    assert ids.max() < END + 1 + 62 and ids[:, -1].max() in (PAD, END)


def test_hops_find_both_letters_one_or_none():
    letter, number = END + 1 + 30, END + 1
    ids = np.array([[letter, number, letter, number, END]] * 4)
    places = [(0, 2), (2, 2), (0, 1), (3, 4)]
    weights = np.eye(5)[np.array(places)]

    class Model:
        def predict(self, inputs, **options):
            return np.eye(4)[[0, 1, 2, 2]]

        def attend(self, inputs):
            return None, weights

    found, shares = planted_letters.measure(Model(), ids, np.arange(4))
    np.testing.assert_array_equal(found, weights)
    is_right, both, none = shares
    assert is_right.tolist() == [True, True, True, False]
    # Both hops on one letter have found one.
    assert both.tolist() == [True, False, False, False]
    assert none.tolist() == [False, False, False, True]
