"""What chapters 5 and 12 to 14 print as formulas, in numpy.

Each function reads like its formula. The weights are those of the package's
layers, drawn at random, biases too. Vectors are rows.
"""

import math

import keras
import numpy as np
import pytest

from keras_attention import layers, models
from keras_attention.models import bytenet, conv_seq2seq, extended_neural_gpu
from keras_attention.models.char_cnn_language_model import Highway

rng = np.random.default_rng(1)


def drawn(layer):
    """The layer, its weights drawn."""
    for weight in layer.weights:
        weight.assign(rng.normal(0, 0.4, weight.shape))
    return layer


def inputs(*shape):
    return rng.normal(size=shape).astype("float32")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(scores):
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def layer_norm(norm, x):
    gamma, beta = norm.get_weights()
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return gamma * (x - mean) / np.sqrt(variance + 1e-6) + beta


def window(x, kernel, bias, dilation=1):
    """Causal: place j = 0 of the window is the oldest word."""
    size = len(kernel)
    return np.array(
        [
            bias
            + sum(
                x[t - (size - 1 - j) * dilation] @ kernel[j]
                for j in range(size)
                if t - (size - 1 - j) * dilation >= 0
            )
            for t in range(len(x))
        ]
    )


def test_chapter_12_a_layer_of_convs2s():
    hidden, embedding, m, T = 7, 5, 3, 4
    layer = drawn(conv_seq2seq._DecoderLayer(hidden, embedding, 3, 0.0))
    x, g = inputs(T, hidden), inputs(T, embedding)
    z, e = inputs(2, m, embedding)

    half = math.sqrt(1 / 2)
    W_d, b_d = layer.query_projection.get_weights()
    W_c, b_c = layer.context_projection.get_weights()
    A, B = np.split(window(x, *layer.convolution.get_weights()), 2, axis=1)
    h = A * sigmoid(B)
    d = half * (h @ W_d + b_d + g)
    a = softmax(d @ z.T)
    c = math.sqrt(m) * a @ (z + e)
    o = half * (half * (h + c @ W_c + b_c) + x)

    memory = {
        "keys": z[None],
        "values": math.sqrt(m) * (z + e)[None],
        "mask": np.ones((1, m), bool),
    }
    outputs, weights = layer(x[None], g[None], memory)
    np.testing.assert_allclose(outputs[0], o, atol=1e-5)
    np.testing.assert_allclose(weights[0], a, atol=1e-5)


def test_chapter_12_values_of_convs2s_have_the_root_of_their_number():
    model = models.ConvSeq2Seq.from_size(
        "mini", 11, embedding_dim=6, hidden_dim=5, num_layers=1
    )
    model.build()
    drawn(model)
    memory = model.encode(np.array([[4, 7, 9, 3, 0]]))
    e = (
        model.source_embedding.get_weights()[0][[4, 7, 9, 3]]
        + model.source_positions.get_weights()[0][:4]
    )
    z = np.array(memory["keys"])[0, :4]
    np.testing.assert_allclose(
        memory["values"][0, :4], math.sqrt(4) * (z + e), rtol=1e-4, atol=1e-5
    )


def test_chapter_12_a_block_of_bytenet():
    d, r = 5, 2
    block = drawn(bytenet._ResidualBlock(d, 3, r, True, 0.0))
    x = inputs(8, 2 * d)
    first, second, third = block.norms
    W_1, b_1 = block.contract.get_weights()
    W_3, b_3 = block.expand.get_weights()

    def rho(norm, x):
        return np.maximum(0, layer_norm(norm, x))

    u = rho(second, rho(first, x) @ W_1 + b_1)
    v = window(u, *block.convolution.get_weights(), dilation=r)
    expected = x + rho(third, v) @ W_3 + b_3
    np.testing.assert_allclose(block(x[None])[0], expected, atol=1e-4)


def test_chapter_12_a_convolutional_gru():
    width, columns = 5, 6
    cell = extended_neural_gpu.ConvolutionalGRU(width)
    cell.build((None, None, 1, width))
    drawn(cell)
    s = inputs(columns, width)
    gate_kernel, gate_bias, kernel, bias = cell.get_weights()

    def star(kernel, bias, s):
        """Column t: b + U_-1 s_(t-1) + U_0 s_t + U_1 s_(t+1)."""
        padded = np.pad(s, ((1, 1), (0, 0)))
        return bias + sum(
            padded[j : j + columns] @ kernel[j, 0] for j in range(3)
        )

    def sharpened(x):
        return np.maximum(0, np.minimum(1, 1.2 * sigmoid(x) - 0.1))

    gates = sharpened(star(gate_kernel, gate_bias, s))
    u, r = gates[:, :width], gates[:, width:]
    candidate = np.tanh(star(kernel, bias, r * s))
    expected = u * s + (1 - u) * candidate
    found = cell(s[None, :, None], np.ones((1, columns), bool))
    np.testing.assert_allclose(found[0, :, 0], expected, atol=1e-5)


