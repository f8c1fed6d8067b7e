import numpy as np

from keras_attention import layers

B, T, DIM, MOST = 2, 5, 7, 3


def test_adds_the_vector_of_each_place(rng, randomize):
    inputs = rng.normal(size=(B, T, DIM)).astype("float32")
    layer = layers.LearnedPositions(MOST)
    layer.build(inputs.shape)
    vectors = randomize(layer).embeddings.numpy()
    outputs = layer(inputs).numpy()
    for t in range(T):
        # Places 3 and 4 have the vector of the last one.
        expected = inputs[:, t] + vectors[min(t, MOST - 1)]
        np.testing.assert_allclose(outputs[:, t], expected, atol=1e-6)


def test_token_by_token_equals_all_at_once(rng):
    inputs = rng.normal(size=(B, T, DIM)).astype("float32")
    layer = layers.LearnedPositions(MOST)
    whole = layer(inputs)
    for t in range(T):
        one = layer(inputs[:, t : t + 1], start=t)
        np.testing.assert_allclose(one, whole[:, t : t + 1], atol=1e-6)
