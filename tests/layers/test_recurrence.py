import numpy as np
import tensorflow as tf
from keras import ops

from keras_attention import layers


def test_unroll_by_hand():
    inputs = np.array([[[1.0], [2.0], [4.0]], [[3.0], [5.0], [7.0]]])
    sums = layers.unroll(
        lambda x, state: state + x, ops.zeros((2, 1), "float64"), inputs
    )
    np.testing.assert_array_equal(sums[..., 0], [[1, 3, 7], [3, 8, 15]])


def test_unroll_equals_a_python_loop(rng):
    inputs = rng.normal(size=(2, 5, 7)).astype("float32")
    kernel = rng.normal(size=(7, 7), scale=0.3).astype("float32")
    start = {
        "hidden": rng.normal(size=(2, 7)).astype("float32"),
        "layers": [(np.ones((2, 3), "float32"), np.zeros((2,), "int32"))],
    }

    def advance(x, state):
        (first, count), *_ = state["layers"]
        hidden = ops.tanh(ops.matmul(state["hidden"], kernel) + x)
        return {
            "hidden": hidden,
            "layers": [(first + hidden[:, :1], count + 1)],
        }

    states = layers.unroll(
        advance,
        {
            "hidden": ops.convert_to_tensor(start["hidden"]),
            "layers": [tuple(map(ops.convert_to_tensor, start["layers"][0]))],
        },
        inputs,
    )
    hidden, first = start["hidden"], start["layers"][0][0]
    for t in range(5):
        hidden = np.tanh(hidden @ kernel + inputs[:, t])
        first = first + hidden[:, :1]
        np.testing.assert_allclose(states["hidden"][:, t], hidden, atol=1e-5)
        got_first, got_count = states["layers"][0]
        np.testing.assert_allclose(got_first[:, t], first, atol=1e-5)
        np.testing.assert_array_equal(got_count[:, t], [t + 1, t + 1])


def test_unroll_of_a_length_known_at_run_time(rng):
    @tf.function(input_signature=[tf.TensorSpec([None, None, 7])])
    def cumulated(x):
        return layers.unroll(lambda a, b: a + b, ops.zeros_like(x[:, 0]), x)

    for length in (1, 5):
        inputs = rng.normal(size=(2, length, 7)).astype("float32")
        np.testing.assert_allclose(
            cumulated(inputs), np.cumsum(inputs, axis=1), atol=1e-5
        )


def test_unroll_has_a_gradient(rng):
    inputs = tf.constant(rng.normal(size=(2, 5, 7)), "float32")
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        states = layers.unroll(
            lambda x, state: state + x, ops.zeros((2, 7)), inputs
        )
        last = tf.reduce_sum(states[:, 2])
    gradient = tape.gradient(last, inputs).numpy()
    np.testing.assert_array_equal(gradient[:, :3], np.ones((2, 3, 7)))
    np.testing.assert_array_equal(gradient[:, 3:], np.zeros((2, 2, 7)))


def test_unroll_with_attention_by_hand():
    """The step looks at the place of the sum so far, of three."""
    places = ops.convert_to_tensor(np.eye(3, dtype="float16"))

    def advance(x, total):
        total = total + x
        index = ops.cast(total[:, 0], "int32")
        return total, ops.take(places, index, axis=0)

    totals, attention_weights = layers.unroll_with_attention(
        advance,
        ops.zeros((2, 1)),
        np.array([[[1.0], [1.0]], [[0.0], [1.0]]], "float32"),
        np.ones((2, 3), bool),
    )
    np.testing.assert_array_equal(totals[..., 0], [[1, 2], [0, 1]])
    assert attention_weights.dtype == "float32"
    np.testing.assert_array_equal(
        attention_weights, [[[0, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 0]]]
    )


def test_reverse_sequences_leaves_padding_at_the_end():
    token_ids = np.array([[5, 6, 7, 8], [5, 6, 3, 0], [3, 0, 0, 0], [0] * 4])
    np.testing.assert_array_equal(
        layers.reverse_sequences(token_ids, token_ids != 0),
        [[8, 7, 6, 5], [3, 6, 5, 0], [3, 0, 0, 0], [0] * 4],
    )


def test_vectors_are_reversed_as_ids_are():
    vectors = np.random.default_rng(3).uniform(size=(2, 5, 7))
    mask = np.array([[True] * 5, [True] * 3 + [False] * 2])
    expected = np.stack([vectors[0, ::-1], vectors[1, [2, 1, 0, 3, 4]]])
    found = layers.reverse_sequences(vectors, mask)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_reversed_twice_is_the_same():
    token_ids = np.array([[5, 6, 7, 8, 3], [5, 6, 3, 0, 0]])
    mask = token_ids != 0
    once = layers.reverse_sequences(token_ids, mask)
    np.testing.assert_array_equal(
        layers.reverse_sequences(once, mask), token_ids
    )
