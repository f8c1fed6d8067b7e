"""The next token's log-probabilities, and the best of them."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention.decoding import answers, next_tokens
from keras_attention.tokens import END, PAD, START, UNK


def test_what_is_allowed_keeps_its_log_probability():
    logits = np.random.default_rng(0).normal(size=(2, 6)).astype("float32")
    rules = answers.Rules(
        np.array([2, 9]), START, END, PAD, (PAD, UNK, START), None
    )
    allowed = next_tokens.allowed_log_probs(logits, 1, rules).numpy()
    expected = np.log(np.exp(logits) / np.exp(logits).sum(1, keepdims=True))
    # The first row is at its limit: END alone. The other may go on.
    np.testing.assert_allclose(allowed[0, END], expected[0, END], rtol=1e-5)
    np.testing.assert_allclose(allowed[1, END:], expected[1, END:], rtol=1e-5)
    assert (np.delete(allowed[0], END) < -1e8).all()
    assert (allowed[1, [PAD, UNK, START]] < -1e8).all()


@pytest.mark.parametrize("size", [7, 81, 97, 550, 8000])
@pytest.mark.parametrize("k", [1, 5, 9])
def test_the_k_greatest_of_a_vocabulary(rng, size, k):
    """Sizes with and without a number of blocks that divides them."""
    values = rng.normal(size=(3, size)).astype("float32")
    best, indices = next_tokens.top_k(tf.constant(values), k)
    order = np.argsort(-values, axis=-1)[:, :k]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(
        best, np.take_along_axis(values, order, axis=-1)
    )


def test_equal_values_come_once_each():
    _, indices = next_tokens.top_k(tf.zeros([2, 8000]), 5)
    assert all(len(set(row)) == 5 for row in indices.numpy())


@pytest.mark.parametrize("forbidden", [(), (PAD, UNK, START), (17,)])
def test_the_best_extensions_are_those_of_all(rng, forbidden):
    logits = rng.normal(size=(4, 8000)).astype("float32")
    logits[0, END] = logits[1, START] = logits[2, 17] = 9.0
    max_lengths = tf.constant([5, 5, 5, 2])  # The last can only end.
    rules = answers.Rules(max_lengths, START, END, PAD, forbidden, None)
    everything = next_tokens.allowed_log_probs(logits, 1, rules).numpy()
    offers = next_tokens.best_extensions(tf.constant(logits), 4, rules)
    log_probs, token_ids = next_tokens.within_limits(*offers, 1, rules)
    for row, (ours, ids) in enumerate(
        zip(log_probs.numpy(), token_ids.numpy(), strict=True)
    ):
        allowed = ours > next_tokens.IMPOSSIBLE / 2
        found = dict(zip(ids[allowed], ours[allowed], strict=True))
        assert len(found) == allowed.sum()  # No token comes twice.
        possible = np.flatnonzero(everything[row] > next_tokens.IMPOSSIBLE / 2)
        assert set(found) <= set(possible)
        best = sorted(possible, key=lambda token: -everything[row, token])
        for token in best[:4]:
            assert found[token] == pytest.approx(
                everything[row, token], rel=1e-5
            )
