import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import models

V, SOURCE_V, D, K, RATES = 37, 19, 11, 3, (1, 2)
A, OFFSET = 1.5, 1


def dense(layer, x):
    w, b = layer.get_weights()
    return x @ w + b


def norm(layer, x):
    gamma, beta = layer.get_weights()
    return gamma * (x - x.mean()) / np.sqrt(x.var() + 1e-6) + beta


def relu_norm(layer, x):
    return np.maximum(norm(layer, x), 0)


def block(layer, xs, rate, is_causal):
    """Figure 3, position by position."""
    inner = [
        relu_norm(layer.norms[1], dense(layer.contract, r))
        for r in (relu_norm(layer.norms[0], x) for x in xs)
    ]
    w, b = layer.convolution.get_weights()
    outputs = []
    for t, x in enumerate(xs):
        convolved = b
        for j in range(K):
            shift = K - 1 - j if is_causal else K // 2 - j
            place = t - shift * rate
            if 0 <= place < len(xs):
                convolved = convolved + inner[place] @ w[j]
        outputs.append(
            x + dense(layer.expand, relu_norm(layer.norms[2], convolved))
        )
    return outputs


def joined(model, pairs):
    """A convolution over what column and embedding have above 0."""
    w, b = model.joint.get_weights()
    outputs = []
    for t in range(len(pairs)):
        convolved = b
        for j in range(K):
            place = t - (K - 1 - j)
            if place >= 0:
                both = np.maximum(np.concatenate(pairs[place]), 0)
                convolved = convolved + both @ w[j]
        outputs.append(norm(model.joint_norm, convolved))
    return outputs


def translate(model, source, target):
    """Logits of one pair, by the equations of the class."""
    num_columns = math.floor(A * len(source)) + OFFSET
    unfolded = [*source] + [0] * (num_columns - len(source))
    columns = [model.source_embedding.get_weights()[0][x] for x in unfolded]
    for layer, rate in zip(model.encoder_blocks, RATES, strict=True):
        columns = block(layer, columns, rate, is_causal=False)
    u, embeddings = [], model.target_embedding.get_weights()[0]
    for t, y in enumerate(target):
        column = columns[t] if t < num_columns else np.zeros(2 * D)
        u.append((column, embeddings[y]))
    if model.get_config()["joined_by"] == "sum":
        u = [column + embedded for column, embedded in u]
    else:
        u = joined(model, u)
    for layer, rate in zip(model.decoder_blocks, RATES, strict=True):
        u = block(layer, u, rate, is_causal=True)
    logits = []
    for h in u:
        x = dense(model.readout, relu_norm(model.readout_norm, h))
        x = relu_norm(model.output_norm, x)
        logits.append(dense(model.output_projection, x))
    return logits


def small(randomize, rates=RATES, **arguments):
    return randomize(
        models.ByteNet(
            V,
            SOURCE_V,
            num_sets=1,
            hidden_dim=D,
            kernel_size=K,
            dilation_rates=rates,
            unfolding_factor=A,
            unfolding_offset=OFFSET,
            **arguments,
        )
    )


each_way = pytest.mark.parametrize("joined_by", ["sum", "convolution"])


SOURCE_IDS = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])


@each_way
def test_equals_the_equations(randomize, rng, joined_by):
    """Targets shorter and longer than the 8 and 5 columns."""
    model = small(randomize, joined_by=joined_by)
    for length in (3, 7, 11):
        target_ids = rng.integers(4, V, (2, length))
        logits = model({"source_ids": SOURCE_IDS, "target_ids": target_ids})
        for row, source_length in enumerate([5, 3]):
            expected = translate(
                model, SOURCE_IDS[row, :source_length], target_ids[row]
            )
            np.testing.assert_allclose(logits[row], expected, atol=1e-4)


@each_way
def test_steps_equal_call_beyond_the_columns(randomize, rng, joined_by):
    model = small(randomize, joined_by=joined_by)
    target_ids = rng.integers(4, V, (2, 13))
    logits = model({"source_ids": SOURCE_IDS, "target_ids": target_ids})
    memory = model.encode(SOURCE_IDS)
    state = model.initial_state(memory, 13)
    for t in range(13):
        ours, state, weights = model.step(target_ids[:, t], memory, state)
        np.testing.assert_allclose(ours, logits[:, t], atol=1e-4)
        for row, length in enumerate([5, 3]):
            assert weights[row, min(t, length - 1)] == 1


@pytest.mark.parametrize("rates", [(1, 2), (1, 2, 4)])
def test_receptive_field_of_the_decoder(randomize, rates):
    """1 + (k - 1) sum d targets have a gradient; no later one has."""
    model = small(randomize, rates)
    field = 1 + (K - 1) * sum(rates)
    target_ids = np.arange(4, 4 + field + 4)[None]  # Each once.
    t = field + 1
    with tf.GradientTape() as tape:
        logits = model({"source_ids": SOURCE_IDS[:1], "target_ids": target_ids})
        logit = tf.reduce_sum(logits[:, t] ** 2)
    gradient = tape.gradient(logit, model.target_embedding.embeddings.value)
    gradient = tf.convert_to_tensor(gradient).numpy()[target_ids[0]]
    reached = np.abs(gradient).max(axis=1) > 0
    expected = [t - field < s <= t for s in range(len(reached))]
    np.testing.assert_array_equal(reached, expected)


def test_state_is_the_last_inputs_of_each_block(randomize):
    model = small(randomize)
    state = model.initial_state(model.encode(SOURCE_IDS), max_length=50)
    shapes = [tuple(x.shape) for x in keras.tree.flatten(state)]
    assert shapes == [(2, 2, D), (2, 4, D), (2,)]


@pytest.mark.parametrize(
    "argument",
    [
        {"num_sets": 0},
        {"kernel_size": 4},
        {"unfolding_factor": 0.9},
        {"unfolding_offset": -1},
        {"joined_by": "product"},
    ],
)
def test_wrong_sizes_are_refused(argument):
    ((name, value),) = argument.items()
    with pytest.raises(ValueError, match=f"Received: .*{name}={value!r}"):
        models.ByteNet(V, **argument)


@pytest.mark.slow
def test_papers_size(without_memory):
    """30 + 30 blocks, d = 800, k = 3, dilations 1 ... 16 six times."""
    v, d, k = 300, 800, 3
    block = (
        (2 * d * d + d)
        + (k * d * d + d)
        + (d * 2 * d + 2 * d)
        + 2 * (2 * d + d + d)  # Normalisations of 2d, d and d.
    )
    expected = (
        2 * v * 2 * d
        + 60 * block
        + (2 * d * 2 * d + 2 * d)
        + 2 * 2 * 2 * d
        + 2 * d * v
        + v
    )
    with without_memory():
        model = models.ByteNet.from_size("base", v)
        model.build()
    assert model.count_params() == expected
    assert [b.convolution.dilation_rate for b in model.decoder_blocks] == (
        [1, 2, 4, 8, 16] * 6
    )
