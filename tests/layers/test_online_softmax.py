import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers

B, H, T, S, KEY_DIM, VALUE_DIM = 2, 3, 5, 11, 7, 13


@pytest.fixture
def arrays(rng):
    shapes = (B, H, T, KEY_DIM), (B, H, S, KEY_DIM), (B, H, S, VALUE_DIM)
    return [3 * rng.normal(size=shape) for shape in shapes]


def attend(query, key, value, mask):
    """Equation 1 with all the weights at once, in float64."""
    exps = np.exp(query @ np.swapaxes(key, -1, -2) / np.sqrt(KEY_DIM)) * mask
    total = exps.sum(axis=-1, keepdims=True)
    return exps / np.where(total > 0, total, 1) @ value


def as_tensors(arrays, dtype="float32"):
    return [tf.constant(array, dtype) for array in arrays]


# One block that is not full, several, and blocks of one key.
@pytest.mark.parametrize("block_size", [256, S, 4, 1])
def test_equals_the_whole_softmax(arrays, block_size):
    keep = np.arange(S) < np.array([[S], [S - 6]])
    context = layers.online_softmax_attention(
        *as_tensors(arrays), padding_mask=keep, block_size=block_size
    )
    expected = attend(*arrays, mask=keep[:, None, None])
    np.testing.assert_allclose(context, expected, atol=1e-5)


@pytest.mark.parametrize("block_size", [256, 4])
def test_causal_attention_sees_its_own_place_and_those_before(
    arrays, block_size
):
    query, key, value = arrays
    arrays = query, key[:, :, :T], value[:, :, :T]
    context = layers.online_softmax_attention(
        *as_tensors(arrays), use_causal_mask=True, block_size=block_size
    )
    expected = attend(*arrays, mask=np.tri(T))
    np.testing.assert_allclose(context, expected, atol=1e-5)


def test_a_row_without_keys_has_context_zero(arrays):
    keep = np.array([[True] * S, [False] * S])
    context = layers.online_softmax_attention(
        *as_tensors(arrays), padding_mask=keep, block_size=4
    )
    expected = attend(*arrays, mask=keep[:, None, None])
    np.testing.assert_allclose(context, expected, atol=1e-5)
    np.testing.assert_array_equal(context[1], np.zeros((H, T, VALUE_DIM)))


def test_great_scores_do_not_overflow(arrays):
    query, key, value = arrays
    context = layers.online_softmax_attention(
        *as_tensors([1e4 * query, key, value]), block_size=4
    )
    best = np.argmax(query @ np.swapaxes(key, -1, -2), axis=-1)
    expected = np.take_along_axis(value, best[..., None], axis=2)
    np.testing.assert_allclose(context, expected, atol=1e-3)


@pytest.mark.parametrize("use_causal_mask", [False, True])
def test_gradients_equal_those_of_the_whole_softmax(
    arrays, rng, use_causal_mask
):
    query, key, value = arrays
    if use_causal_mask:
        key, value = key[:, :, :T], value[:, :, :T]
    inputs = as_tensors((query, key, value))
    direction = tf.constant(rng.normal(size=(B, H, T, VALUE_DIM)), "float32")
    keep = np.arange(key.shape[2]) < np.array([[key.shape[2]], [3]])
    mask = keep[:, None, None]
    if use_causal_mask:
        mask = mask & np.tri(T, dtype=bool)

    def gradients(function):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            total = tf.reduce_sum(direction * function(*inputs))
        return tape.gradient(total, inputs)

    def in_blocks(query, key, value):
        return layers.online_softmax_attention(
            query, key, value, keep, use_causal_mask, block_size=4
        )

    def whole(query, key, value):
        return layers.dot_product_attention(query, key, value, mask)[0]

    for found, expected in zip(
        gradients(in_blocks), gradients(whole), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_lengths_may_be_unknown_and_gradients_exist(arrays):
    specs = [
        tf.TensorSpec((None, H, None, width))
        for width in (KEY_DIM, KEY_DIM, VALUE_DIM)
    ]

    @tf.function(input_signature=specs)
    def run(query, key, value):
        with tf.GradientTape() as tape:
            tape.watch(key)
            context = layers.online_softmax_attention(
                query, key, value, block_size=4
            )
            loss = tf.reduce_sum(context**2)
        return context, tape.gradient(loss, key)

    context, gradient = run(*as_tensors(arrays))
    np.testing.assert_allclose(context, attend(*arrays, mask=1), atol=1e-5)
    inputs = as_tensors(arrays)
    with tf.GradientTape() as tape:
        tape.watch(inputs[1])
        loss = tf.reduce_sum(layers.dot_product_attention(*inputs)[0] ** 2)
    expected = tape.gradient(loss, inputs[1])
    np.testing.assert_allclose(gradient, expected, atol=1e-3)


def test_bfloat16_stays_bfloat16(arrays):
    context = layers.online_softmax_attention(
        *as_tensors([array / 3 for array in arrays], "bfloat16"), block_size=4
    )
    assert context.dtype == tf.bfloat16
    expected = attend(*(array / 3 for array in arrays), mask=1)
    np.testing.assert_allclose(
        keras.ops.cast(context, "float32"), expected, atol=0.05
    )


def test_a_mask_of_floats_is_refused(arrays):
    with pytest.raises(ValueError, match="bool"):
        layers.online_softmax_attention(
            *as_tensors(arrays), padding_mask=np.ones((B, S), "float32")
        )


def test_a_block_has_keys(arrays):
    with pytest.raises(ValueError, match="positive number of keys"):
        layers.online_softmax_attention(*as_tensors(arrays), block_size=0)


def run_and_measure(length):
    """The most memory in use while a fresh process attends, in megabytes."""
    program = f"""
import numpy as np
import tensorflow as tf
from keras_attention import layers
import resource

def attend(length):
    sizes = (1, 2, length, 16)
    x = tf.constant(np.ones(sizes, "float32"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        context = layers.online_softmax_attention(x, x, x)
    tape.gradient(context, x)

attend(256)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
attend({length})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return int(done.stdout) / 1024


@pytest.mark.slow
def test_memory_grows_with_the_length_and_not_with_its_square():
    short, long = run_and_measure(4096), run_and_measure(16384)
    # All weights of one head and text of this length need 1,024 MB.
    assert long < 600
    assert long < 6 * max(short, 30)
