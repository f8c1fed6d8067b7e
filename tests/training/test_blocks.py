"""Cross-entropy by blocks of rows against a numpy loop and the plain loss."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import layers, models
from keras_attention.training import blocks, objectives, trainer

B, T, D, V = 3, 5, 7, 11


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of 4 to 7 rows."""
    monkeypatch.setattr(blocks, "MIN_ROWS", 4)
    monkeypatch.setattr(blocks, "MAX_LOGITS", 1)


def drawn(is_turned=False, has_bias=True, scale=1.0):
    """Factors, labels with padding, and weights that are not all 1."""
    rng = np.random.default_rng(0)
    shape = (V, D) if is_turned else (D, V)
    tensors = [
        tf.constant(rng.normal(scale=scale, size=size), tf.float32)
        for size in ((B, T, D), shape, (V,))
    ]
    labels = rng.integers(1, V, (B, T)).astype("int32")
    weights = rng.integers(1, 4, (B, T)).astype("float32")
    labels[1, 3:] = weights[1, 3:] = 0
    if not has_bias:
        tensors[2] = None
    return tensors, labels, weights


def numpy_loop(tensors, labels, weights, label_smoothing, is_turned):
    """The mean, its gradients and the values of each row, in float64."""
    inputs, kernel, bias = (
        None if one is None else one.numpy().astype("float64")
        for one in tensors
    )
    kernel = kernel.T if is_turned else kernel
    of_inputs, of_kernel = np.zeros((B, T, D)), np.zeros((D, V))
    of_bias, values, total = np.zeros(V), np.zeros((3, B, T)), 0.0
    for b in range(B):
        for t in range(T):
            x, label = inputs[b, t], labels[b, t]
            logits = x @ kernel + (0 if bias is None else bias)
            log_p = logits - logits.max()
            log_p -= np.log(np.sum(np.exp(log_p)))
            q = np.full(V, label_smoothing / V)
            q[label] += 1 - label_smoothing
            values[:, b, t] = (
                -np.sum(q * log_p),
                -log_p[label],
                np.all(logits <= logits[label]),
            )
            share = weights[b, t] / weights.sum()
            total += share * values[0, b, t]
            error = share * (np.exp(log_p) - q)
            of_inputs[b, t] = kernel @ error
            of_kernel += np.outer(x, error)
            of_bias += error
    of_kernel = of_kernel.T if is_turned else of_kernel
    gradients = [of_inputs, of_kernel, of_bias]
    return total, gradients[: 2 if bias is None else 3], values


def by_blocks(tensors, labels, weights, label_smoothing, is_turned, **options):
    """What `numpy_loop` returns, by TensorFlow."""
    known = [one for one in tensors if one is not None]
    with tf.GradientTape() as tape:
        tape.watch(known)
        mean, values = blocks.cross_entropy(
            layers.LogitFactors(*tensors, is_turned),
            labels,
            weights,
            label_smoothing,
            **options,
        )
        upstream = 3.0 * mean
    # The gradient is that of the mean times what comes from above.
    gradients = [one / 3 for one in tape.gradient(upstream, known)]
    return mean, gradients, list(values.values())


# One row, blocks of which the last is shorter, and one block.
@pytest.mark.parametrize("rows", [1, 7, 100])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.3])
@pytest.mark.parametrize("is_turned, has_bias", [(False, True), (True, False)])
def test_value_and_gradients_equal_a_loop(
    rows, label_smoothing, is_turned, has_bias, monkeypatch
):
    monkeypatch.setattr(blocks, "MIN_ROWS", rows)
    tensors, labels, weights = drawn(is_turned, has_bias)
    arguments = tensors, labels, weights, label_smoothing, is_turned
    mean, gradients, values = numpy_loop(*arguments)
    for with_gradient in (True, False):
        found = by_blocks(*arguments, with_gradient=with_gradient)
        np.testing.assert_allclose(found[0], mean, rtol=1e-6)
        np.testing.assert_allclose(found[2], values, rtol=1e-6, atol=1e-6)
        for ours, expected in zip(found[1], gradients, strict=True):
            np.testing.assert_allclose(ours, expected, atol=1e-6)


