"""The table of searches: its figures, and that every search of it exists."""

import pytest
import search_table

from keras_attention.config import search


def test_repeated_words_by_hand():
    # "a b c" comes twice in the first text, which is counted once.
    texts = ["a b c a b c d", "a b c", "", "a b"]
    assert search_table.repetition(texts) == pytest.approx(100 * 1 / 12)
    assert search_table.repetition(["x x x x x"]) == pytest.approx(100 * 2 / 5)


@pytest.mark.parametrize("name", search_table.WAYS)
def test_every_search_of_the_table_exists(name):
    choices = search_table.WAYS[name].choices
    whole = search.of(**choices).whole()
    assert whole.given.items() >= choices.items()
