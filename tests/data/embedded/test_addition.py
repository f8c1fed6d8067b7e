"""Binary addition: the texts mean what Python adds."""

import collections

import pytest

from keras_attention.data import corpora
from keras_attention.data.embedded import addition


def number(bits):
    """Horner's rule, from the highest bit, which stands last."""
    value = 0
    for bit in reversed(bits):
        value = 2 * value + int(bit)
    return value


@pytest.fixture(scope="module")
def splits():
    return addition.generate()


def test_a_pair_by_hand():
    assert addition.pair(11, 6, 4) == ("1101+0110", "10001")


def test_every_sum_is_right(splits):
    for pairs in splits.values():
        for source, target in pairs:
            first, second = source.split("+")
            assert len(first) == len(second) == len(target) - 1
            assert number(first) + number(second) == number(target)


def test_lengths_and_sizes(splits):
    assert {split: len(pairs) for split, pairs in splits.items()} == {
        "train": 40_000,
        "validation": 500,
        "test": 500,
        "test_20": 500,
        "test_40": 500,
    }
    for split, num_bits in addition.LENGTHS.items():
        assert {len(target) - 1 for _, target in splits[split]} == {num_bits}
    counts = collections.Counter(len(t) - 1 for _, t in splits["train"])
    assert sorted(counts) == list(range(1, 11))
    # One of ten lengths: 4,000, and five standard deviations of 60.
    assert all(abs(count - 4000) < 300 for count in counts.values())


def test_no_sum_is_in_two_splits(splits):
    for name, pairs in splits.items():
        if name != "train":
            assert len(set(pairs)) == len(pairs)
        others = set().union(*(splits[o] for o in splits if o != name))
        assert others.isdisjoint(pairs)


def longest_carry(source):
    """The most places in a row that a carry passes through."""
    longest = run = carry = 0
    for a, b in zip(*source.split("+"), strict=True):
        run = run + 1 if a != b and carry else 0
        carry = (int(a) + int(b) + carry) // 2
        longest = max(longest, run)
    return longest


def test_the_longest_carry_by_hand():
    assert longest_carry("1100+1010") == 2
    assert longest_carry("1111+1000") == 3
    assert longest_carry("1111+0000") == 0


def test_carries_run_far_in_training(splits):
    """Five places or more: twice as often as among fair coins."""

    def share(pairs):
        runs = [longest_carry(s) for s, t in pairs if len(t) == 11]
        return sum(run >= 5 for run in runs) / len(runs)

    assert share(splits["train"]) > 2 * share(splits["test"]) > 0


def test_it_is_the_same_at_every_call(splits):
    assert addition.generate() == splits
    assert addition.generate(seed=1) != splits


def test_it_is_a_corpus():
    corpus = corpora.load("addition", "terms", "sum")
    first = next(corpus.splits["test_20"].as_numpy_iterator())
    source, target = first["source"].decode(), first["target"].decode()
    assert (source, target) in addition.generate()["test_20"]
    assert corpus.sizes["train"] == 40_000
    assert len(corpus.splits["train"]) == 40_000
