"""The fused cross-entropy against log-softmax, value and gradient."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention.tokens import PAD
from keras_attention.training import losses

B, T, V = 3, 5, 7


def drawn(seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=scale, size=(B, T, V)).astype("float32")
    labels = rng.integers(1, V, (B, T)).astype("int32")
    labels[1, 3:] = PAD
    return logits, labels


def plain_cross_entropy(logits, labels, label_smoothing):
    """`- sum_v q_v log softmax(logits)_v`, with TensorFlow's own gradient."""
    q = (1 - label_smoothing) * tf.one_hot(labels, V, dtype=tf.float64)
    q += label_smoothing / V
    log_p = tf.nn.log_softmax(tf.cast(logits, tf.float64), axis=-1)
    return -tf.reduce_sum(q * log_p, axis=-1)


LOGITS = {
    "ordinary": drawn()[0],
    "wide": drawn(1, 30.0)[0],
    "extreme": np.where(drawn(2)[0] > 0.3, 1e4, -1e4).astype("float32"),
    "far from 0": drawn(3)[0] + 1000,
    "equal": np.zeros((B, T, V), "float32"),
}


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("logits", LOGITS.values(), ids=LOGITS)
def test_value_and_gradient_equal_the_formula(logits, label_smoothing):
    labels = drawn()[1]
    logits = tf.constant(logits)
    # Another upstream gradient for each token.
    upstream = np.random.default_rng(9).normal(size=(B, T)).astype("float32")
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(logits)
        loss = losses.token_cross_entropy(logits, labels, label_smoothing)
        weighted = tf.reduce_sum(loss * upstream)
        expected = plain_cross_entropy(logits, labels, label_smoothing)
        weighted_expected = tf.reduce_sum(expected * upstream)
    # Near 1000 and 10000 a float32 step is 6e-5 and 1e-3.
    atol = 1e-6 * max(1.0, float(np.abs(logits).max()))
    np.testing.assert_allclose(loss, expected, rtol=1e-6, atol=atol)
    np.testing.assert_allclose(
        losses.without_smoothing(loss, logits, labels, label_smoothing),
        plain_cross_entropy(logits, labels, 0.0),
        rtol=1e-6,
        atol=2 * atol,
    )
    gradient = tape.gradient(weighted, logits)
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(
        gradient, tape.gradient(weighted_expected, logits), atol=1e-6
    )


def test_right_is_where_no_logit_is_above_the_label():
    logits, labels = drawn()
    correct = losses.is_greatest(logits, labels)
    expected = np.argmax(logits, axis=-1) == labels
    assert 0 < expected.sum() < B * T
    np.testing.assert_array_equal(correct, expected.astype("float32"))
    level = losses.is_greatest(np.zeros((1, 3), "float32"), np.array([2]))
    assert level.numpy().tolist() == [1.0]  # None is greater.


def test_half_precision_logits_are_computed_in_float32():
    logits, labels = drawn(scale=5.0)
    half = tf.cast(logits, tf.float16)
    loss = losses.token_cross_entropy(half, labels, 0.1)
    nll = losses.without_smoothing(loss, half, labels, 0.1)
    assert loss.dtype == nll.dtype == tf.float32
    np.testing.assert_allclose(
        loss, plain_cross_entropy(half, labels, 0.1), rtol=1e-6
    )


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_without_weights_it_is_the_mean_over_real_tokens(label_smoothing):
    logits, labels = drawn()
    tokens = plain_cross_entropy(logits, labels, label_smoothing).numpy()
    loss = losses.TokenCrossEntropy(label_smoothing)(labels, logits)
    np.testing.assert_allclose(loss, tokens[labels != PAD].mean(), rtol=1e-6)
    assert loss.shape == ()
    assert loss.dtype == tf.float32


