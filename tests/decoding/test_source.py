"""A source of several heads, of no attention, or none: language models."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import decoding
from keras_attention.decoding import source
from keras_attention.tokens import END, PAD

LIMITS = [5, 1, 4]
LABELS = np.array([[4, 5, END], [END, PAD, PAD], [5, PAD, PAD]])


def forced_search(max_lengths, **arguments):
    """The forced search, which takes labels in place of limits."""
    return decoding.forced_search(**arguments, labels=LABELS)


searches = pytest.mark.parametrize(
    "search",
    [
        decoding.greedy_search,
        functools.partial(decoding.sampling_search, seed=0),
        functools.partial(decoding.sampling_search, seed=0, num_samples=2),
        functools.partial(decoding.beam_search, num_beams=3, n_best=2),
        functools.partial(
            decoding.diverse_beam_search, num_beams=4, num_groups=2, n_best=2
        ),
        functools.partial(
            decoding.constrained_beam_search,
            num_beams=3,
            term_ids=tf.constant([[[4, 5]], [[PAD, PAD]], [[3, PAD]]]),
        ),
        forced_search,
    ],
    ids=[
        "greedy",
        "sampling",
        "samples",
        "beam",
        "diverse",
        "constrained",
        "forced",
    ],
)


@searches
def test_a_language_model_gives_what_a_model_with_a_source_does(
    draw_chain, search
):
    chain = draw_chain(7, LIMITS, vocabulary_size=6)
    expected = search(**chain.arguments())
    result = search(**chain.language_model_arguments())
    for name in ("ids", "lengths", "log_probability", "score"):
        np.testing.assert_array_equal(
            getattr(result, name), getattr(expected, name)
        )
    # There is no source to look at.
    assert result.attention_weights.shape == (*expected.ids.shape, 0)


@searches
def test_a_step_may_look_nowhere(draw_chain, search):
    """A model with a source, but without attention."""
    chain = draw_chain(7, LIMITS, vocabulary_size=6)

    def step(token_ids, memory, state):
        logits, state, _ = chain.step(token_ids, memory, state)
        return logits, state, None

    expected = search(**chain.arguments())
    result = search(**{**chain.arguments(), "step": step})
    np.testing.assert_array_equal(result.ids, expected.ids)
    assert result.attention_weights.shape == expected.attention_weights.shape
    assert not result.attention_weights.numpy().any()


@pytest.mark.parametrize("heads", [None, 3])
def test_mean_over_heads(heads):
    shape = (2, 5) if heads is None else (2, heads, 5)
    weights = np.random.default_rng(0).random(shape).astype("float32")
    expected = weights if heads is None else weights.mean(axis=1)
    np.testing.assert_allclose(
        source.weights_over(tf.constant(weights), None, 5),
        expected,
        rtol=1e-6,
    )
