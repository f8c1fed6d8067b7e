"""The hidden Markov model, against the sum over all alignments."""

import itertools

import numpy as np
import pytest

from keras_attention.evaluation import alignment, hmm_alignment

SIZES = [(1, 1), (1, 3), (2, 3), (3, 2), (3, 4)]
EMPTY = 0.3


def alignments(emissions, jumps, empty):
    """Each alignment of one pair: its states and its probability.

    A state is a position and whether the word there writes; if not, the empty
    word does.
    """
    length, size = emissions.shape[0], emissions.shape[1] - 1
    states = list(itertools.product(range(size), (True, False)))
    for path in itertools.product(states, repeat=length):
        probability, before = 1.0, None
        for j, (place, writes) in enumerate(path):
            if before is None:
                probability *= 1 / size
                probability *= 1 - empty if writes else empty
            elif writes:
                room = [jumps[i - before + size - 1] for i in range(size)]
                probability *= (1 - empty) * room[place] / sum(room)
            else:
                probability *= empty * (place == before)
            probability *= emissions[j, 1 + place if writes else 0]
            before = place
        yield path, probability


def drawn(size, length, rows=3):
    rng = np.random.default_rng(size + 10 * length)
    return rng.random((rows, length, 1 + size)), rng.random(2 * size - 1) + 0.1


@pytest.mark.parametrize("size, length", SIZES)
def test_expectations_are_those_of_all_alignments(size, length):
    emissions, jumps = drawn(size, length)
    links, made = hmm_alignment._posteriors(emissions, jumps, EMPTY)
    expected_links = np.zeros(emissions.shape)
    expected_made = np.zeros(len(jumps))
    for row, of_pair in enumerate(emissions):
        paths = list(alignments(of_pair, jumps, EMPTY))
        total = sum(probability for _, probability in paths)
        for path, probability in paths:
            share = probability / total
            for j, (place, writes) in enumerate(path):
                expected_links[row, j, 1 + place if writes else 0] += share
            for (before, _), (place, writes) in itertools.pairwise(path):
                if writes:
                    expected_made[place - before + size - 1] += share
    np.testing.assert_allclose(links, expected_links, atol=1e-12)
    np.testing.assert_allclose(made, expected_made, atol=1e-12)


@pytest.mark.parametrize("size, length", SIZES)
def test_the_likeliest_alignment_is_the_best_of_all(size, length):
    emissions, jumps = drawn(size, length)
    found = hmm_alignment._likeliest(emissions, jumps, EMPTY)
    for of_pair, links in zip(emissions, found, strict=True):
        path, _ = max(
            alignments(of_pair, jumps, EMPTY), key=lambda pair: pair[1]
        )
        expected = [
            place if writes else alignment.NULL for place, writes in path
        ]
        assert links.tolist() == expected


def test_it_tells_equal_words_apart_by_their_order():
    """Model 1 cannot: to it, all positions are equal."""
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(200):
        words = rng.integers(0, 5, size=rng.integers(3, 8)).tolist()
        pairs.append((words, [word + 10 for word in words]))
    in_order = [list(range(len(source))) for source, _ in pairs]
    found = hmm_alignment.hmm_alignment(pairs)
    right = np.mean([a == b for a, b in zip(found, in_order, strict=True)])
    model_1 = alignment.ibm_model_1(pairs)
    of_model_1 = np.mean(
        [a == b for a, b in zip(model_1, in_order, strict=True)]
    )
    assert right == 1 and of_model_1 < 0.5


def test_sentences_without_tokens():
    pairs = [([], [1, 2]), ([1], []), ([3], [4]), ([3], [4])]
    found = hmm_alignment.hmm_alignment(pairs)
    assert found == [[alignment.NULL] * 2, [], [0], [0]]
    assert hmm_alignment.hmm_alignment([]) == []