@pytest.mark.parametrize("is_known", [True, False])
def test_only_a_batch_has_fewer_rows_than_a_block(is_known, monkeypatch):
    monkeypatch.setattr(blocks, "MAX_LOGITS", 6 * V)
    kernel = tf.zeros([D, V])

    def divide(inputs, labels):
        rows = blocks._Rows(labels, tf.ones_like(labels), 0.0, False)
        (inputs, *_), num_blocks = rows._divide([inputs, kernel])
        return tf.shape(inputs)[1], num_blocks

    if not is_known:
        divide = tf.function(
            divide,
            input_signature=[
                tf.TensorSpec([None, D], tf.float32),
                tf.TensorSpec([None], tf.int32),
            ],
        )
    # Batch -> rows of its blocks: no more than 6, if there are 4 in each.
    expected = {3: 3, 4: 4, 6: 6, 7: 7, 8: 4, 12: 4, 15: 5, 24: 5}
    found = {}
    for count in expected:
        size, num_blocks = divide(
            tf.zeros([count, D]), tf.zeros([count], tf.int32)
        )
        found[count] = int(size)
        assert (int(num_blocks) - 1) * found[count] < count
        assert count <= int(num_blocks) * found[count]
    assert found == expected


def test_an_infinite_loss_is_infinite_and_has_a_gradient():
    """A label outside the vocabulary: it was NaN."""
    tensors, labels, weights = drawn()
    labels[0, 1] = V
    objective = objectives.TokenObjective()
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        factors = layers.LogitFactors(*tensors, False)
        measured = objective.measured(factors, labels, weights, True)
        loss = tf.reduce_sum(measured["loss"][0])
    values = measured["loss"][0].numpy()
    assert np.isposinf(values[0, 1]) and np.isfinite(values).sum() == B * T - 1
    for gradient in tape.gradient(loss, tensors):
        assert np.isfinite(gradient).all() and np.any(gradient)


def test_logits_that_are_far_apart():
    tensors, labels, weights = drawn(scale=30.0)
    # Whole numbers, whose products float32 has exactly.
    tensors = [tf.round(one) for one in tensors]
    mean, gradients, _ = by_blocks(tensors, labels, weights, 0.1, False)
    expected = numpy_loop(tensors, labels, weights, 0.1, False)
    assert expected[2][1].max() > 1000  # exp(-1000) is 0.
    np.testing.assert_allclose(mean, expected[0], rtol=1e-6)
    for ours, exact in zip(gradients, expected[1], strict=True):
        np.testing.assert_allclose(ours, exact, rtol=1e-6, atol=1e-6)


def test_a_label_that_does_not_count_may_be_out_of_range():
    tensors, labels, weights = drawn()
    expected = by_blocks(tensors, labels, weights, 0.1, False)
    others = np.where(weights == 0, -1, labels)
    found = by_blocks(tensors, others, weights, 0.1, False)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
    for ours, exact in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(ours, exact, atol=1e-7)
    others[0, 0] = V
    mean, _, values = by_blocks(tensors, others, weights, 0.1, False)
    assert np.isposinf(mean) and np.isposinf(values[0][0, 0])
    assert np.isfinite(values[0][0, 1])


def test_no_weight_gives_0_and_no_gradient():
    tensors, labels, weights = drawn()
    mean, gradients, _ = by_blocks(tensors, labels, 0 * weights, 0.1, False)
    assert mean == 0
    assert not any(np.any(one) for one in gradients)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_graph_of_unknown_lengths(jit_compile):
    """One graph for all batches, that of no rows among them."""
    tensors, labels, weights = drawn()
    unknown = tf.TensorSpec((None, None, D))
    ids = tf.TensorSpec((None, None), tf.int32)
    function = tf.function(
        lambda inputs, labels, weights: by_blocks(
            [inputs, *tensors[1:]], labels, weights, 0.1, False
        ),
        [unknown, ids, tf.TensorSpec((None, None))],
        autograph=False,
        jit_compile=jit_compile,
    )
    for shape in ((3, 5), (2, 3), (1, 1)):
        part = tuple(map(slice, shape))
        rows = tensors[0][part], labels[part], weights[part]
        found = function(*rows)
        expected = by_blocks([rows[0], *tensors[1:]], *rows[1:], 0.1, False)
        for ours, exact in zip(
            tf.nest.flatten(found), tf.nest.flatten(expected), strict=True
        ):
            np.testing.assert_allclose(ours, exact, atol=1e-6)
    if not jit_compile:
        mean, gradients, _ = function(tensors[0][:0], labels[:0], weights[:0])
        assert mean == 0 and gradients[0].shape == (0, T, D)


