"""The encoder as a classifier: its equations, and which position answers."""

import math

import numpy as np
import pytest

from keras_attention import layers, models

V, CLASSES, D, HEADS = 23, 5, 14, 2
IDS = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])


def make(num_layers=2, **arguments):
    return models.EncoderClassifier(
        V, CLASSES, num_layers, D, 13, HEADS, **arguments
    )


def normalised(x, layer):
    gamma, beta = layer.get_weights()
    centred = x - x.mean()
    return gamma * centred / math.sqrt((centred**2).mean() + 1e-6) + beta


def attention(rows, layer):
    """Self-attention of all rows, head by head; and its weights."""
    names = ("query", "key", "value", "output")
    kernel = {n: np.array(getattr(layer, f"{n}_kernel")) for n in names}
    bias = {n: np.array(getattr(layer, f"{n}_bias")) for n in names}
    outputs, of_heads = [], np.zeros((HEADS, len(rows), len(rows)))
    width = D // HEADS
    projected = {
        n: np.array([row @ kernel[n] + bias[n] for row in rows])
        for n in names[:3]
    }
    for t in range(len(rows)):
        contexts = []
        for head in range(HEADS):
            part = slice(head * width, (head + 1) * width)
            q = projected["query"][t, part]
            scores = projected["key"][:, part] @ q / math.sqrt(width)
            weights = np.exp(scores) / np.exp(scores).sum()
            of_heads[head, t] = weights
            contexts.append(weights @ projected["value"][:, part])
        outputs.append(
            np.concatenate(contexts) @ kernel["output"] + bias["output"]
        )
    return outputs, of_heads


def read(model, tokens):
    """The outputs x^N of one text, and each layer's weights."""
    positions = np.array(layers.sinusoidal_positions(np.arange(len(tokens)), D))
    embeddings = model.embedding.get_weights()[0]
    x = [
        math.sqrt(D) * embeddings[token] + position
        for token, position in zip(tokens, positions, strict=True)
    ]
    of_layers = []
    for layer in model.encoder_layers:
        entered = [
            normalised(row, layer.self_attention_residual.norm) for row in x
        ]
        contexts, weights = attention(entered, layer.self_attention)
        of_layers.append(weights)
        x = [row + context for row, context in zip(x, contexts, strict=True)]
        w_1, b_1 = layer.feed_forward.expand.get_weights()
        w_2, b_2 = layer.feed_forward.contract.get_weights()
        for t, row in enumerate(x):
            z = normalised(row, layer.feed_forward_residual.norm)
            x[t] = row + np.maximum(z @ w_1 + b_1, 0) @ w_2 + b_2
    return [normalised(row, model.norm) for row in x], of_layers


@pytest.mark.parametrize("answer_position", [-1, -3, -9, None])
@pytest.mark.parametrize("num_layers", [0, 1, 2])
def test_equals_the_equations(num_layers, answer_position, randomize):
    model = randomize(make(num_layers, answer_position=answer_position))
    logits, weights = model.attend({"source_ids": IDS})
    w, b = model.output_projection.get_weights()
    assert weights.shape == (2, num_layers, HEADS, 5, 5)
    for row, tokens in enumerate(IDS):
        tokens = tokens[tokens > 0]
        outputs, of_layers = read(model, tokens)
        answer = np.mean(outputs, axis=0)
        if answer_position is not None:
            answer = outputs[max(0, len(tokens) + answer_position)]
        np.testing.assert_allclose(logits[row], answer @ w + b, atol=2e-4)
        n = len(tokens)
        for layer, expected in enumerate(of_layers):
            np.testing.assert_allclose(
                weights[row, layer, :, :n, :n], expected, atol=1e-4
            )


def test_without_layers_the_answer_knows_one_word(randomize):
    model = randomize(make(0, answer_position=-2))
    logits = model({"source_ids": IDS[:1]}).numpy()
    changed = IDS[:1].copy()
    changed[0, :3] = [20, 21, 22]
    np.testing.assert_array_equal(model({"source_ids": changed}), logits)
    changed[0, 3] = 20
    assert np.abs(model({"source_ids": changed}) - logits).max() > 0.1


def test_a_position_from_the_beginning_is_refused():
    with pytest.raises(ValueError, match="must be negative"):
        make(answer_position=0)
