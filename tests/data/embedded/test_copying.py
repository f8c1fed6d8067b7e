"""Copying: short texts for training, longer ones to be tried."""

import collections

import pytest

from keras_attention import config
from keras_attention.data import corpora
from keras_attention.data.embedded import copying


@pytest.fixture(scope="module")
def splits():
    return copying.generate()


def test_each_target_is_its_source(splits):
    for pairs in splits.values():
        for source, target in pairs:
            assert source == target
            assert set(source) <= set("abcdefgh")


def test_lengths_and_sizes(splits):
    assert {split: len(pairs) for split, pairs in splits.items()} == {
        "train": 40_000,
        "validation": 500,
        "test": 500,
        "test_10": 500,
        "test_40": 500,
    }
    lengths = {"validation": 10, "test": 20, "test_10": 10, "test_40": 40}
    for split, length in lengths.items():
        assert {len(text) for text, _ in splits[split]} == {length}
    counts = collections.Counter(len(text) for text, _ in splits["train"])
    assert sorted(counts) == list(range(1, 11))
    # One of ten lengths: 4,000, and five standard deviations of 60.
    assert all(abs(count - 4000) < 300 for count in counts.values())


def test_letters_are_drawn_alike(splits):
    """One of eight: 12.5 %, and five standard deviations of 0.33 %."""
    letters = collections.Counter(
        letter for text, _ in splits["test"] for letter in text
    )
    shares = [count / (500 * 20) for count in letters.values()]
    assert len(shares) == 8
    assert all(abs(share - 1 / 8) < 0.0165 for share in shares)


def test_no_held_out_text_is_in_another_split(splits):
    for name, pairs in splits.items():
        if name != "train":
            assert len(set(pairs)) == len(pairs)
        others = set().union(*(splits[o] for o in splits if o != name))
        assert others.isdisjoint(pairs)


def test_it_is_the_same_at_every_call(splits):
    assert copying.generate() == splits
    assert copying.generate(seed=1) != splits


def test_it_is_a_corpus():
    choices = config.resolve(config.make(model="neural_turing_machine"))
    assert choices.data.corpus == "copying"
    corpus = corpora.load("copying", choices.data.source, choices.data.target)
    first = next(corpus.splits["test"].as_numpy_iterator())
    assert first["source"] == first["target"]
    assert len(first["source"]) == 20
    assert corpus.sizes["train"] == len(corpus.splits["train"]) == 40_000
