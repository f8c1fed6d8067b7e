"""The Transformer without a source: its equations and its papers' sizes."""

import math

import keras
import numpy as np
import pytest

from keras_attention import models
from keras_attention.tokens import END, PAD, START
from keras_attention.training import losses

V, D, D_FF, HEADS, LIMIT = 23, 14, 11, 7, 13
SIZES = {
    "num_layers": 3,
    "hidden_dim": D,
    "intermediate_dim": D_FF,
    "num_heads": HEADS,
}
TOKEN_IDS = np.array([[2, 19, 5, 9, 7], [2, 22, 4, 0, 0]])


def softmax(x):
    exponentials = np.exp(x - x.max())
    return exponentials / exponentials.sum()


def gelu(x):
    """Hendrycks & Gimpel 2016, section 2."""
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + np.tanh(inner))


def normalized(x, norm):
    gamma, beta = norm.get_weights()
    deviation = np.sqrt(x.var() + 1e-6)
    return gamma * (x - x.mean()) / deviation + beta


def attend(rows, layer):
    """What each row gets from those before it and itself, head by head."""
    names = ("query", "key", "value", "output")
    kernels = [np.array(getattr(layer, f"{name}_kernel")) for name in names]
    biases = [np.array(getattr(layer, f"{name}_bias")) for name in names]
    queries, keys, values = (
        [row @ kernel + bias for row in rows]
        for kernel, bias in zip(kernels[:3], biases[:3], strict=True)
    )
    width, contexts = D // HEADS, []
    for t in range(len(rows)):
        heads = []
        for start in range(0, D, width):
            part = slice(start, start + width)
            scores = [queries[t][part] @ keys[s][part] for s in range(t + 1)]
            weights = softmax(np.array(scores) / math.sqrt(width))
            heads.append(
                sum(weights[s] * values[s][part] for s in range(t + 1))
            )
        contexts.append(np.concatenate(heads) @ kernels[3] + biases[3])
    return contexts


def feed(row, layer):
    expand, contract = layer.expand.get_weights(), layer.contract.get_weights()
    return gelu(row @ expand[0] + expand[1]) @ contract[0] + contract[1]


