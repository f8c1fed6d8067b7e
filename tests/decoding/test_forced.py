"""Forced scores against the chain's own, and against a loop."""

import math

import numpy as np

from keras_attention import decoding
from keras_attention.tokens import END, PAD, START


def test_forced_search_follows_given_answers(draw_chain, check_hypothesis):
    chain = draw_chain(2, [5, 1, 3], vocabulary_size=6)
    answers = [[4, 5, 4, 4, END], [END], [5, 4, END]]
    labels = np.full((3, 7), PAD)
    for row, answer in enumerate(answers):
        labels[row, : len(answer)] = answer
    arguments = chain.arguments()
    arguments.pop("max_lengths")
    result = decoding.forced_search(**arguments, labels=labels)
    for row, answer in enumerate(answers):
        check_hypothesis(result, row, 0, chain, answer)
    np.testing.assert_array_equal(result.ids[:, 0], labels[:, :5])


def test_forced_search_of_answers_without_an_end(draw_chain):
    """A row of padding alone, and one that was cut: padding is no label."""
    chain = draw_chain(2, [5, 1, 3], vocabulary_size=6)
    labels = np.array([[PAD, PAD, PAD], [4, 5, PAD], [4, 5, END]])
    arguments = chain.arguments()
    arguments.pop("max_lengths")
    result = decoding.forced_search(**arguments, labels=labels)
    first, second = (
        chain.log_probs[1, START, START, 4],
        chain.log_probs[1, START, 4, 5],
    )
    np.testing.assert_array_equal(result.lengths[:, 0], [0, 2, 3])
    np.testing.assert_allclose(
        result.log_probability[:2, 0], [0.0, first + second], rtol=1e-5
    )
    sums = np.sum(result.attention_weights[:, 0], axis=-1)
    np.testing.assert_allclose(sums, labels != PAD, atol=1e-5)


def test_sequence_log_probability_is_the_sum_over_real_labels():
    rng = np.random.default_rng(2)
    logits = rng.normal(size=(3, 5, 7)).astype("float32")
    labels = np.array([[4, 6, 1, 3, 0], [3, 0, 0, 0, 0], [0, 0, 0, 0, 0]])
    expected, counts = [], []
    for row in range(3):
        total = 0.0
        for t in range(5):
            if labels[row, t] != PAD:
                p = np.exp(logits[row, t]) / np.exp(logits[row, t]).sum()
                total += math.log(p[labels[row, t]])
        expected.append(total)
        counts.append(int((labels[row] != PAD).sum()))
    total, num_tokens = decoding.sequence_log_probability(logits, labels)
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    assert num_tokens.numpy().tolist() == counts == [4, 1, 0]


def test_sequence_log_probability_with_another_padding():
    logits = np.zeros((1, 2, 5), "float32")
    total, num_tokens = decoding.sequence_log_probability(
        logits, np.array([[0, 4]]), pad_id=4
    )
    np.testing.assert_allclose(total, [-math.log(5)], rtol=1e-6)
    assert num_tokens.numpy().tolist() == [1]
