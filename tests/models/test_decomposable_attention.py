"""Decomposable attention: the paper's equations, size and identities."""

import numpy as np

from keras_attention import models

V, CLASSES = 23, 5
INPUTS = {
    "source_ids": np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]]),
    "pair_ids": np.array([[19, 5, 3], [22, 3, 0]]),
}


def network(layers, x):
    for layer in layers:
        w, b = layer.get_weights()
        x = np.maximum(x @ w + b, 0)
    return x


def softmax(scores):
    exponentials = np.exp(scores - np.max(scores))
    return exponentials / exponentials.sum()


def read(model, premise, hypothesis):
    """Logits of one pair: the paper's equations, word by word."""
    embeddings = model.embedding.get_weights()[0]
    (projection,) = model.projection.get_weights()
    a = [embeddings[token] @ projection for token in premise]
    b = [embeddings[token] @ projection for token in hypothesis]

    def f(x):
        return network(model.attend_layers, x)

    def g(x, context):
        return network(model.compare_layers, np.concatenate([x, context]))

    e = np.array([[f(x) @ f(y) for y in b] for x in a])
    v_1 = v_2 = 0
    for i, x in enumerate(a):
        weights = softmax(e[i])
        v_1 = v_1 + g(x, sum(w * y for w, y in zip(weights, b, strict=True)))
    for j, y in enumerate(b):
        weights = softmax(e[:, j])
        v_2 = v_2 + g(y, sum(w * x for w, x in zip(weights, a, strict=True)))
    v = network(model.aggregate_layers, np.concatenate([v_1, v_2]))
    w, b = model.output_projection.get_weights()
    return v @ w + b


def test_equals_the_equations(randomize):
    model = randomize(models.DecomposableAttention(V, CLASSES, 7, 11))
    expected = [
        read(model, a[a > 0], b[b > 0])
        for a, b in zip(*INPUTS.values(), strict=True)
    ]
    np.testing.assert_allclose(model(INPUTS), expected, rtol=1e-3, atol=1e-4)


def test_the_papers_number_of_parameters(without_memory):
    """Section 5.2 counts 382 thousand, without the embeddings."""
    with without_memory():
        model = models.DecomposableAttention.from_size("base", 23)
        model.build()

    def count(*layers):
        return sum(
            np.prod(weight.shape, dtype=int)
            for layer in layers
            for weight in layer.weights
        )

    assert count(model.projection) == 60_000
    assert count(*model.attend_layers) == 80_400
    assert count(*model.compare_layers) == 120_400
    assert count(*model.aggregate_layers, model.output_projection) == 121_003
    assert model.count_params() - 23 * 300 == 381_803


def test_order_means_nothing(randomize, rng):
    model = randomize(models.DecomposableAttention(V, CLASSES, 7, 11))
    shuffled = {name: rng.permuted(ids, axis=1) for name, ids in INPUTS.items()}
    assert any((shuffled[name] != INPUTS[name]).any() for name in INPUTS)
    np.testing.assert_allclose(model(shuffled), model(INPUTS), atol=1e-4)


def test_equal_weights_make_the_other_text_a_bag_of_vectors(randomize):
    """With F = 0, each word meets the mean of the other text's vectors."""
    model = randomize(models.DecomposableAttention(V, CLASSES, 7, 11))
    for layer in model.attend_layers:
        layer.set_weights([0 * weight for weight in layer.get_weights()])
    _, (of_pair, of_source) = model.attend(INPUTS)
    bag = models.BagOfVectorPairs(V, CLASSES, 7, 11, num_layers=1)
    bag.build()
    _, expected = bag.attend(INPUTS)
    for found, equal, asking in zip(
        (of_pair, of_source),
        expected,
        ("source_ids", "pair_ids"),
        strict=True,
    ):
        real = (INPUTS[asking] > 0)[:, :, None]
        np.testing.assert_allclose(found * real, equal * real, atol=1e-6)
    embedded = model.projection(model.embedding(INPUTS["pair_ids"])).numpy()
    mean = embedded[0].mean(axis=0)
    np.testing.assert_allclose(of_pair[0] @ embedded[0], [mean] * 5, atol=1e-5)
