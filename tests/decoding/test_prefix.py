"""Answers that begin with given tokens, of another number in each row."""

import numpy as np
import pytest

from keras_attention import decoding
from keras_attention.tokens import END, PAD, START, UNK

PENALTIES = [(0.0, 0.0), (0.6, 0.0), (1.0, 0.3)]
LIMITS = [5, 3, 4, 6]
PREFIXES = [(2, 1), (), (1,), (2, 2, 1)]
PREFIX_IDS = np.array([[2, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [2, 2, 1, 0]])


def follow_greedily(chain, row, prefix):
    """The most probable token at each step, in plain Python."""
    ids = [START, START, *prefix]
    while ids[-1] != END:
        log_probs = chain.log_probs[row, ids[-2], ids[-1]]
        at_limit = len(ids) - 2 == chain.max_lengths[row] - 1
        ids.append(END if at_limit else int(np.argmax(log_probs)))
    return tuple(ids[2:])


@pytest.mark.parametrize("alpha, beta", PENALTIES)
def test_greedy_search_goes_on_after_the_prefix(
    draw_chain, check_hypothesis, alpha, beta
):
    chain = draw_chain(0, LIMITS * 5)
    result = decoding.greedy_search(
        **chain.arguments(),
        alpha=alpha,
        beta=beta,
        prefix_ids=np.tile(PREFIX_IDS, (5, 1)),
    )
    for row, prefix in enumerate(PREFIXES * 5):
        ids = follow_greedily(chain, row, prefix)
        check_hypothesis(result, row, 0, chain, ids, alpha, beta, len(prefix))


@pytest.mark.parametrize("alpha, beta", PENALTIES)
def test_a_wide_beam_finds_every_continuation(
    draw_chain, check_hypothesis, alpha, beta
):
    chain = draw_chain(11, LIMITS)
    result = decoding.beam_search(
        **chain.arguments(),
        num_beams=60,
        n_best=40,
        alpha=alpha,
        beta=beta,
        prefix_ids=PREFIX_IDS,
    )
    # 1 + 3 + 9 continuations where 3 tokens are left, END last.
    for row, num_hypotheses in enumerate([13, 13, 13, 13]):
        prefix = PREFIXES[row]
        best = chain.all_hypotheses(row, alpha, beta, prefix=prefix)
        assert len(best) == num_hypotheses
        for rank, ids in enumerate(best):
            check_hypothesis(
                result, row, rank, chain, ids, alpha, beta, len(prefix)
            )
        assert not result.lengths[row, num_hypotheses:].numpy().any()


@pytest.mark.parametrize("num_beams", [1, 3])
@pytest.mark.parametrize("alpha, beta", PENALTIES)
def test_narrow_beams_equal_a_slow_search(
    draw_chain, check_hypothesis, num_beams, alpha, beta
):
    chain = draw_chain(17, LIMITS * 4)
    result = decoding.beam_search(
        **chain.arguments(),
        num_beams=num_beams,
        n_best=num_beams,
        alpha=alpha,
        beta=beta,
        prefix_ids=np.tile(PREFIX_IDS, (4, 1)),
    )
    for row, prefix in enumerate(PREFIXES * 4):
        best = chain.beam(row, num_beams, alpha, beta, prefix)
        for rank, ids in enumerate(best):
            check_hypothesis(
                result, row, rank, chain, ids, alpha, beta, len(prefix)
            )


def test_sampling_draws_what_follows_the_prefix(draw_chain, check_hypothesis):
    num_rows = 20_000
    chain = draw_chain(3, [2])
    chain = type(chain)(
        np.repeat(chain.logits, num_rows, axis=0),
        np.repeat(chain.weights, num_rows, axis=0),
        np.repeat(chain.source_mask, num_rows, axis=0),
        [3] * num_rows,
    )
    result = decoding.sampling_search(
        **chain.arguments(), seed=1, prefix_ids=[[2]] * num_rows
    )
    ids = result.ids[:, 0].numpy()
    assert (ids[:, 0] == 2).all()
    for row in range(20):
        length = int(result.lengths[row, 0])
        check_hypothesis(result, row, 0, chain, ids[row, :length], num_given=1)
    expected = np.exp(chain.log_probs[0, START, 2])
    counts = np.bincount(ids[:, 1], minlength=4)
    deviation = np.sqrt(num_rows * expected * (1 - expected))
    assert (np.abs(counts - num_rows * expected) <= 5 * deviation).all()


def test_rows_do_not_depend_on_each_other(draw_chain, search):
    chain = draw_chain(23, LIMITS)
    together = search(**chain.arguments(), prefix_ids=PREFIX_IDS)
    # Row 1 has no prefix, and row 3 the longest.
    rows = [0] if "seed" in getattr(search, "keywords", {}) else [1, 3]
    for row in rows:
        limit, prefix = LIMITS[row], PREFIXES[row]
        alone = search(
            **chain.row(row).arguments(),
            prefix_ids=np.array([prefix], "int32").reshape(1, -1),
        )
        np.testing.assert_array_equal(
            together.ids[row, :, :limit], alone.ids[0]
        )
        np.testing.assert_allclose(
            together.score[row], alone.score[0], rtol=1e-6
        )


def test_an_empty_prefix_changes_nothing(draw_chain, search):
    chain = draw_chain(5, LIMITS)
    without = search(**chain.arguments())
    for width in (0, 2):
        prefix_ids = np.full((4, width), PAD)
        empty = search(**chain.arguments(), prefix_ids=prefix_ids)
        for ours, expected in zip(empty, without, strict=True):
            np.testing.assert_array_equal(ours, expected)


def test_a_prefix_may_hold_what_is_forbidden(draw_chain, search):
    chain = draw_chain(5, [4])
    result = search(
        **chain.arguments(), prefix_ids=[[UNK, START]], forbidden_ids=(UNK,)
    )
    assert result.ids[0, 0, :2].numpy().tolist() == [UNK, START]
    assert UNK not in result.ids[0, 0, 2:].numpy()


def test_a_prefix_that_leaves_no_room_is_cut(draw_chain, search):
    # The other row must not lend its room.
    chain = draw_chain(5, [3, 6])
    result = search(
        **chain.arguments(), prefix_ids=[[1, 2, 1, 2], [1, 2, 1, 2]]
    )
    assert result.ids[0, 0].numpy().tolist() == [1, 2, END, 0, 0, 0]
    assert result.ids[1, 0, :4].numpy().tolist() == [1, 2, 1, 2]
    expected = chain.follow(0, (1, 2, END), num_given=2)[0]
    np.testing.assert_allclose(
        result.log_probability[0, 0], expected, rtol=1e-5
    )
    assert (result.lengths[0].numpy() == [3, 0][: len(result.ids[0])]).all()


def test_a_prefix_with_an_end_is_the_whole_answer(draw_chain, search):
    chain = draw_chain(5, [9, 9])
    result = search(
        **chain.arguments(),
        prefix_ids=[[1, 2, 1, 2, 1, 2, 1, END], [1, END, 0, 0, 0, 0, 0, 0]],
    )
    assert result.lengths[:, 0].numpy().tolist() == [8, 2]
    assert result.ids[1, 0, :3].numpy().tolist() == [1, END, PAD]
    np.testing.assert_array_equal(result.score[:, 0], [0.0, 0.0])


def test_a_prefix_for_all_rows_is_refused(draw_chain, search):
    with pytest.raises(ValueError, match=r"Received: shape \(2,\)"):
        search(**draw_chain(0, LIMITS).arguments(), prefix_ids=[1, 2])