@pytest.mark.parametrize("N, M", [(4, 8), (16, 32), (16, 16), (32, 128)])
def test_chapter_13_t5s_bucket(N, M):
    def bucket(n):
        if n < N / 2:
            return n
        # Exact where the logarithm is: no rounding at the edges.
        wide = math.log(2 * n / N) / math.log(2 * M / N)
        return min(N - 1, N // 2 + math.floor(N / 2 * wide + 1e-6))

    layer = layers.BucketedBias(N, max_distance=M, bidirectional=False)
    distances = np.arange(3 * M)
    found = keras.ops.convert_to_numpy(layer.buckets(-distances))
    assert found.tolist() == [bucket(n) for n in distances]


def test_chapter_13_alibis_slopes():
    for H in (1, 2, 4, 8, 16):
        expected = [2 ** (-8 * h / H) for h in range(1, H + 1)]
        np.testing.assert_allclose(layers.alibi_slopes(H), expected)
    assert layers.alibi_slopes(8)[::7] == [1 / 2, 1 / 256]
    assert layers.alibi_slopes(2) == [1 / 16, 1 / 256]


def test_chapter_13_the_two_ways_to_pair_features_are_one_score():
    """Columns put in the other order, then turned by halves."""
    d, T = 8, 6
    angles = np.outer(np.arange(T), 10_000.0 ** (-2 * np.arange(d // 2) / d))
    cosine, sine = np.cos(angles), np.sin(angles)

    def by_halves(x):
        first, second = x[:, : d // 2], x[:, d // 2 :]
        return np.concatenate(
            [first * cosine - second * sine, second * cosine + first * sine],
            axis=1,
        )

    q, k = inputs(2, T, d)
    ours = layers.RotaryPositions()
    turned_q, turned_k = (
        np.array(ours.rotate(x[None, None], np.arange(T)))[0, 0] for x in (q, k)
    )
    order = [*range(0, d, 2), *range(1, d, 2)]
    other = by_halves(q[:, order]) @ by_halves(k[:, order]).T
    np.testing.assert_allclose(turned_q @ turned_k.T, other, atol=1e-4)


def test_chapter_13_the_slowest_hand():
    d = 64
    slowest = 10_000.0 ** (-2 * (d / 2 - 1) / d)
    assert 46_500 < 2 * math.pi / slowest < 47_500


def test_chapter_14_a_stack_is_pre_norm_and_tied():
    D, V = 8, 11
    model = models.TransformerLanguageModel(
        V, num_layers=1, hidden_dim=D, intermediate_dim=12, num_heads=2
    )
    model.build()
    drawn(model)
    ids = np.array([4, 7, 9, 5])
    (E,) = model.embedding.get_weights()[:1]
    angles = np.arange(4)[:, None] * 10_000.0 ** (-2 * np.arange(D // 2) / D)
    P = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(4, D)
    (layer,) = model.stack
    (W_1, b_1), (W_2, b_2) = (
        half.get_weights()
        for half in (layer.feed_forward.expand, layer.feed_forward.contract)
    )

    def gelu(x):
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return x / 2 * (1 + np.tanh(inner))

    x = math.sqrt(D) * E[ids] + P
    looked, _ = layer.self_attention(
        layer_norm(layer.self_attention_residual.norm, x)[None],
        use_causal_mask=True,
    )
    y = x + np.array(looked)[0]
    entered = layer_norm(layer.feed_forward_residual.norm, y)
    z = y + gelu(entered @ W_1 + b_1) @ W_2 + b_2
    logits = layer_norm(model.norm, z) @ E.T
    np.testing.assert_allclose(model(ids[None])[0], logits, atol=1e-3)


def test_chapter_14_a_highway():
    layer = Highway()
    layer.build((None, 6))
    W_T, b_T = layer.gate.get_weights()
    assert (b_T == -2).all() and round(float(sigmoid(-2)), 2) == 0.12
    drawn(layer)
    W_H, b_H = layer.transform.get_weights()
    W_T, b_T = layer.gate.get_weights()
    y = inputs(3, 6)
    t = sigmoid(y @ W_T + b_T)
    z = t * np.maximum(0, y @ W_H + b_H) + (1 - t) * y
    np.testing.assert_allclose(layer(y), z, atol=1e-5)


def test_chapter_14_a_picture_is_a_sentence_of_patches():
    model = models.VisionTransformer.from_size("mini", 10, hidden_dim=8)
    model.build()
    drawn(model)
    picture = inputs(8, 8)
    E, bias = model.patch_embedding.get_weights()
    patches = [
        picture[row : row + 2, column : column + 2].ravel()
        for row in range(0, 8, 2)
        for column in range(0, 8, 2)
    ]
    c, P = np.array(model.class_token), np.array(model.position_embeddings)
    x = np.concatenate([c, np.array(patches) @ E + bias]) + P
    for layer in model.stack:
        x, _ = layer(x[None])
        x = np.array(x)[0]
    W, b = model.head.get_weights()
    logits = layer_norm(model.norm, x[0]) @ W + b
    found = model(picture[None, :, :, None])
    np.testing.assert_allclose(found[0], logits, atol=1e-3)


def test_chapter_5_the_root_keeps_scores_as_large_as_one():
    """Divided by d they shrink with the width, by the root they do not."""
    for d in (16, 256):
        q, k = rng.normal(size=(2, 20_000, d))
        products = np.sum(q * k, axis=1)
        np.testing.assert_allclose(np.std(products / math.sqrt(d)), 1, rtol=0.1)
        np.testing.assert_allclose(
            np.std(products / d), 1 / math.sqrt(d), rtol=0.1
        )
