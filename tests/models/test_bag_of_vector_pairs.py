"""Two bags of vectors: the baseline's equations."""

import numpy as np

from keras_attention import models

V, CLASSES = 23, 5
INPUTS = {
    "source_ids": np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]]),
    "pair_ids": np.array([[19, 5, 3], [22, 3, 0]]),
}


def mean(model, tokens):
    embeddings = model.embedding.get_weights()[0]
    w, b = model.projection.get_weights()
    rows = [np.tanh(embeddings[token] @ w + b) for token in tokens]
    return sum(rows) / len(rows)


def read(model, premise, hypothesis):
    """Logits of one pair: the equations of the class."""
    z = np.concatenate([mean(model, premise), mean(model, hypothesis)])
    for layer in model.hidden_layers:
        w, b = layer.get_weights()
        z = np.tanh(z @ w + b)
    w, b = model.output_projection.get_weights()
    return z @ w + b


def test_equals_the_equations(randomize):
    model = randomize(
        models.BagOfVectorPairs(V, CLASSES, 7, 11, units=13, num_layers=3)
    )
    expected = [
        read(model, a[a > 0], b[b > 0])
        for a, b in zip(*INPUTS.values(), strict=True)
    ]
    np.testing.assert_allclose(model(INPUTS), expected, rtol=1e-4, atol=1e-5)
