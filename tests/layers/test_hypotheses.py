"""Attention of several hypotheses of a text to what they share."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers
from keras_attention.layers import attention, hypotheses


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
