"""Greedy search against a loop, and what all searches keep."""

import numpy as np
import pytest

from keras_attention import decoding
from keras_attention.tokens import END, PAD, START, UNK

CONTROL = (PAD, UNK, START)


@pytest.mark.parametrize("alpha, beta", [(0.0, 0.0), (0.6, 0.0), (1.0, 0.3)])
def test_greedy_takes_the_best_token_at_each_step(
    draw_chain, check_hypothesis, alpha, beta
):
    chain = draw_chain(0, [4, 1, 7, 3] * 5, vocabulary_size=6)
    result = decoding.greedy_search(**chain.arguments(), alpha=alpha, beta=beta)
    for row, limit in enumerate(chain.max_lengths):
        ids = [START, START]
        while ids[-1] != END:
            log_probs = chain.log_probs[row, ids[-2], ids[-1]]
            at_limit = len(ids) - 2 == limit - 1
            ids.append(END if at_limit else int(np.argmax(log_probs)))
        check_hypothesis(result, row, 0, chain, ids[2:], alpha, beta)


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"no_repeat_ngram_size": 1},
        {"forbidden_ids": CONTROL},
        {"min_lengths": 4, "prefix_ids": [[4, 0], [5, 4], [0, 0], [4, 5]]},
    ],
)
def test_greedy_needs_no_score(draw_chain, rules):
    arguments = draw_chain(1, [6, 1, 7, 5], vocabulary_size=6).arguments()
    scored = decoding.greedy_search(**arguments, **rules)
    result = decoding.greedy_search(
        **arguments, **rules, alpha=0.6, beta=0.2, is_scored=False
    )
    np.testing.assert_array_equal(result.ids, scored.ids)
    np.testing.assert_array_equal(result.lengths, scored.lengths)
    assert not np.any(result.log_probability) and not np.any(result.score)
    assert result.attention_weights.shape == (4, 1, 7, 0)


def test_limits_hold_for_each_row(draw_chain):
    chain = draw_chain(0, [1, 2, 5, 3])
    chain.logits[..., END] = -20.0  # nobody would end by choice
    for search in (
        decoding.greedy_search(**chain.arguments()),
        decoding.sampling_search(**chain.arguments(), seed=1),
    ):
        assert search.lengths[:, 0].numpy().tolist() == [1, 2, 5, 3]
        for row, length in enumerate([1, 2, 5, 3]):
            assert search.ids[row, 0, length - 1] == END
            assert END not in search.ids[row, 0, : length - 1]
            assert not search.ids[row, 0, length:].numpy().any()


def test_no_rows_give_no_rows(draw_chain, search):
    result = search(**draw_chain(0, []).arguments())
    num_answers = result.ids.shape[1]
    assert result.ids.shape == (0, num_answers, 1)
    assert result.lengths.shape == result.score.shape == (0, num_answers)
    assert result.attention_weights.shape == (0, num_answers, 1, 3)


def test_forbidden_ids_are_never_produced(draw_chain):
    chain = draw_chain(3, [9] * 50, vocabulary_size=6)
    chain.logits[..., list(CONTROL)] += 9.0  # they would be the favourites
    # High temperatures bring the forbidden nearer to the rest.
    for result in (
        decoding.greedy_search(**chain.arguments(), forbidden_ids=CONTROL),
        decoding.sampling_search(
            **chain.arguments(), seed=0, forbidden_ids=CONTROL, temperature=50.0
        ),
    ):
        for ids, length in zip(
            result.ids[:, 0].numpy(), result.lengths[:, 0].numpy(), strict=True
        ):
            assert not set(ids[:length]) & set(CONTROL)


def test_other_control_ids(drawn_graph):
    chain = drawn_graph({4: {5: 0.9}, 5: {1: 0.9}}, 6, limit=4)
    result = decoding.greedy_search(
        **chain.arguments(), start_id=4, end_id=1, pad_id=3
    )
    assert result.ids.numpy().tolist() == [[[5, 1, 3, 3]]]


def test_one_limit_for_all_rows_is_refused(draw_chain, search):
    arguments = {**draw_chain(0, [4, 4]).arguments(), "max_lengths": 4}
    with pytest.raises(ValueError, match="one limit for each row"):
        search(**arguments)
