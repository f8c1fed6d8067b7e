import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers

B, T, DIM, MOST = 2, 5, 7, 6


def test_adds_the_vector_of_each_place(rng, randomize):
    inputs = rng.normal(size=(B, T, DIM)).astype("float32")
    layer = layers.LearnedPositions(MOST)
    layer.build(inputs.shape)
    vectors = randomize(layer).embeddings.numpy()
    outputs = layer(inputs).numpy()
    for t in range(T):
        expected = inputs[:, t] + vectors[t]
        np.testing.assert_allclose(outputs[:, t], expected, atol=1e-6)


def test_token_by_token_equals_all_at_once(rng):
    inputs = rng.normal(size=(B, T, DIM)).astype("float32")
    layer = layers.LearnedPositions(MOST)
    whole = layer(inputs)
    for t in range(T):
        one = layer(inputs[:, t : t + 1], start=t)
        np.testing.assert_allclose(one, whole[:, t : t + 1], atol=1e-6)


@pytest.mark.parametrize("length, start", [(MOST + 1, 0), (T, 2)])
def test_more_tokens_than_positions_are_refused(length, start):
    layer = layers.LearnedPositions(MOST)
    with pytest.raises(ValueError, match="6 learned positions.* 7 tokens"):
        layer(np.zeros((B, length, DIM), "float32"), start=start)


def test_a_graph_of_unknown_length_gives_nan_behind_the_table(rng):
    """A GPU's gather out of range would give zeros."""
    layer = layers.LearnedPositions(MOST)
    inputs = rng.normal(size=(B, MOST + 2, DIM)).astype("float32")
    inside = layer(inputs[:, :MOST])

    @tf.function(input_signature=[tf.TensorSpec([None, None, DIM])])
    def compiled(inputs):
        return layer(inputs)

    outputs = compiled(inputs).numpy()
    np.testing.assert_array_equal(outputs[:, :MOST], inside)
    assert np.isnan(outputs[:, MOST:]).all()
