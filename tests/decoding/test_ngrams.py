"""No n-gram twice in an answer, against searches that look in plain Python."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import decoding
from keras_attention.decoding import answers, ngrams
from keras_attention.tokens import END, PAD, START, UNK

LIMITS = [9, 1, 6, 12]
# The last is longer than any answer.
SIZES = [1, 2, 3, 13]


def follow_greedily(chain, row, size):
    """The most probable token that writes no n-gram again, at each step."""
    ids = [START, START]
    while ids[-1] != END:
        written = ids[2:]
        log_probs = chain.log_probs[row, ids[-2], ids[-1]].copy()
        for token in range(len(log_probs)):
            hypothesis = [*written, token]
            last = hypothesis[-size:]
            for first in range(len(written) - size + 1):
                if token != END and written[first : first + size] == last:
                    log_probs[token] = -np.inf
        at_limit = len(written) == chain.max_lengths[row] - 1
        ids.append(END if at_limit else int(np.argmax(log_probs)))
    return ids[2:]


@pytest.mark.parametrize("size", SIZES)
def test_greedy_search_writes_no_ngram_again(
    draw_chain, check_hypothesis, size
):
    chain = draw_chain(0, LIMITS * 12, vocabulary_size=5)
    chain.logits[..., END] -= 3.0  # Long answers repeat themselves.
    chain = type(chain)(
        chain.logits, chain.weights, chain.source_mask, chain.max_lengths
    )
    result = decoding.greedy_search(
        **chain.arguments(), no_repeat_ngram_size=size, alpha=0.6, beta=0.1
    )
    for row in range(len(LIMITS) * 12):
        ids = follow_greedily(chain, row, size)
        check_hypothesis(result, row, 0, chain, ids, 0.6, 0.1)


@pytest.mark.parametrize("size", SIZES)
def test_a_beam_of_one_is_greedy(draw_chain, size):
    chain = draw_chain(5, LIMITS, vocabulary_size=5)
    chain.logits[..., END] -= 3.0
    choices = {"no_repeat_ngram_size": size, "alpha": 0.6}
    greedy = decoding.greedy_search(**chain.arguments(), **choices)
    beam = decoding.beam_search(**chain.arguments(), **choices, num_beams=1)
    np.testing.assert_array_equal(beam.ids, greedy.ids)
    np.testing.assert_allclose(beam.score, greedy.score, rtol=1e-5)


@pytest.mark.parametrize("size, num_hypotheses", [(1, 16), (2, 97), (3, 118)])
@pytest.mark.parametrize("alpha, beta", [(0.0, 0.0), (0.6, 0.2)])
def test_a_beam_as_wide_as_the_space_is_exhaustive(
    draw_chain, check_hypothesis, size, num_hypotheses, alpha, beta
):
    chain = draw_chain(11, [5, 2])
    result = decoding.beam_search(
        **chain.arguments(),
        num_beams=150,
        n_best=130,
        alpha=alpha,
        beta=beta,
        no_repeat_ngram_size=size,
    )
    # Of three words without a repetition: 1 + 3 + 6 + 6 with n = 1. With
    # n = 3, up to four words: 1 + 3 + 9 + 27 + 81, less AAAA, BBBB, CCCC.
    for row, expected in enumerate([num_hypotheses, 4]):
        best = chain.all_hypotheses(row, alpha, beta, size=size)
        assert len(best) == expected
        left = set(best)
        for rank, ids in enumerate(best):
            # START may be written here. So two texts may have the same steps
            # of the chain in another order, and the same score.
            length = int(result.lengths[row, rank])
            found = tuple(result.ids[row, rank, :length].numpy().tolist())
            left.remove(found)
            check_hypothesis(result, row, rank, chain, found, alpha, beta)
            scores = [
                chain.score(row, one, alpha, beta) for one in (found, ids)
            ]
            assert scores[0] == pytest.approx(scores[1], rel=1e-5)
        assert not result.lengths[row, expected:].numpy().any()


@pytest.mark.parametrize("num_beams", [2, 5])
@pytest.mark.parametrize("size", SIZES)
def test_narrow_beams_equal_a_slow_search(
    draw_chain, check_hypothesis, num_beams, size
):
    chain = draw_chain(17, LIMITS * 2, vocabulary_size=5)
    result = decoding.beam_search(
        **chain.arguments(),
        num_beams=num_beams,
        n_best=num_beams,
        alpha=0.6,
        no_repeat_ngram_size=size,
    )
    for row in range(len(LIMITS) * 2):
        best = chain.beam(row, num_beams, 0.6, size=size)
        for rank, ids in enumerate(best):
            check_hypothesis(result, row, rank, chain, ids, 0.6)
        assert not result.lengths[row, len(best) :].numpy().any()


@pytest.mark.parametrize("num_beams", [1, 4])
def test_a_prefix_counts_and_is_not_refused(
    draw_chain, check_hypothesis, num_beams
):
    # The first prefix writes a pair twice itself.
    prefixes = [(1, 2, 1, 2), (), (2, 2), (1, 2, 1)]
    prefix_ids = np.zeros((4, 4), "int32")
    for row, prefix in enumerate(prefixes):
        prefix_ids[row, : len(prefix)] = prefix
    chain = draw_chain(7, [9, 5, 8, 8])
    result = decoding.beam_search(
        **chain.arguments(),
        num_beams=num_beams,
        n_best=num_beams,
        prefix_ids=prefix_ids,
        no_repeat_ngram_size=2,
    )
    for row, prefix in enumerate(prefixes):
        best = chain.beam(row, num_beams, prefix=prefix, size=2)
        for rank, ids in enumerate(best):
            check_hypothesis(
                result, row, rank, chain, ids, num_given=len(prefix)
            )


def test_what_is_sampled_has_the_probabilities_of_what_is_left(draw_chain):
    num_rows = 20_000
    chain = draw_chain(3, [3])
    chain = type(chain)(
        np.repeat(chain.logits, num_rows, axis=0),
        np.repeat(chain.weights, num_rows, axis=0),
        np.repeat(chain.source_mask, num_rows, axis=0),
        [3] * num_rows,
    )
    result = decoding.sampling_search(
        **chain.arguments(), seed=1, no_repeat_ngram_size=1
    )
    ids = result.ids[:, 0].numpy()
    for first in (PAD, UNK, START):
        seconds = ids[ids[:, 0] == first, 1]
        expected = np.exp(chain.log_probs[0, START, first])
        expected[first] = 0
        expected /= expected.sum()
        counts = np.bincount(seconds, minlength=4)
        deviation = np.sqrt(len(seconds) * expected * (1 - expected))
        difference = np.abs(counts - len(seconds) * expected)
        assert (difference <= 5 * deviation).all()
    # The log-probability is the model's own.
    for row in range(20):
        length = int(result.lengths[row, 0])
        expected, _ = chain.follow(row, tuple(ids[row, :length]))
        np.testing.assert_allclose(
            result.log_probability[row, 0], expected, rtol=1e-5
        )


@pytest.mark.parametrize("size", [1, 2, 3])
def test_samples_hold_no_ngram_twice(draw_chain, size):
    chain = draw_chain(4, [12] * 50, vocabulary_size=6)
    chain.logits[..., END] = -9.0
    found = {
        again: decoding.sampling_search(
            **chain.arguments(),
            seed=2,
            forbidden_ids=(PAD, UNK, START),
            no_repeat_ngram_size=again,
        )
        for again in (0, size)
    }

    def num_repeated(result):
        return sum(
            len(grams) - len(set(grams))
            for ids, length in zip(
                result.ids[:, 0].numpy().tolist(),
                result.lengths[:, 0].numpy(),
                strict=True,
            )
            for grams in [
                [tuple(ids[i : i + size]) for i in range(length - size + 1)]
            ]
        )

    assert num_repeated(found[0]) > 50
    assert num_repeated(found[size]) == 0


def test_where_all_else_is_blocked_an_answer_ends(draw_chain, search):
    """Two words may be written, once each."""
    chain = draw_chain(4, [12] * 20, vocabulary_size=6)
    chain.logits[..., END] = -200.0  # Nobody would end by choice.
    result = search(
        **chain.arguments(),
        forbidden_ids=(PAD, UNK, START),
        no_repeat_ngram_size=1,
    )
    found = result.ids.numpy()
    assert not found[:, :, 3:].any()
    for ids, length in zip(
        found.reshape(-1, 12).tolist(),
        result.lengths.numpy().flatten(),
        strict=True,
    ):
        assert ids[length - 1] == END
        assert set(ids[:length]) <= {END, 4, 5}
        assert len(set(ids[:length])) == length
    # A beam may also find that it is best to end at once.
    assert result.lengths.numpy().max() == 3
    assert (result.log_probability.numpy() > -1000).all()


def test_a_certain_token_may_be_blocked(drawn_graph, check_hypothesis):
    """The others then keep their probability, although it is tiny."""
    a, b = 4, 5
    chain = drawn_graph(
        {START: {a: 1.0}, a: {a: 1e45, b: 2.0}, b: {END: 1.0}}, 6, limit=5
    )
    ids = (a, b, END)
    for result in (
        decoding.greedy_search(**chain.arguments(), no_repeat_ngram_size=1),
        decoding.beam_search(
            **chain.arguments(), num_beams=1, no_repeat_ngram_size=1
        ),
    ):
        check_hypothesis(result, 0, 0, chain, ids)


def test_rows_do_not_depend_on_each_other(draw_chain, search):
    chain = draw_chain(23, LIMITS)
    together = search(**chain.arguments(), no_repeat_ngram_size=2)
    rows = [0] if "seed" in getattr(search, "keywords", {}) else [0, 2]
    for row in rows:
        alone = search(**chain.row(row).arguments(), no_repeat_ngram_size=2)
        np.testing.assert_array_equal(
            together.ids[row, :, : LIMITS[row]], alone.ids[0]
        )
        np.testing.assert_allclose(
            together.score[row], alone.score[0], rtol=1e-6
        )


def nodes(search, arguments):
    """The operations of a search's graph, with those of its functions."""
    names = tf.function(functools.partial(search, **arguments), autograph=False)
    graph = names.get_concrete_function().graph.as_graph_def()
    functions = sorted(
        [node.op for node in function.node_def]
        for function in graph.library.function
    )
    return [node.op for node in graph.node], functions


