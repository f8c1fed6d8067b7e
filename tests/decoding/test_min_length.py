"""Answers of at least so many tokens, against enumeration and slow searches."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import decoding
from keras_attention.tokens import END, START

LIMITS = [4, 2, 4, 4]
# One number, or one for each row. A row's limit goes before it.
LEAST = [3, tf.constant([1, 3, 4, 2])]


def least_of(min_lengths, row):
    rows = np.broadcast_to(np.array(min_lengths), (len(LIMITS),))
    return min(rows[row], LIMITS[row])


@pytest.mark.parametrize("min_lengths", LEAST, ids=["one", "rows"])
@pytest.mark.parametrize("alpha, beta", [(0.0, 0.0), (0.6, 0.2)])
def test_a_beam_as_wide_as_the_space_is_exhaustive(
    draw_chain, check_hypothesis, min_lengths, alpha, beta
):
    chain = draw_chain(11, LIMITS)
    result = decoding.beam_search(
        **chain.arguments(),
        num_beams=60,
        n_best=45,
        alpha=alpha,
        beta=beta,
        min_lengths=min_lengths,
    )
    for row in range(len(LIMITS)):
        least = least_of(min_lengths, row)
        best = chain.all_hypotheses(row, alpha, beta)
        best = [ids for ids in best if len(ids) >= least]
        # Three words before END: 27 of 4 tokens, 9 of 3, 3 of 2.
        lengths = range(least, LIMITS[row] + 1)
        assert len(best) == sum(3 ** (n - 1) for n in lengths)
        for rank, ids in enumerate(best):
            check_hypothesis(result, row, rank, chain, ids, alpha, beta)
        assert not result.lengths[row, len(best) :].numpy().any()


def follow_greedily(chain, row, least):
    ids = [START, START]
    while ids[-1] != END:
        log_probs = chain.log_probs[row, ids[-2], ids[-1]].copy()
        length = len(ids) - 1
        if length < least:
            log_probs[END] = -np.inf
        at_limit = length == chain.max_lengths[row]
        ids.append(END if at_limit else int(np.argmax(log_probs)))
    return tuple(ids[2:])


@pytest.mark.parametrize("min_lengths", LEAST, ids=["one", "rows"])
def test_greedy_search_and_a_beam_of_one(
    draw_chain, check_hypothesis, min_lengths
):
    chain = draw_chain(0, LIMITS * 5)
    if min_lengths is not LEAST[0]:
        min_lengths = tf.tile(min_lengths, [5])
    choices = {"min_lengths": min_lengths, "alpha": 0.6}
    for result in (
        decoding.greedy_search(**chain.arguments(), **choices),
        decoding.beam_search(**chain.arguments(), **choices, num_beams=1),
    ):
        for row, limit in enumerate(LIMITS * 5):
            least = min(np.broadcast_to(min_lengths, [20])[row], limit)
            ids = follow_greedily(chain, row, least)
            check_hypothesis(result, row, 0, chain, ids, 0.6)


def test_what_is_drawn_is_no_shorter(draw_chain):
    chain = draw_chain(3, LIMITS * 50)
    rows = tf.tile(LEAST[1], [50])
    free, result = (
        decoding.sampling_search(**chain.arguments(), seed=1, min_lengths=least)
        for least in (None, rows)
    )
    least = np.minimum(rows, chain.max_lengths)
    assert (free.lengths[:, 0].numpy() < least).any()
    assert (result.lengths[:, 0].numpy() >= least).all()


def test_a_row_that_can_only_end_may_end(draw_chain, search):
    chain = draw_chain(5, [8, 8])
    result = search(**chain.arguments(), no_repeat_ngram_size=1, min_lengths=7)
    # Of four tokens, three are words.
    assert result.lengths[:, 0].numpy().tolist() == [4, 4]


def test_a_prefix_counts(draw_chain, search):
    chain = draw_chain(5, [8, 8])
    result = search(
        **chain.arguments(),
        prefix_ids=np.array([[2, 1, 2, 1], [0, 0, 0, 0]]),
        min_lengths=5,
    )
    ids = result.ids[:, 0].numpy()
    assert ids[0, :4].tolist() == [2, 1, 2, 1]
    assert (result.lengths[:, 0].numpy() >= 5).all()


@pytest.mark.parametrize("wrong", [-1, [[1, 2]]])
def test_what_is_no_length_is_refused(draw_chain, search, wrong):
    with pytest.raises(ValueError, match="min_lengths"):
        search(**draw_chain(0, [3]).arguments(), min_lengths=wrong)
