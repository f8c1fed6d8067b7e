"""Beam search against greedy, exhaustive and slow searches."""

import math

import numpy as np
import pytest

from keras_attention import decoding
from keras_attention.tokens import END, PAD, START, UNK

PENALTIES = [(0.0, 0.0), (0.6, 0.0), (1.0, 0.0), (0.0, 0.4), (0.6, 0.2)]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_a_beam_of_one_is_greedy(draw_chain, alpha):
    chain = draw_chain(0, [4, 1, 7, 3] * 5, vocabulary_size=6)
    greedy = decoding.greedy_search(**chain.arguments(), alpha=alpha, beta=0.2)
    beam = decoding.beam_search(
        **chain.arguments(), num_beams=1, alpha=alpha, beta=0.2
    )
    np.testing.assert_array_equal(beam.ids, greedy.ids)
    np.testing.assert_array_equal(beam.lengths, greedy.lengths)
    for name in ("log_probability", "score", "attention_weights"):
        np.testing.assert_allclose(
            getattr(beam, name), getattr(greedy, name), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("alpha, beta", PENALTIES)
def test_a_beam_as_wide_as_the_space_is_exhaustive(
    draw_chain, check_hypothesis, alpha, beta
):
    chain = draw_chain(11, [4, 2, 1, 4])
    result = decoding.beam_search(
        **chain.arguments(), num_beams=4**4, n_best=45, alpha=alpha, beta=beta
    )
    for row, num_hypotheses in enumerate([40, 4, 1, 40]):
        best = chain.all_hypotheses(row, alpha, beta)
        # With END last: 1 + 3 + 9 + 27 of up to 4 tokens, 1 + 3 of up to 2.
        assert len(best) == num_hypotheses
        for rank, ids in enumerate(best):
            check_hypothesis(result, row, rank, chain, ids, alpha, beta)
        # There are no more: the other places are empty.
        assert not result.lengths[row, num_hypotheses:].numpy().any()
        assert not result.ids[row, num_hypotheses:].numpy().any()


@pytest.mark.parametrize("n_best", [1, 3])
@pytest.mark.parametrize("alpha, beta", PENALTIES)
def test_stopping_early_loses_nothing(
    draw_chain, check_hypothesis, n_best, alpha, beta
):
    # Most rows have their best hypotheses before the limit.
    chain = draw_chain(13, [4, 3] * 20)
    result = decoding.beam_search(
        **chain.arguments(),
        num_beams=40,
        n_best=n_best,
        alpha=alpha,
        beta=beta,
    )
    for row in range(40):
        best = chain.all_hypotheses(row, alpha, beta)[:n_best]
        for rank, ids in enumerate(best):
            check_hypothesis(result, row, rank, chain, ids, alpha, beta)


@pytest.mark.fast_for(3)
@pytest.mark.parametrize("num_beams", [2, 3, 5])
@pytest.mark.parametrize("alpha, beta", PENALTIES)
def test_narrow_beams_equal_a_slow_search(
    draw_chain, check_hypothesis, num_beams, alpha, beta
):
    chain = draw_chain(17, [6, 1, 4, 9] * 4, vocabulary_size=5)
    result = decoding.beam_search(
        **chain.arguments(),
        num_beams=num_beams,
        n_best=num_beams,
        alpha=alpha,
        beta=beta,
    )
    best_only = decoding.beam_search(
        **chain.arguments(), num_beams=num_beams, alpha=alpha, beta=beta
    )
    for row in range(16):
        best = chain.beam(row, num_beams, alpha, beta)
        for rank, ids in enumerate(best):
            check_hypothesis(result, row, rank, chain, ids, alpha, beta)
        check_hypothesis(best_only, row, 0, chain, best[0], alpha, beta)


A, B = 4, 5


def test_finished_hypotheses_are_frozen(drawn_graph, check_hypothesis):
    # At once END: 0.4. Over A: 0.35 * 0.9 = 0.315. A beam that goes on
    # after END would multiply the first by 0.5 at each step and rank it
    # second; one that gives its place away would lose it to A B and A A.
    chain = drawn_graph(
        {
            START: {END: 0.4, A: 0.35, B: 0.25},
            A: {END: 0.9, B: 0.05, A: 0.05},
            B: {A: 0.7, END: 0.3},
            END: {END: 0.5, A: 0.5},
        },
        vocabulary_size=6,
        limit=4,
    )
    result = decoding.beam_search(**chain.arguments(), num_beams=2, n_best=2)
    check_hypothesis(result, 0, 0, chain, (END,))
    check_hypothesis(result, 0, 1, chain, (A, END))
    np.testing.assert_allclose(
        result.log_probability[0], [math.log(0.4), math.log(0.315)], rtol=1e-4
    )


def test_a_beam_finds_what_greedy_misses(drawn_graph, check_hypothesis):
    # Greedy goes to A: 0.6 * 0.4. The better way is over B: 0.4 * 0.9.
    chain = drawn_graph(
        {
            START: {A: 0.6, B: 0.4},
            A: {END: 0.4, A: 0.3, B: 0.3},
            B: {END: 0.9, A: 0.1},
        },
        vocabulary_size=6,
        limit=3,
    )
    greedy = decoding.greedy_search(**chain.arguments())
    beam = decoding.beam_search(**chain.arguments(), num_beams=2)
    check_hypothesis(greedy, 0, 0, chain, (A, END))
    check_hypothesis(beam, 0, 0, chain, (B, END))


@pytest.mark.parametrize("alpha, length", [(0.0, 1), (1.0, 2), (3.0, 4)])
def test_the_length_penalty_prefers_the_longer(
    drawn_graph, check_hypothesis, alpha, length
):
    # END: log 0.3 = -1.20. A END: log(0.7 0.4) = -1.27, over 7/6 to the 1:
    # -1.09. A A A END: log(0.7 0.6 0.6 0.4) = -2.29, over 9/6 to the 3:
    # -0.68, while A END over 7/6 to the 3 is -0.80.
    chain = drawn_graph(
        {START: {END: 0.3, A: 0.7}, A: {A: 0.6, END: 0.4}},
        vocabulary_size=6,
        limit=4,
    )
    result = decoding.beam_search(
        **chain.arguments(), num_beams=50, alpha=alpha
    )
    best = (*[A] * (length - 1), END)
    check_hypothesis(result, 0, 0, chain, best, alpha)


def test_a_live_hypothesis_may_overtake_by_its_length(
    drawn_graph, check_hypothesis
):
    # END: log 0.5 = -0.69. A B C END: log 0.3 = -1.2, over (9 / 6)^3: -0.36.
    # A search that bounds a live one by its present length stops too early.
    c = 6
    chain = drawn_graph(
        {
            START: {END: 0.5, A: 0.3, B: 0.2},
            A: {B: 1.0},
            B: {c: 1.0},
            c: {END: 1.0},
        },
        vocabulary_size=7,
        limit=4,
    )
    result = decoding.beam_search(**chain.arguments(), num_beams=3, alpha=3.0)
    check_hypothesis(result, 0, 0, chain, (A, B, c, END), 3.0)


@pytest.mark.parametrize("n_best", [1, 2, 3])
def test_a_search_stops_where_nothing_can_win_any_more(drawn_graph, n_best):
    # END: 0.9. A END: 0.09. A A END: 0.009. Each beats all that is longer.
    chain = drawn_graph(
        {START: {END: 0.9, A: 0.1}, A: {END: 0.9, A: 0.1}}, 6, limit=60
    )
    calls = []

    def step(*arguments):
        calls.append(arguments)
        return chain.step(*arguments)

    decoding.beam_search(
        **{**chain.arguments(), "step": step}, num_beams=3, n_best=n_best
    )
    assert len(calls) == n_best


@pytest.mark.parametrize("penalty", [{"alpha": -0.1}, {"beta": -0.1}])
def test_a_penalty_is_no_reward(draw_chain, penalty):
    # A live hypothesis could become better than the bound that stops it.
    chain = draw_chain(0, [3])
    with pytest.raises(ValueError, match="Received: alpha="):
        decoding.greedy_search(**chain.arguments(), **penalty)
    with pytest.raises(ValueError, match="Received: alpha="):
        decoding.beam_search(**chain.arguments(), num_beams=2, **penalty)


def test_limits_hold_for_each_row(draw_chain):
    chain = draw_chain(0, [1, 2, 5, 3])
    chain.logits[..., END] = -20.0  # nobody would end by choice
    result = decoding.beam_search(**chain.arguments(), num_beams=3, n_best=3)
    for row, limit in enumerate([1, 2, 5, 3]):
        lengths = result.lengths[row].numpy()
        assert lengths[0] == limit
        assert (lengths <= limit).all()
        for rank, length in enumerate(lengths):
            ids = result.ids[row, rank].numpy().tolist()
            assert ids[:length].count(END) == (length > 0)
            assert length == 0 or ids[length - 1] == END
    # Of one token there is one hypothesis: END.
    assert result.lengths[0].numpy().tolist() == [1, 0, 0]


def test_rows_do_not_depend_on_each_other(draw_chain):
    limits = [4, 1, 9, 6, 2]
    chain = draw_chain(23, limits, vocabulary_size=6)
    settings = {"num_beams": 3, "n_best": 2, "alpha": 0.6, "beta": 0.1}
    together = decoding.beam_search(**chain.arguments(), **settings)
    for row, limit in list(enumerate(limits))[1:4]:
        result = decoding.beam_search(**chain.row(row).arguments(), **settings)
        np.testing.assert_array_equal(
            together.ids[row, :, :limit], result.ids[0]
        )
        assert not together.ids[row, :, limit:].numpy().any()
        np.testing.assert_allclose(
            together.score[row], result.score[0], rtol=1e-6
        )


def test_forbidden_ids_are_never_produced(draw_chain, check_hypothesis):
    chain = draw_chain(3, [4, 3], vocabulary_size=6)
    forbidden = (PAD, UNK, START)
    result = decoding.beam_search(
        **chain.arguments(), num_beams=20, n_best=15, forbidden_ids=forbidden
    )
    for row, num_hypotheses in enumerate([15, 7]):
        best = chain.all_hypotheses(row, forbidden=forbidden)
        assert len(best) == num_hypotheses  # 1 + 2 + 4 (+ 8)
        for rank, ids in enumerate(best):
            check_hypothesis(result, row, rank, chain, ids)
        assert not result.lengths[row, num_hypotheses:].numpy().any()


@pytest.mark.parametrize(
    "kwargs",
    [
        {"num_beams": 0},
        {"num_beams": 2, "n_best": 3},
        {"num_beams": 2, "n_best": 0},
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(draw_chain, kwargs):
    with pytest.raises(ValueError, match="Received: n_best="):
        decoding.beam_search(**draw_chain(0, [3]).arguments(), **kwargs)