def language_model(dtype="float32", vocabulary_size=V, **sizes):
    keras.utils.set_random_seed(1)
    model = models.RNNLanguageModel(
        vocabulary_size,
        **{"embedding_dim": D, "units": D, "num_layers": 1} | sizes,
        dropout=0.0,
        dtype=dtype,
    )
    model.build()
    return model


def batch_of_ids(vocabulary_size=V, shape=(B, T)):
    rng = np.random.default_rng(1)
    ids, labels = rng.integers(4, vocabulary_size, (2, *shape), "int32")
    labels[1, 3:] = 0
    weights = np.float32(labels > 0) / np.sum(labels > 0)
    return ids, labels, weights


def measured(model, objective, batch, plain, monkeypatch):
    """The values, and the gradient of the mean loss by each weight."""
    with monkeypatch.context() as patch, tf.GradientTape() as tape:
        if plain:
            patch.setattr(
                objectives, "_logits_by_blocks", contextlib.nullcontext
            )
        values = objective(model, batch, True)
        loss, counts = values["loss"]
        mean = tf.reduce_sum(loss * counts) / tf.reduce_sum(counts)
    sources = [one.value for one in model.trainable_variables]
    gradients = tape.gradient(mean, sources, None, "zero")
    return [value for value, _ in values.values()], [
        tf.convert_to_tensor(one).numpy() for one in gradients
    ]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(
    "dtype, tolerance", [("float32", 1e-6), ("mixed_bfloat16", 2e-2)]
)
def test_an_objective_equals_that_of_all_logits(
    tied, dtype, tolerance, monkeypatch
):
    """Tied: the embedding's gradient has a part of both of its ends."""
    model, batch = language_model(dtype, tied=tied), batch_of_ids()
    objective = objectives.TokenObjective(0.1)
    with layers.left_in_factors():
        assert isinstance(model(batch[0]), layers.LogitFactors)
    values, gradients = measured(model, objective, batch, False, monkeypatch)
    expected, exact = measured(model, objective, batch, True, monkeypatch)
    for one, other in zip(values, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance)
    for one, other in zip(gradients, exact, strict=True):
        # Some 8 bits of the greatest: bfloat16 rounds each product.
        greatest = np.abs(other).max() if dtype != "float32" else 1
        assert greatest > 0
        np.testing.assert_allclose(one, other, atol=tolerance * greatest)


@pytest.mark.parametrize("replicas, micro_batches", [(1, 3), (2, 2)])
def test_a_step_on_replicas_is_that_of_the_whole_batch(
    step_of, replicas, micro_batches
):
    batch = batch_of_ids(shape=(8, T))
    batch[1][6:] = batch[2][6:] = 0  # A part where nothing is real.
    objective = objectives.TokenObjective(0.1)
    whole, logs = step_of(objective, language_model, batch)
    parts, other = step_of(
        objective, language_model, batch, replicas, micro_batches
    )
    for name, value in logs.items():
        assert other[name] == pytest.approx(value, rel=1e-5)
    for ours, expected in zip(parts, whole, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-6)


def greatest_tensor(graph):
    """The most numbers that a tensor of a graph or of its loops has."""
    definition = graph.as_graph_def(add_shapes=True)
    nodes = [*definition.node]
    for function in definition.library.function:
        nodes += function.node_def
    shapes = [
        tf.TensorShape(shape)
        for node in nodes
        for shape in node.attr["_output_shapes"].list.shape
    ]
    return max(
        shape.num_elements() for shape in shapes if shape.is_fully_defined()
    )


@pytest.mark.parametrize("plain", [False, True])
def test_no_tensor_of_a_step_has_all_logits(plain, monkeypatch):
    size, shape = 1009, (6, 7)
    if plain:
        monkeypatch.setattr(
            objectives, "_logits_by_blocks", contextlib.nullcontext
        )
    fitted = trainer.Trainer(language_model(vocabulary_size=size), 0.1)
    fitted.compile(keras.optimizers.SGD(1.0), jit_compile=False)
    fitted.optimizer.build(fitted.model.trainable_variables)
    step = tf.function(fitted.train_step, autograph=False)
    batch = batch_of_ids(size, shape)
    greatest = greatest_tensor(step.get_concrete_function(batch).graph)
    all_logits = shape[0] * shape[1] * size
    if plain:
        assert greatest == all_logits
    else:
        # The kernel and its gradient: D numbers for each token.
        assert greatest == D * size < all_logits / 4
