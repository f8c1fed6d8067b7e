"""The table of placeholders: its texts, and which way counts what."""

import random

import placeholders_table


def test_one_word_of_small_letters_is_made_a_url():
    texts = ["A brown dog.", "Two DOGS bark", "a Large, house"]
    found = placeholders_table.with_urls(texts, random.Random(2))
    rng = random.Random(2)
    numbers = [rng.choice("x") and rng.randrange(999) for _ in range(2)]
    urls = [f"https://x.org/p?id={number}" for number in numbers]
    assert found == [f"A {urls[0]} dog.", f"a Large, {urls[1]}"]


class Fake:
    """It copies the first text's stand-in, and forces the others so."""

    forced = ["a 71", "a 715", "a"]

    def __call__(self, texts):
        assert texts == ["a 71"] * 4
        return ["71 a", "a", "a 715", "a 71 71"]

    def constrained(self, texts, terms):
        assert terms == [["71"]] * 3
        return [(text, 0.0) for text in self.forced]


def test_each_text_counts_for_one_way():
    found = placeholders_table.measure(Fake(), ["a www.x.org"] * 4, "{}")
    assert found == [1, 1, 2, 1]
