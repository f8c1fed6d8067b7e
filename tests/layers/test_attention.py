import math

import numpy as np
import pytest
import tensorflow as tf

from keras_attention.layers import attention


def test_masked_softmax_by_hand():
    # exp(ln 2) : exp(ln 6) = 1 : 3; the third key does not count.
    scores = [[math.log(2), math.log(6), 100.0], [0.0, 0.0, 0.0]]
    mask = [[True, True, False], [True, True, True]]
    np.testing.assert_allclose(
        attention.masked_softmax(np.array(scores), np.array(mask)),
        [[1 / 4, 3 / 4, 0.0], [1 / 3, 1 / 3, 1 / 3]],
        rtol=1e-6,
    )


def test_masked_softmax_is_the_softmax_over_the_unmasked_keys(rng):
    scores = rng.normal(size=(2, 3, 5), scale=3).astype("float32")
    mask = rng.random((2, 3, 5)) < 0.6
    mask[..., 1] = True
    expected = np.zeros((2, 3, 5))
    for b in range(2):
        for t in range(3):
            total = sum(
                math.exp(scores[b, t, r]) for r in range(5) if mask[b, t, r]
            )
            for s in range(5):
                if mask[b, t, s]:
                    expected[b, t, s] = math.exp(scores[b, t, s]) / total
    weights = attention.masked_softmax(scores, mask).numpy()
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    assert (weights[~mask] == 0).all()


def test_masked_softmax_without_a_mask_sums_to_one(rng):
    scores = rng.normal(size=(2, 5), scale=30).astype("float32")
    weights = attention.masked_softmax(scores)
    np.testing.assert_allclose(np.sum(weights, -1), [1, 1], rtol=1e-6)


def test_one_key_alone_has_weight_one(rng):
    scores = tf.constant(rng.normal(size=(2, 1)))  # Keras would warn.
    with tf.GradientTape() as tape:
        tape.watch(scores)
        weights = attention.masked_softmax(scores)
    np.testing.assert_array_equal(weights, [[1], [1]])
    np.testing.assert_array_equal(tape.gradient(weights, scores), [[0], [0]])
    np.testing.assert_array_equal(
        attention.masked_softmax(scores, np.array([[True], [False]])),
        [[1], [0]],
    )


def test_mask_broadcasts_over_scores(rng):
    scores = rng.normal(size=(2, 7, 3, 5)).astype("float32")
    mask = np.array([True, False, True, True, False])[None, None, None]
    np.testing.assert_array_equal(
        attention.masked_softmax(scores, mask),
        attention.masked_softmax(scores, np.broadcast_to(mask, scores.shape)),
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_row_without_a_key_has_weights_zero_and_a_gradient(rng, dtype):
    scores = tf.cast(rng.normal(size=(2, 5)), dtype)
    mask = np.array([[False] * 5, [True, True, False, True, True]])
    with tf.GradientTape() as tape:
        tape.watch(scores)
        weights = attention.masked_softmax(scores, mask)
        loss = tf.reduce_sum(weights**2)
    gradient = tf.cast(tape.gradient(loss, scores), "float32").numpy()
    assert weights.dtype == "float32"
    np.testing.assert_array_equal(weights[0], np.zeros(5))
    np.testing.assert_array_equal(gradient[0], np.zeros(5))
    assert np.isfinite(gradient).all() and gradient[1].any()
    assert gradient[1, 2] == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_great_scores_of_half_precision_do_not_leak(dtype):
    greatest = float(tf.as_dtype(dtype).max)
    # bfloat16 reaches 3e38: no network's scores do.
    scores = tf.constant([[1.0, min(greatest, 6e4), -6e4]], dtype)
    weights = attention.masked_softmax(scores, np.array([[1, 0, 1]], bool))
    np.testing.assert_array_equal(weights, [[1, 0, 0]])


def test_weighted_sum(rng):
    weights = rng.random((2, 3, 5)).astype("float32")
    value = rng.normal(size=(2, 5, 7)).astype("float32")
    expected = np.zeros((2, 3, 7))
    for b in range(2):
        for t in range(3):
            for s in range(5):
                expected[b, t] += weights[b, t, s] * value[b, s]
    context = attention.weighted_sum(weights, tf.constant(value))
    np.testing.assert_allclose(context, expected, atol=1e-5)


def test_weighted_sum_of_integers_is_no_integer():
    weights = tf.constant([[[0.25, 0.75]]])
    context = attention.weighted_sum(weights, tf.constant([[[1], [3]]]))
    assert context.numpy().tolist() == [[[2.5]]]


def test_weighted_sum_keeps_the_dtype_of_the_value():
    context = attention.weighted_sum(
        tf.ones((2, 3, 5)), tf.ones((2, 5, 7), "bfloat16")
    )
    assert context.dtype == "bfloat16"


def test_a_subclass_must_score(rng):
    layer = attention.Attention()
    with pytest.raises(NotImplementedError):
        layer(rng.normal(size=(2, 3, 7)), rng.normal(size=(2, 5, 7)))


def test_a_subclass_only_scores(rng):
    class Nearest(attention.Attention):
        def score(self, query, projected_key):
            difference = query[:, :, None] - projected_key[:, None]
            return -1e3 * tf.reduce_sum(difference**2, -1)

    value = rng.normal(size=(2, 5, 7)).astype("float32")
    context, weights = Nearest()(query=value[:, 3:0:-1], value=value)
    np.testing.assert_allclose(context, value[:, 3:0:-1], atol=1e-5)
    np.testing.assert_array_equal(np.argmax(weights, -1), [[3, 2, 1]] * 2)
