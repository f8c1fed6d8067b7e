"""Attention of several hypotheses of a text to what they share."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers
from keras_attention.layers import attention, caches, hypotheses


@pytest.mark.parametrize(
    "positions, expected",
    [
        (None, True),
        (layers.RotaryPositions(), True),
        (layers.RelativePositions(4), False),
    ],
)
def test_positions_that_add_to_scores_do_not_settle(positions, expected):
    layer = layers.MultiHeadAttention(2, 4, positions=positions)
    found = []

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def grow(max_length):
        found.append(layer.can_settle(layer.initial_cache(1, max_length)))

    grow.get_concrete_function()
    assert found == [expected]
    assert not layer.can_settle(layer.initial_cache(1, 3))  # It has its room.


@pytest.mark.parametrize("num_shared", [0, 1, 5])
@pytest.mark.parametrize("num_key_value_heads", [2, 4])
@pytest.mark.parametrize("num_hypotheses", [1, 3])
def test_attention_to_parts(
    num_shared, num_key_value_heads, num_hypotheses, rng
):
    """It equals attention of each hypothesis to all of its own tokens."""

    def normal(rows, heads, length):
        return rng.normal(size=(rows, heads, length, 5)).astype("float32")

    rows, heads = 2 * num_hypotheses, num_key_value_heads
    query = normal(rows, 4, 1)
    key, value = (
        hypotheses.Parts(normal(2, heads, num_shared), normal(rows, heads, 3))
        for _ in range(2)
    )
    context, weights = hypotheses.attend_to_parts(
        query, key, value, num_hypotheses
    )
    whole = [
        np.concatenate(
            [np.repeat(part.shared, num_hypotheses, axis=0), part.own], axis=2
        )
        for part in (key, value)
    ]
    expected = attention.dot_product_attention(query, *whole)
    np.testing.assert_allclose(context, expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weights, expected[1], rtol=1e-4, atol=1e-5)


def test_settled_tokens_are_taken_once():
    """Of three hypotheses a text, which differ after the third token."""
    settled = np.array([[0.0, 1.0], [10.0, 11.0]])[:, None, :, None]
    own = np.array([[2.0, 3 + n, 6 + n] for n in range(3)])
    own = np.concatenate([own, own + 10])[:, None, :, None]
    before = caches.GrowingCache(settled, -settled)
    cache = caches.GrowingCache(own, -own)
    settled, rest = caches.settle(before, cache, length=3, num_hypotheses=3)
    for sign, taken, left in zip((1, -1), settled, rest, strict=True):
        expected = [[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]]
        np.testing.assert_array_equal(sign * taken[:, 0, :, 0], expected)
        np.testing.assert_array_equal(left, sign * own[:, :, 1:])