def test_with_weights_it_is_the_weighted_sum_over_real_tokens():
    logits, labels = drawn()
    # Weights at padding must not count.
    weights = np.random.default_rng(4).random((B, T)).astype("float32")
    tokens = plain_cross_entropy(logits, labels, 0.1).numpy()
    expected = (tokens * weights)[labels != PAD].sum()
    loss = losses.TokenCrossEntropy(0.1)(labels, logits, weights)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_shares_of_a_batch_add_up_to_its_mean():
    logits, labels = drawn()
    weights = (labels != PAD) / np.float32((labels != PAD).sum())
    loss = losses.TokenCrossEntropy(0.1)
    shares = [
        loss(labels[rows], logits[rows], weights[rows])
        for rows in (slice(0, 1), slice(1, 3))
    ]
    np.testing.assert_allclose(sum(shares), loss(labels, logits), rtol=1e-6)


def test_a_batch_of_padding_alone_gives_zero():
    logits, labels = drawn()
    assert losses.TokenCrossEntropy()(np.zeros_like(labels), logits) == 0


def test_it_comes_back_from_its_config():
    loss = losses.TokenCrossEntropy(0.3, name="other")
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert isinstance(again, losses.TokenCrossEntropy)
    assert (again.label_smoothing, again.name) == (0.3, "other")
    logits, labels = drawn()
    np.testing.assert_array_equal(again(labels, logits), loss(labels, logits))


@pytest.mark.parametrize("label_smoothing", [-0.1, 1.0])
def test_smoothing_out_of_range_is_refused(label_smoothing):
    with pytest.raises(ValueError, match=f"label_smoothing={label_smoothing}"):
        losses.TokenCrossEntropy(label_smoothing)


def test_labels_and_weights_of_other_shapes_are_refused():
    logits, labels = drawn()
    loss = losses.TokenCrossEntropy()
    with pytest.raises(ValueError, match=r"Received: shapes \(3, 5, 1\)"):
        loss(labels[..., None], logits)
    with pytest.raises(ValueError, match=r"Received: shape \(3, 5, 1\)"):
        loss(labels, logits, np.ones((B, T, 1)))


def test_a_weight_for_each_example_weights_all_its_tokens():
    logits, labels = drawn()
    loss = losses.TokenCrossEntropy()
    weights = np.array([0.5, 2.0, 1.0], "float32")
    each = loss.call(labels, logits).numpy() * (labels != PAD)
    np.testing.assert_allclose(
        loss(labels, logits, weights),
        sum(w * row.sum() for w, row in zip(weights, each, strict=True)),
        rtol=1e-6,
    )
    # Of labels [B] too: each is one token.
    np.testing.assert_allclose(
        loss(labels[:, 0], logits[:, 0], weights),
        sum(weights * each[:, 0]),
        rtol=1e-6,
    )


@pytest.mark.parametrize("label", [-1, V])
def test_a_label_outside_the_vocabulary_is_impossible(label):
    logits, labels = drawn()
    labels[0, 1] = label
    compiled = tf.function(losses.token_cross_entropy, jit_compile=True)
    np.testing.assert_array_equal(
        np.isposinf(compiled(logits, labels)), (labels < 0) | (labels >= V)
    )


def test_a_negative_label_is_not_padding_unless_its_weight_is_0():
    logits, labels = drawn()
    labels[0, 1] = -1
    loss = losses.TokenCrossEntropy()
    assert np.isposinf(loss(labels, logits))
    weights = np.float32(labels > 0)
    logits = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        weighted = loss(labels, logits, weights)
    np.testing.assert_allclose(
        weighted, loss(labels * (labels > 0), logits, weights), rtol=1e-6
    )
    gradient = tape.gradient(weighted, logits).numpy()
    assert np.isfinite(gradient).all() and not gradient[0, 1].any()


def test_a_right_label_makes_no_nan_on_its_way():
    logits, labels = drawn()
    tf.debugging.enable_check_numerics()
    try:
        compute = tf.function(losses.TokenCrossEntropy())
        assert np.isfinite(compute(labels, logits))
    finally:
        tf.debugging.disable_check_numerics()
