"""Diverse beam search against a slow one, beam search and enumeration."""

import numpy as np
import pytest

from keras_attention import decoding
from keras_attention.tokens import END

LIMITS = [6, 1, 4, 9]


def slow_search(chain, row, num_beams, num_groups, diversity, alpha):
    """Algorithm 1 of Vijayakumar et al. 2018, one group after the other."""
    size = num_beams // num_groups
    live = [[()] for _ in range(num_groups)]
    finished = [[] for _ in range(num_groups)]
    for position in range(chain.max_lengths[row]):
        at_limit = position + 1 == chain.max_lengths[row]
        words = [END] if at_limit else range(chain.logits.shape[-1])
        taken = []
        for group in range(num_groups):
            candidates = [(*ids, word) for ids in live[group] for word in words]
            candidates.sort(
                key=lambda ids: (
                    diversity * taken.count(ids[-1])  # noqa: B023
                    - chain.follow(row, ids)[0]
                )
            )
            best = candidates[: size - len(finished[group])]
            taken += [ids[-1] for ids in best]
            finished[group] += [ids for ids in best if ids[-1] == END]
            live[group] = [ids for ids in best if ids[-1] != END]
    found = [ids for group in finished for ids in group]
    return sorted(found, key=lambda ids: -chain.score(row, ids, alpha))


@pytest.mark.parametrize(
    "num_beams, num_groups, diversity",
    [
        *[(2, 2, 0.7), (3, 1, 0.7), (6, 2, 0.7), (6, 2, 20.0)],
        *[(6, 3, 0.0), (6, 3, 0.7), (6, 3, 20.0)],
    ],
)
def test_groups_equal_a_slow_search(
    draw_chain, check_hypothesis, num_beams, num_groups, diversity
):
    chain = draw_chain(17, LIMITS * 2, vocabulary_size=5)
    result = decoding.diverse_beam_search(
        **chain.arguments(),
        num_beams=num_beams,
        num_groups=num_groups,
        diversity=diversity,
        n_best=num_beams,
        alpha=0.6,
    )
    for row in range(len(LIMITS) * 2):
        best = slow_search(chain, row, num_beams, num_groups, diversity, 0.6)
        for rank, ids in enumerate(best):
            check_hypothesis(result, row, rank, chain, ids, 0.6)
        assert not result.lengths[row, len(best) :].numpy().any()


def test_groups_as_wide_as_the_space_are_exhaustive(
    draw_chain, check_hypothesis
):
    chain = draw_chain(11, [4, 2])
    result = decoding.diverse_beam_search(
        **chain.arguments(), num_beams=120, num_groups=2, n_best=120
    )
    for row, num_hypotheses in enumerate([40, 4]):
        # Each group finds all of them.
        best = [ids for ids in chain.all_hypotheses(row) for _ in range(2)]
        assert len(best) == 2 * num_hypotheses
        for rank, ids in enumerate(best):
            check_hypothesis(result, row, rank, chain, ids)
        assert not result.lengths[row, len(best) :].numpy().any()


def test_one_group_is_beam_search(draw_chain):
    chain = draw_chain(5, LIMITS, vocabulary_size=6)
    choices = {"num_beams": 3, "n_best": 3, "min_lengths": 3}
    beam = decoding.beam_search(**chain.arguments(), **choices)
    groups = decoding.diverse_beam_search(
        **chain.arguments(), **choices, num_groups=1, diversity=3.0
    )
    for ours, theirs in zip(groups, beam, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_row_does_not_depend_on_the_others(draw_chain):
    chain = draw_chain(3, LIMITS, vocabulary_size=6)
    choices = {"num_beams": 4, "num_groups": 2, "no_repeat_ngram_size": 2}
    choices |= {"prefix_ids": np.array([[1], [0], [2], [0]])}
    together = decoding.diverse_beam_search(**chain.arguments(), **choices)
    for row in (0, 1):
        own = {**choices, "prefix_ids": choices["prefix_ids"][row : row + 1]}
        alone = decoding.diverse_beam_search(
            **chain.row(row).arguments(), **own
        )
        length = alone.ids.shape[2]
        np.testing.assert_array_equal(
            together.ids[row, 0, :length], alone.ids[0, 0]
        )


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"num_groups": 0}, "multiple of num_groups"),
        ({"num_groups": 3}, "multiple of num_groups"),
        ({"num_groups": 2, "diversity": -1.0}, "diversity=-1.0"),
        ({"num_groups": 2, "n_best": 5}, "n_best=5"),
    ],
)
def test_what_makes_no_groups_is_refused(draw_chain, wrong, message):
    with pytest.raises(ValueError, match=message):
        decoding.diverse_beam_search(
            **draw_chain(0, [3]).arguments(), num_beams=4, **wrong
        )
