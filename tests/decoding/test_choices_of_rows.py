"""Choices of a search that each row has its own of, against enumeration."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import decoding
from keras_attention.decoding import penalties
from keras_attention.tokens import END, START

LIMITS = [4, 2, 4, 3, 4]
ALPHAS = np.array([0.0, 0.6, 1.0, 0.3, 0.6], "float32")
BETAS = np.array([0.0, 0.2, 0.0, 0.5, 0.1], "float32")
SIZES = np.array([0, 1, 2, 0, 1])
LEAST = np.array([0, 2, 3, 1, 2])
CHOICES = {
    "alpha": tf.constant(ALPHAS),
    "beta": tf.constant(BETAS),
    "no_repeat_ngram_size": tf.constant(SIZES),
}


def without_terms(**arguments):
    """A constrained search whose rows have no terms."""
    none = tf.zeros([len(LIMITS), 1, 1], tf.int32)
    return decoding.constrained_beam_search(**arguments, term_ids=none)


SEARCHES = [decoding.beam_search, without_terms]
each_search = pytest.mark.parametrize("search", SEARCHES)


@each_search
def test_a_beam_as_wide_as_the_space_is_exhaustive(
    draw_chain, check_hypothesis, search
):
    chain = draw_chain(11, LIMITS)
    result = search(
        **chain.arguments(),
        **CHOICES,
        min_lengths=tf.constant(LEAST),
        num_beams=60,
        n_best=45,
    )
    for row, (alpha, beta, size) in enumerate(
        zip(ALPHAS, BETAS, SIZES, strict=True)
    ):
        best = chain.all_hypotheses(row, alpha, beta, size=size)
        best = [ids for ids in best if len(ids) >= LEAST[row]]
        assert best
        for rank, ids in enumerate(best):
            check_hypothesis(result, row, rank, chain, ids, alpha, beta)
        assert not result.lengths[row, len(best) :].numpy().any()


@each_search
def test_a_row_may_have_fewer_beams(draw_chain, check_hypothesis, search):
    """It finds what a search of its width finds in plain Python."""
    widths = [1, 2, 5, 3, 4]
    for seed in range(3):
        chain = draw_chain(seed, LIMITS, vocabulary_size=6)
        result = search(
            **chain.arguments(),
            **CHOICES,
            num_beams=5,
            n_best=5,
            widths=tf.constant(widths),
        )
        for row, width in enumerate(widths):
            penalties_of_row = ALPHAS[row], BETAS[row]
            best = chain.beam(row, width, *penalties_of_row, size=SIZES[row])
            for rank, ids in enumerate(best):
                check_hypothesis(
                    result, row, rank, chain, ids, *penalties_of_row
                )
            assert not result.lengths[row, len(best) :].numpy().any()


def test_groups_have_the_penalties_of_their_rows(draw_chain):
    chain = draw_chain(3, LIMITS)
    choices = {"num_beams": 4, "num_groups": 2, "n_best": 4}
    together = decoding.diverse_beam_search(
        **chain.arguments(), **choices, **CHOICES
    )
    for row in range(len(LIMITS)):
        alone = decoding.diverse_beam_search(
            **chain.row(row).arguments(),
            **choices,
            alpha=float(ALPHAS[row]),
            beta=float(BETAS[row]),
            no_repeat_ngram_size=int(SIZES[row]),
        )
        np.testing.assert_allclose(
            together.score[row], alone.score[0], rtol=1e-5
        )


TEMPERATURES = [1.0, 0.5, 2.0, 1e-30, 1.5]
TOP_K = [2, 2, 0, 3, 4]
TOP_P = [1.0, 1.0, 0.7, 1.0, 0.9]
MIN_P = [0.0, 0.0, 0.0, 0.2, 0.05]


def drawn(chain, row, uniforms, least, size):
    """The tokens that some numbers draw, one after the other."""
    ids = [START, START]
    while ids[-1] != END:
        written = ids[2:]
        position = len(written)
        log_probs = chain.log_probs[row, ids[-2], ids[-1]].copy()
        for token in range(len(log_probs)):
            last = [*written, token][-size:] if size else []
            again = any(
                written[first : first + size] == last
                for first in range(len(written) - size + 1)
            )
            if size and again and token != END:
                log_probs[token] = -np.inf
        if position + 1 < least:
            log_probs[END] = -np.inf
        if position + 1 == chain.max_lengths[row]:
            log_probs[np.arange(len(log_probs)) != END] = -np.inf
        log_probs = (log_probs - log_probs.max()) / TEMPERATURES[row]
        shares = np.exp(log_probs) / np.exp(log_probs).sum()
        kept = np.zeros(len(shares), bool)
        total = 0.0
        for count, token in enumerate(np.argsort(-shares)):
            is_over = TOP_K[row] and count >= TOP_K[row]
            if is_over or total >= TOP_P[row]:
                break
            kept[token] = shares[token] >= MIN_P[row] * shares.max()
            total += shares[token]
        shares = np.where(kept, shares, 0.0)
        sums = np.cumsum(shares)
        ids.append(int(np.searchsorted(sums, uniforms[position] * sums[-1])))
    return ids[2:]


def test_each_row_is_drawn_by_its_own_choices(draw_chain):
    chain = draw_chain(5, LIMITS, vocabulary_size=6)
    samples = 40
    uniforms = np.random.default_rng(0).random((len(LIMITS) * samples, 4))
    choices = {
        "temperature": TEMPERATURES,
        "top_k": TOP_K,
        "top_p": TOP_P,
        "min_p": MIN_P,
        "no_repeat_ngram_size": SIZES,
        "min_lengths": LEAST,
    }
    result = decoding.sampling_search(
        **chain.arguments(),
        num_samples=samples,
        uniforms=tf.constant(uniforms, "float32"),
        **{name: tf.constant(rows) for name, rows in choices.items()},
    )
    for row in range(len(LIMITS)):
        found = [
            tuple(ids[:length])
            for ids, length in zip(
                result.ids[row].numpy().tolist(),
                result.lengths[row].numpy(),
                strict=True,
            )
        ]
        expected = [
            tuple(drawn(chain, row, numbers, LEAST[row], SIZES[row]))
            for numbers in uniforms[row * samples : (row + 1) * samples]
        ]
        # The most probable one comes first.
        assert sorted(found) == sorted(expected)
        assert row == 3 or len({*found}) > 1


def test_a_graph_need_not_know_how_many_rows_there_are(draw_chain):
    chain = draw_chain(7, LIMITS, vocabulary_size=5)
    arguments = chain.arguments()
    step = arguments.pop("step")
    terms = np.zeros((len(LIMITS), 1, 2), "int32")
    terms[2] = [[1, 2]]
    rows = {**CHOICES, "widths": [4, 1, 3, 4, 2], "term_ids": terms}
    rows = {name: tf.constant(value) for name, value in rows.items()}
    choices = {"num_beams": 4, "n_best": 4}
    search = decoding.constrained_beam_search
    eager = search(step, **arguments, **rows, **choices)
    specs = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec([None] * leaf.shape.rank, leaf.dtype),
        {**arguments, **rows},
    )
    # The step has to know the vocabulary.
    logits = arguments["memory"]["logits"]
    specs["memory"]["logits"] = tf.TensorSpec([None, *logits.shape[1:]])
    in_graph = tf.function(
        lambda given: search(step, **given, **choices),
        input_signature=[specs],
        autograph=False,
    )
    found = in_graph({**arguments, **rows})
    for ours, theirs in zip(found, eager, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_what_is_a_choice_of_rows():
    assert penalties.has_rows(tf.zeros([3])) and penalties.has_rows(BETAS)
    for one in (0, 1.5, np.float32(1), tf.constant(1.0), None):
        assert not penalties.has_rows(one)
