"""Answers that hold given terms, against enumeration."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import decoding
from keras_attention.tokens import END

LIMITS = [5, 5, 4, 2, 5]
TERMS = [
    [(1, 2)],
    [(2, 2), (1,), (2, 1)],  # They share tokens: 2 2 1 holds all.
    [],
    [(1, 2)],  # There is no room for it and for END.
    [(1, 1, 2), (1, 2)],
]
TERM_IDS = np.zeros((5, 3, 3), "int32")
for _row, _terms in enumerate(TERMS):
    for _place, _term in enumerate(_terms):
        TERM_IDS[_row, _place, : len(_term)] = _term


def holds(ids, term):
    size = len(term)
    return any(ids[i : i + size] == term for i in range(len(ids)))


def with_terms(hypotheses, row):
    return [ids for ids in hypotheses if all(holds(ids, t) for t in TERMS[row])]


@pytest.mark.parametrize("alpha, beta", [(0.0, 0.0), (0.6, 0.2)])
@pytest.mark.parametrize("size", [0, 2])
def test_a_beam_as_wide_as_the_space_is_exhaustive(
    draw_chain, check_hypothesis, alpha, beta, size
):
    chain = draw_chain(11, LIMITS)
    result = decoding.constrained_beam_search(
        **chain.arguments(),
        num_beams=130,
        term_ids=TERM_IDS,
        n_best=125,
        alpha=alpha,
        beta=beta,
        no_repeat_ngram_size=size,
    )
    counts = []
    for row in range(len(LIMITS)):
        best = chain.all_hypotheses(row, alpha, beta, size=size)
        best = with_terms(best, row)
        counts.append(len(best))
        left = set(best)
        for rank, ids in enumerate(best):
            # Two texts may have the same steps in another order.
            length = int(result.lengths[row, rank])
            found = tuple(result.ids[row, rank, :length].numpy().tolist())
            left.remove(found)
            check_hypothesis(result, row, rank, chain, found, alpha, beta)
            scores = [
                chain.score(row, one, alpha, beta) for one in (found, ids)
            ]
            assert scores[0] == pytest.approx(scores[1], rel=1e-5)
        assert not result.lengths[row, len(best) :].numpy().any()
    # Without blocking, 1 2 is in 1 text of two words, in 6 of three and in
    # 26 of four: 27 places, less 1 2 1 2.
    if not size:
        assert counts[0] == 33 and counts[2:4] == [40, 0]


@pytest.mark.parametrize("num_beams", [2, 4, 8])
def test_a_narrow_beam_holds_the_terms_too(
    draw_chain, check_hypothesis, num_beams
):
    """The terms are improbable: a beam search does not write them."""
    chain = draw_chain(7, LIMITS, vocabulary_size=6)
    chain.logits[..., [1, 2]] -= 9.0
    chain = type(chain)(
        chain.logits, chain.weights, chain.source_mask, chain.max_lengths
    )
    choices = {"num_beams": num_beams, "alpha": 0.6}
    free = decoding.beam_search(**chain.arguments(), **choices)
    result = decoding.constrained_beam_search(
        **chain.arguments(), **choices, term_ids=TERM_IDS
    )
    for row in (0, 1, 4):
        length = int(result.lengths[row, 0])
        ids = tuple(result.ids[row, 0, :length].numpy().tolist())
        assert with_terms([ids], row)
        check_hypothesis(result, row, 0, chain, ids, 0.6)
        unbound = tuple(free.ids[row, 0].numpy().tolist())
        assert not with_terms([unbound], row)
    # A row without terms is a beam search; one without room has no answer.
    for ours, theirs in zip(result, free, strict=True):
        np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-5)
    assert int(result.lengths[3, 0]) == 0


def test_a_narrower_row_is_the_search_of_its_width(draw_chain):
    """A wider beam offers more tokens of each hypothesis: not to this row."""
    arguments = draw_chain(0, [5] * 40, vocabulary_size=7).arguments()
    terms = np.tile(TERM_IDS, (8, 1, 1))
    arguments |= {"term_ids": terms, "alpha": 0.6}
    for width in (1, 2, 3):
        alone = decoding.constrained_beam_search(
            **arguments, num_beams=width, n_best=width
        )
        among = decoding.constrained_beam_search(
            **arguments, num_beams=6, n_best=6, widths=np.full(40, width)
        )
        np.testing.assert_array_equal(alone.lengths, among.lengths[:, :width])
        np.testing.assert_allclose(
            np.where(alone.lengths, alone.score, 0),
            np.where(alone.lengths, among.score[:, :width], 0),
            rtol=1e-4,
        )


def test_a_prefix_may_hold_a_term(draw_chain, check_hypothesis):
    chain = draw_chain(3, [5])
    result = decoding.constrained_beam_search(
        **chain.arguments(),
        num_beams=60,
        term_ids=np.array([[[1, 2]]]),
        prefix_ids=np.array([[2, 1]]),
        n_best=20,
    )
    best = chain.all_hypotheses(0, prefix=(2, 1))
    best = [ids for ids in best if holds(ids, (1, 2))]
    # 2 1 2, and 2 1 2 with one more, and 2 1 1 2.
    assert len(best) == 5
    for rank, ids in enumerate(best):
        check_hypothesis(result, 0, rank, chain, ids, num_given=2)
    assert not result.lengths[0, 5:].numpy().any()
    assert all(ids[-1] == END for ids in best)


def test_terms_of_another_rank_are_refused(draw_chain):
    with pytest.raises(ValueError, match="term_ids"):
        decoding.constrained_beam_search(
            **draw_chain(0, [3]).arguments(), num_beams=2, term_ids=[[1, 2]]
        )


def test_a_graph_need_not_know_how_many_terms_there_are(draw_chain):
    chain = draw_chain(7, LIMITS)
    arguments = chain.arguments()
    choices = {"num_beams": 4, "n_best": 2, "prefix_ids": np.ones((5, 1))}
    eager = decoding.constrained_beam_search(
        **arguments, **choices, term_ids=TERM_IDS
    )
    step = arguments.pop("step")
    specs = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec([None] * leaf.shape.rank, leaf.dtype),
        {**arguments, "term_ids": tf.constant(TERM_IDS)},
    )
    # The step has to know the vocabulary.
    logits = arguments["memory"]["logits"]
    specs["memory"]["logits"] = tf.TensorSpec([None, *logits.shape[1:]])

    def search(given):
        return decoding.constrained_beam_search(step, **given, **choices)

    in_graph = tf.function(search, input_signature=[specs], autograph=False)
    found = in_graph({**arguments, "term_ids": TERM_IDS})
    for ours, theirs in zip(found, eager, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
