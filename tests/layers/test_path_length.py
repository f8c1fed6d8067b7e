"""Operations between two positions (Vaswani et al. 2017, section 4, table 1).

A gradient from the last position to the first exists as soon as enough
layers, or steps, lie between: n for recurrence, n / (k - 1) for convolutions,
log n for dilated ones, 1 for attention.
"""

import math

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers

D, KERNEL = 4, 3


def reaches(operations, x):
    """Whether the last output has a gradient at the first input."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        last = operations(x)[:, -1]
    gradient = tape.gradient(last, x)
    if gradient is None:
        return False
    return bool(np.abs(gradient[0, 0]).max() > 0)


def recurrence(count, length):
    """The last `count` steps of a recurrent network, and no others."""
    cell = layers.GRUCell(D)
    cell.build((None, D))

    def operations(x):
        start = length - 1 - count
        # The first input of these steps is the state that they start from.
        state = x[:, start]
        for t in range(start + 1, length):
            state, _ = cell(tf.zeros_like(x[:, t]), [state])
        return state[:, None]

    return operations


def convolutions(count, length, dilated=False):
    stack = []
    for index in range(count):
        layer = layers.CausalConvolution(
            D, KERNEL, 2**index if dilated else 1, kernel_initializer="ones"
        )
        layer.build((None, length, D))
        layer.kernel.assign(layer.kernel / (D * KERNEL))
        stack.append(layer)

    def operations(x):
        for layer in stack:
            x = layer(x)
        return x

    return operations


def dilated_convolutions(count, length):
    return convolutions(count, length, dilated=True)


def attentions(count, length):
    stack = [layers.MultiHeadAttention(2, 2) for _ in range(count)]

    def operations(x):
        for layer in stack:
            x, _ = layer(query=x, use_causal_mask=True)
        return x

    return operations


# Layers, or steps, that a distance of n takes.
FEWEST = {
    recurrence: lambda n: n,
    convolutions: lambda n: math.ceil(n / (KERNEL - 1)),
    # 1 + (k - 1) (2^L - 1) positions are seen.
    dilated_convolutions: lambda n: math.ceil(math.log2(n / (KERNEL - 1) + 1)),
    attentions: lambda n: 1,
}


@pytest.mark.parametrize("distance", [1, 2, 3, 5, 16, 31, 64])
@pytest.mark.parametrize("stack", FEWEST, ids=lambda f: f.__name__)
def test_fewest_operations(rng, stack, distance):
    length = distance + 1
    x = rng.normal(size=(1, length, D)).astype("float32")
    fewest = FEWEST[stack](distance)
    assert reaches(stack(fewest, length), x)
    if fewest > 1:
        assert not reaches(stack(fewest - 1, length), x)


def test_at_a_distance_of_64():
    """The example of the chapter."""
    fewest = [count(64) for count in FEWEST.values()]
    assert fewest == [64, 32, 6, 1]