def test_a_search_without_the_limit_has_no_operation_for_it(draw_chain, search):
    arguments = draw_chain(0, LIMITS).arguments()
    plain = nodes(search, arguments)
    off = nodes(search, {**arguments, "no_repeat_ngram_size": 0})
    on = nodes(search, {**arguments, "no_repeat_ngram_size": 3})
    assert plain == off
    assert "TensorScatterUpdate" not in str(off)
    assert "TensorScatterUpdate" in str(on)


@pytest.mark.parametrize("wrong", [-1, 1.5, "3", None])
def test_a_size_that_is_none_is_refused(draw_chain, search, wrong):
    with pytest.raises(ValueError, match="no_repeat_ngram_size="):
        search(**draw_chain(0, [3]).arguments(), no_repeat_ngram_size=wrong)


def test_runs_by_hand():
    """The docstring's example, two rows of unequal answers beside it."""
    rules = answers.Rules(np.array([6, 6]), START, END, PAD, (), None, 3)
    step, state, _ = ngrams.watched(lambda *a: ("logits", "s", "w"), "s", rules)
    for token_ids in ([START, START], [4, 7], [5, 7], [6, 7], [4, END]):
        logits, state, weights = step(tf.constant(token_ids), (), state)
        assert (logits, state[0], weights) == ("logits", "s", "w")
    _, state, _ = step(tf.constant([5, PAD]), (), state)
    np.testing.assert_array_equal(state[1].token_ids[0], [-2, 4, 5, 6, 4, 5])
    np.testing.assert_array_equal(state[1].runs[0], [0, 0, 0, 2, 0, 0])
    blocked = ngrams.blocked_ids(state, rules).numpy()
    assert blocked[0].tolist() == [END, END, END, 6, END, END]