def read(model, tokens):
    """Logits of one text: Radford et al. 2018, equation 2."""
    embeddings = model.embedding.get_weights()[0]
    if model.max_length is None:
        angles = [
            [t / 10000 ** (2 * (i // 2) / D) for i in range(D)]
            for t in range(len(tokens))
        ]
        positions = [
            [(math.sin, math.cos)[i % 2](row[i]) for i in range(D)]
            for row in angles
        ]
        embeddings_in = embeddings * math.sqrt(D)
    else:
        positions = model.position_embedding.get_weights()[0]
        embeddings_in = embeddings
    rows = [embeddings_in[i] + positions[t] for t, i in enumerate(tokens)]
    pre_norm = model.config["norm_first"]
    for layer in model.stack:
        for part, residual in (
            (
                lambda x, layer=layer: attend(x, layer.self_attention),
                layer.self_attention_residual,
            ),
            (
                lambda x, layer=layer: [feed(r, layer.feed_forward) for r in x],
                layer.feed_forward_residual,
            ),
        ):
            norm = residual.norm
            if pre_norm:
                outputs = part([normalized(row, norm) for row in rows])
                rows = [x + y for x, y in zip(rows, outputs, strict=True)]
            else:
                outputs = part(rows)
                rows = [
                    normalized(x + y, norm)
                    for x, y in zip(rows, outputs, strict=True)
                ]
    if pre_norm:
        rows = [normalized(row, model.norm) for row in rows]
    return [embeddings @ row for row in rows]


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("max_length", [None, LIMIT])
def test_equals_the_equations(norm_first, max_length, randomize):
    model = randomize(
        models.TransformerLanguageModel(
            V, **SIZES, max_length=max_length, norm_first=norm_first
        )
    )
    logits = model(TOKEN_IDS)
    for row, tokens in enumerate(TOKEN_IDS):
        np.testing.assert_allclose(logits[row], read(model, tokens), atol=1e-4)


def test_equals_keras_hub(randomize):
    """Of KerasHub's GPT-2 with our weights: what its backbone makes."""
    keras_hub = pytest.importorskip("keras_hub")
    model = randomize(
        models.TransformerLanguageModel(V, **SIZES, max_length=LIMIT)
    )
    theirs = keras_hub.models.GPT2Backbone(
        V, 3, HEADS, D, D_FF, 0.0, LIMIT, layer_norm_epsilon=1e-6
    )
    embeddings = theirs.get_layer("token_embedding")
    embeddings.set_weights(model.embedding.get_weights())
    theirs.get_layer("position_embedding").set_weights(
        model.position_embedding.get_weights()
    )
    heads = {"query": (D, HEADS, 2), "key": (D, HEADS, 2)}
    heads |= {"value": (D, HEADS, 2), "output": (HEADS, 2, D)}
    for index, layer in enumerate(model.stack):
        ours, other = layer.self_attention, theirs.transformer_layers[index]
        for name, shape in heads.items():
            dense = getattr(other._self_attention_layer, f"_{name}_dense")
            bias = np.array(getattr(ours, f"{name}_bias"))
            dense.set_weights(
                [
                    np.reshape(getattr(ours, f"{name}_kernel"), shape),
                    bias if name == "output" else bias.reshape(shape[1:]),
                ]
            )
        for norm, residual in (
            (other._self_attention_layer_norm, layer.self_attention_residual),
            (other._feedforward_layer_norm, layer.feed_forward_residual),
        ):
            norm.set_weights(residual.norm.get_weights())
        network = layer.feed_forward
        other._feedforward_intermediate_dense.set_weights(
            network.expand.get_weights()
        )
        other._feedforward_output_dense.set_weights(
            network.contract.get_weights()
        )
    theirs.layer_norm.set_weights(model.norm.get_weights())
    outputs = theirs(
        {"token_ids": TOKEN_IDS, "padding_mask": np.ones((2, 5), "int32")}
    )
    expected = outputs @ keras.ops.transpose(model.embedding.embeddings)
    np.testing.assert_allclose(model(TOKEN_IDS), expected, atol=1e-4)


def formula(v, limit, d, d_ff, n, final_norm):
    """Weights: two embeddings, then n layers; the output is the first one."""
    attention = 4 * (d * d + d)
    feed_forward = d * d_ff + d_ff + d_ff * d + d
    layer = attention + feed_forward + 2 * 2 * d
    return v * d + limit * d + n * layer + final_norm * 2 * d


@pytest.mark.fast_for("gpt2")
@pytest.mark.parametrize(
    "size, vocabulary_size, limit, final_norm, total",
    [
        ("gpt", 40_478, 512, False, 116_534_784),
        ("gpt2", 50_257, 1024, True, 124_439_808),
    ],
)
def test_papers_sizes(
    size, vocabulary_size, limit, final_norm, total, without_memory
):
    """12 layers of 768; the totals are those of the released weights.

    Radford et al. 2019, table 2, prints 117M for the smallest GPT-2: the
    authors' repository has since put it right, to 124M.
    """
    with without_memory():
        model = models.TransformerLanguageModel.from_size(size, vocabulary_size)
        model.build()
    expected = formula(vocabulary_size, limit, 768, 3072, 12, final_norm)
    assert model.count_params() == expected == total


@pytest.mark.parametrize(
    "size, d, d_ff, n", [("mini", 128, 256, 2), ("tiny", 256, 1024, 4)]
)
def test_small_sizes(size, d, d_ff, n, without_memory):
    with without_memory():
        model = models.TransformerLanguageModel.from_size(size, V)
        model.build()
    assert model.count_params() == formula(V, 0, d, d_ff, n, True)


def test_state_is_as_long_as_it_is_asked_to_be(randomize):
    model = randomize(models.TransformerLanguageModel(V, **SIZES))
    state = model.initial_state(2, max_length=11)
    shapes = {tuple(x.shape) for x in keras.tree.flatten(state["caches"])}
    assert shapes == {(2, HEADS, 11, D // HEADS)}
    for t in range(3):
        np.testing.assert_array_equal(state["position"], [t, t])
        _, state = model.step(TOKEN_IDS[:, t], state)


def test_weights_are_a_row_for_each_token(randomize):
    model = randomize(models.TransformerLanguageModel(V, **SIZES))
    _, attention_weights = model.read(TOKEN_IDS)
    assert len(attention_weights) == 3
    for weights in attention_weights:
        assert weights.shape == (2, HEADS, 5, 5)
        np.testing.assert_allclose(np.sum(weights, axis=-1), 1, atol=1e-5)
        assert not np.any(np.triu(weights, k=1))


@pytest.mark.parametrize("is_call", [True, False])
def test_more_tokens_than_positions_are_refused(is_call):
    model = models.TransformerLanguageModel(V, **SIZES, max_length=4)
    with pytest.raises(ValueError, match="4 learned positions.* 5 tokens"):
        if is_call:
            model(TOKEN_IDS)
        else:
            model.initial_state(2, 5)


def test_no_layers_are_refused():
    with pytest.raises(ValueError, match="at least 1. Received: num_layers=0"):
        models.TransformerLanguageModel(V, num_layers=0)


PAIRS, KEYS, VALUES = 8, 12, 12
FIRST_KEY = END + 1
FIRST_VALUE = FIRST_KEY + KEYS


def prompts(rng, count):
    """`token_ids` and `labels` [B, 33]: the texts of chapter 14.

    START and eight keys, each with its value. Then each key again, in another
    order, and its value, which is the key's label. All others are PAD.
    """
    keys = rng.permuted(np.tile(np.arange(KEYS), (count, 1)), axis=1)
    values = rng.integers(VALUES, size=(count, PAIRS))
    pairs = np.stack(
        [FIRST_KEY + keys[:, :PAIRS], FIRST_VALUE + values], axis=-1
    )  # [B, 8, 2]
    asked = rng.permuted(np.tile(np.arange(PAIRS), (count, 1)), axis=1)
    answers = np.take_along_axis(pairs, asked[:, :, None], axis=1)
    token_ids = np.full((count, 1 + 4 * PAIRS), START)
    token_ids[:, 1 : 1 + 2 * PAIRS] = pairs.reshape(count, -1)
    token_ids[:, 1 + 2 * PAIRS :] = answers.reshape(count, -1)
    labels = np.full_like(token_ids, PAD)
    labels[:, 1 + 2 * PAIRS :: 2] = answers[:, :, 1]
    return token_ids, labels


def without_keys(labels):
    """The best recall of who knows the values, and not their keys.

    The best answer is the value that was given most often of those that were
    not yet asked for.
    """
    answers = labels[labels != PAD].reshape(-1, PAIRS)
    shares = [
        np.unique(row[i:], return_counts=True)[1].max() / (PAIRS - i)
        for row in answers
        for i in range(PAIRS)
    ]
    return np.mean(shares)


@pytest.mark.slow
def test_two_layers_recall_by_the_key_and_one_does_not():
    """Elhage et al. 2021: a head looks where another has looked before it.

    In one layer, a question sees values, and not which key stands before each.
    """
    token_ids, labels = prompts(np.random.default_rng(1), 19_200)
    new_ids, new_labels = prompts(np.random.default_rng(2), 500)
    epochs, batch_size, warmup = 10, 128, 100
    steps = epochs * len(labels) // batch_size
    recall = {}
    for num_layers in (1, 2):
        keras.utils.set_random_seed(1)
        model = models.TransformerLanguageModel(
            FIRST_VALUE + VALUES,
            num_layers=num_layers,
            hidden_dim=64,
            intermediate_dim=64,
            num_heads=2,
            dropout=0.0,
        )
        schedule = keras.optimizers.schedules.CosineDecay(
            0.0, steps - warmup, warmup_target=3e-3, warmup_steps=warmup
        )
        model.compile(
            keras.optimizers.Adam(schedule, global_clipnorm=1.0),
            losses.TokenCrossEntropy(),
            jit_compile=False,
        )
        model.fit(
            token_ids, labels, batch_size=batch_size, epochs=epochs, verbose=0
        )
        found = np.argmax(model.predict(new_ids, verbose=0), axis=-1)
        recall[num_layers] = np.mean((found == new_labels)[new_labels != PAD])
    blind, best = 1 / VALUES, without_keys(new_labels)
    deviation = np.sqrt(0.25 / (new_labels != PAD).sum())
    assert blind + 3 * deviation < recall[1] < best + 3 * deviation
    assert recall[2] > 0.95
