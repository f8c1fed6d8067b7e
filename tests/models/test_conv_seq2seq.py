import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import models

V, SOURCE_V, E, H, L, K = 23, 19, 7, 11, 2, 3
ROOT_HALF = np.sqrt(0.5)


def glu(x):
    a, b = np.split(x, 2)
    return a / (1 + np.exp(-b))


def dense(layer, x):
    w, b = layer.get_weights()
    return x @ w + b


def window(xs, start):
    """K columns from `start`; zeros outside."""
    zero = np.zeros_like(xs[0])
    return [
        xs[i] if 0 <= i < len(xs) else zero for i in range(start, start + K)
    ]


def convolve(layer, columns):
    w, b = layer.get_weights()
    return glu(b + sum(x @ w_j for x, w_j in zip(columns, w, strict=True)))


def embed(words, places, token_ids):
    words, places = words.get_weights()[0], places.get_weights()[0]
    return [words[y] + places[i] for i, y in enumerate(token_ids)]


def read(model, source):
    """z_j and e_j."""
    e = embed(model.source_embedding, model.source_positions, source)
    z = [dense(model.encoder_projection, e_j) for e_j in e]
    for layer in model.encoder:
        z = [
            (convolve(layer, window(z, j - K // 2)) + z[j]) * ROOT_HALF
            for j in range(len(z))
        ]
    return [dense(model.memory_projection, z_j) for z_j in z], e


def translate(model, source, target):
    """Logits and attention [T, L, S] of one pair, by the equations."""
    z, e = read(model, source)
    g = embed(model.target_embedding, model.target_positions, target)
    x = [dense(model.decoder_projection, g_i) for g_i in g]
    attention = np.zeros((len(target), L, len(source)))
    for number, layer in enumerate(model.decoder_layers):
        outputs = []
        for i in range(len(target)):
            h = convolve(layer.convolution, window(x, i - K + 1))
            d = (dense(layer.query_projection, h) + g[i]) * ROOT_HALF  # 1
            a = np.exp([d @ z_j for z_j in z])
            a /= a.sum()
            attention[i, number] = a
            c = sum(
                a_j * (z_j + e_j) for a_j, z_j, e_j in zip(a, z, e, strict=True)
            )  # 2
            c *= np.sqrt(len(source))
            h = (h + dense(layer.context_projection, c)) * ROOT_HALF
            outputs.append((h + x[i]) * ROOT_HALF)
        x = outputs
    logits = [
        dense(model.output_projection, dense(model.readout, x_i)) for x_i in x
    ]
    return np.array(logits), attention


SOURCE_IDS = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])
TARGET_IDS = np.array([[2, 19, 5, 8], [2, 22, 4, 9]])


@pytest.fixture
def model(randomize):
    return randomize(
        models.ConvSeq2Seq(
            V,
            SOURCE_V,
            num_layers=L,
            embedding_dim=E,
            hidden_dim=H,
            kernel_size=K,
            num_positions=6,
        )
    )


def test_equals_the_equations(model):
    logits = model({"source_ids": SOURCE_IDS, "target_ids": TARGET_IDS})
    memory = model.encode(SOURCE_IDS)
    state = model.initial_state(memory)
    expected = [
        translate(model, SOURCE_IDS[row, :length], TARGET_IDS[row])
        for row, length in enumerate([5, 3])
    ]
    for row in range(2):
        np.testing.assert_allclose(logits[row], expected[row][0], atol=1e-5)
    for t in range(4):
        _, state, weights = model.step(TARGET_IDS[:, t], memory, state)
        assert weights.shape == (2, L, 5)
        for row, length in enumerate([5, 3]):
            np.testing.assert_allclose(
                weights[row, :, :length], expected[row][1][t], atol=1e-5
            )


def test_no_gradient_from_the_future(model):
    """d logit_t / d y_s is exactly 0 for s > t, and not 0 for s = t."""
    target_ids = np.array([[2, 19, 5, 8, 11, 4]])
    for t in range(6):
        with tf.GradientTape() as tape:
            logits = model(
                {"source_ids": SOURCE_IDS[:1], "target_ids": target_ids}
            )
            logit = tf.reduce_sum(logits[:, t])
        gradient = tf.convert_to_tensor(
            tape.gradient(logit, model.target_embedding.embeddings.value)
        ).numpy()[target_ids[0]]
        assert (gradient[t + 1 :] == 0).all()
        assert (np.abs(gradient[t]) > 0).any()


def test_state_is_the_last_inputs_of_each_layer(model):
    memory = model.encode(SOURCE_IDS)
    state = model.initial_state(memory, max_length=6)
    shapes = [tuple(x.shape) for x in keras.tree.flatten(state)]
    assert shapes == [(2, K - 1, H)] * L + [(2,)]


def test_initial_weights():
    """Section 3.5: N(0, sqrt(p / n)), 4 times the variance before a GLU."""
    e, h, p = 64, 96, 0.75
    keras.utils.set_random_seed(1)
    model = models.ConvSeq2Seq(
        V, num_layers=1, embedding_dim=e, hidden_dim=h, dropout=1 - p
    )
    model.build()
    (decoder_layer,) = model.decoder_layers
    variances = {
        model.encoder_projection: p / e,
        model.encoder[0]: 4 * p / (K * h),
        model.memory_projection: 1 / h,
        model.decoder_projection: p / e,
        decoder_layer.convolution: 4 * p / (K * h),
        decoder_layer.query_projection: 1 / h,
        decoder_layer.context_projection: 1 / e,
        model.readout: 1 / h,
    }
    for layer, variance in variances.items():
        kernel = layer.get_weights()[0]
        np.testing.assert_allclose(kernel.std(), variance**0.5, rtol=0.04)


def test_an_even_kernel_is_refused():
    with pytest.raises(ValueError, match="Received: kernel_size=4"):
        models.ConvSeq2Seq(V, kernel_size=4)


def test_papers_size(without_memory):
    """20 + 20 layers, 512 wide, k = 3, with 40,000 joint tokens."""
    v, n, num_layers, k, places = 40_000, 512, 20, 3, 1024
    convolution = k * n * 2 * n + 2 * n
    dense = n * n + n
    expected = (
        2 * v * n  # Words.
        + 2 * places * n
        + num_layers * convolution
        + 2 * dense  # Encoder.
        + num_layers * (convolution + 2 * dense)
        + 2 * dense  # Decoder.
        + v * n
        + v
    )
    with without_memory():
        model = models.ConvSeq2Seq.from_size("base", v)
        model.build()
    assert model.count_params() == expected


def test_more_tokens_than_positions_are_refused(model):
    message = "6 learned positions.* 7 tokens"
    long = np.array([[5, 7, 11, 13, 3, 8, 9]])
    with pytest.raises(ValueError, match=message):
        model.encode(long)
    with pytest.raises(ValueError, match=message):
        model({"source_ids": SOURCE_IDS, "target_ids": long})
    with pytest.raises(ValueError, match=message):
        model.initial_state(model.encode(SOURCE_IDS), max_length=7)
