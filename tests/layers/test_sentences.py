"""Sentences of a text, by hand."""

import numpy as np

from keras_attention import layers

# Two sentences, one that is blank, and one without its END; padding.
IDS = np.array([[5, 7, 9, 9, 4, 0], [9, 9, 5, 6, 6, 8], [0] * 6], "int32")


def test_a_sentence_ends_at_its_end_or_where_the_text_does():
    np.testing.assert_array_equal(
        np.array(layers.sentence_ends(IDS, end_id=9)).astype(int),
        [[0, 0, 1, 1, 1, 0], [1, 1, 0, 0, 0, 1], [0] * 6],
    )


def test_another_padding():
    ends = layers.sentence_ends(IDS[:1], end_id=9, padding_id=4)
    np.testing.assert_array_equal(
        np.array(ends).astype(int), [[0, 0, 1, 1, 0, 1]]
    )


def test_sentences_are_counted():
    ends = layers.sentence_ends(IDS, end_id=9)
    np.testing.assert_array_equal(
        layers.sentence_numbers(ends),
        [[0, 0, 0, 1, 2, 3], [0, 1, 2, 2, 2, 2], [0] * 6],
    )


def test_tokens_of_one_sentence():
    ends = layers.sentence_ends(IDS[:1], end_id=9)
    np.testing.assert_array_equal(
        np.array(layers.same_sentence(ends)).astype(int)[0],
        [
            [1, 1, 1, 0, 0, 0],
            [1, 1, 1, 0, 0, 0],
            [1, 1, 1, 0, 0, 0],
            [0, 0, 0, 1, 0, 0],
            [0, 0, 0, 0, 1, 0],
            [0, 0, 0, 0, 0, 1],
        ],
    )
