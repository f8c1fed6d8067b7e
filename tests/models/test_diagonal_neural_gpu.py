"""The diagonal Neural GPU against a loop that reads like its equations."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import models
from keras_attention.models import diagonal_neural_gpu

# 7 maps: 3 stay, 2 move to the right, and 2 to the left.
V, SOURCE_V, FILTERS, EXTRA = 23, 19, 7, 2


def hard_tanh(x):
    return np.maximum(-1, np.minimum(1, x))


def hard_sigmoid(x):
    return np.maximum(0, np.minimum(1, (x + 1) / 2))


def cost(x):
    """S: how far |x| is above 0.9, number by number."""
    return sum(max(0, abs(number) - 0.9) for number in np.ravel(x))


def convolve(image, kernel, bias):
    """A column and its two neighbours; 0 outside of the image."""
    columns = len(image)
    output = np.zeros((columns, kernel.shape[-1])) + bias
    for column in range(columns):
        for place in range(3):
            seen = column + place - 1
            if 0 <= seen < columns:
                output[column] += image[seen] @ kernel[place]
    return output


def shift(image):
    """Map by map: 0, 1 and 2 stay, 3 and 4 come from the left."""
    moved = np.zeros_like(image)
    for column in range(len(image)):
        for number in range(FILTERS):
            source = column - [0, 0, 0, 1, 1, -1, -1][number]
            if 0 <= source < len(image):
                moved[column, number] = image[source, number]
    return moved


def dcgru(s, weights):
    """The equations of `DiagonalConvolutionalGRU`, and the step's cost."""
    gate_kernel, gate_bias, kernel, bias = weights
    gates = convolve(s, gate_kernel, gate_bias)
    u, r = (hard_sigmoid(gates[:, part]) for part in (slice(7), slice(7, 14)))
    candidate = convolve(r * s, kernel, bias)
    following = u * shift(s) + (1 - u) * hard_tanh(candidate)
    return following, cost(gates) + cost(candidate)


def compute(model, source):
    """s_n and C / n^2 of one source without padding: n steps."""
    source = [*source, *[0] * EXTRA]
    n = len(source)
    embedded = model.source_embedding.get_weights()[0][source]
    image, total = hard_tanh(embedded), n * cost(embedded)
    for _ in range(n):
        image, of_step = dcgru(image, model.cell.get_weights())
        total += of_step
    return image, total / n**2


def read(model, image, num_tokens):
    """A column for each token; behind the last one there is nothing."""
    w, b = model.output_projection.get_weights()
    empty = np.zeros(FILTERS)
    columns = [*image, *[empty] * num_tokens][:num_tokens]
    return np.array([column @ w + b for column in columns])


@pytest.fixture
def create(randomize):
    def of(**options):
        options = {"extra_columns": EXTRA} | options
        model = models.DiagonalNeuralGPU(V, SOURCE_V, FILTERS, **options)
        # So wide that some inputs are cut, and some are not.
        return randomize(model, scale=0.5)

    return of


SOURCE_IDS = np.array([[5, 7, 11, 13, 3], [17, 3, 0, 0, 0]], "int32")
LENGTHS = 5, 2


def test_equals_the_equations(create):
    """The second answer is longer than its image."""
    model = create()
    target_ids = np.array([[2, 19, 5, 8, 9, 4], [2, 22, 4, 9, 11, 5]])
    logits = model({"source_ids": SOURCE_IDS, "target_ids": target_ids})
    for row, length in enumerate(LENGTHS):
        image, _ = compute(model, SOURCE_IDS[row, :length])
        np.testing.assert_allclose(
            logits[row], read(model, image, 6), atol=1e-4
        )
    bias = model.output_projection.get_weights()[1]
    np.testing.assert_allclose(logits[1, 4:], [bias, bias], atol=1e-6)


def test_the_loss_is_cross_entropy_and_the_cost(create):
    """The cost in training alone, and of each row its own."""
    weight = 0.25
    model = create(saturation_weight=weight)
    labels = np.array([[19, 5, 3], [22, 3, 0]], "int32")
    weights = np.array([[0.2, 0.2, 0.2], [0.2, 0.2, 0]], "float32")
    inputs = {"source_ids": SOURCE_IDS, "target_ids": np.zeros_like(labels)}
    batch = inputs, labels, weights
    for training in (False, True):
        values, real = model.objective(batch, training)["loss"]
        np.testing.assert_array_equal(real, weights > 0)
        for row, length in enumerate(LENGTHS):
            image, of_row = compute(model, SOURCE_IDS[row, :length])
            assert of_row > 0.1
            logits = read(model, image, 3)
            for t, label in enumerate(labels[row]):
                total = np.log(np.exp(logits[t]).sum()) - logits[t, label]
                expected = total + training * weight * of_row
                if weights[row, t]:
                    found = float(values[row, t])
                    assert found == pytest.approx(expected, rel=1e-4)


def test_a_cut_input_learns_by_the_cost_alone(rng):
    """hard_tanh(2) has no gradient, and S(2) has one."""
    cell = diagonal_neural_gpu.DiagonalConvolutionalGRU(FILTERS)
    mask = np.ones((1, 5), "bool")
    cell.build((1, 5, FILTERS))
    cell.bias.assign(2 * np.ones(FILTERS))
    cell.kernel.assign(np.zeros((3, FILTERS, FILTERS)))
    image = rng.uniform(-0.5, 0.5, (1, 5, FILTERS)).astype("float32")
    with tf.GradientTape(persistent=True) as tape:
        following, total = cell(image, mask)
    bias = cell.bias.value
    assert tape.gradient(following, bias, None, "zero").numpy().max() == 0
    # Each of five columns has the slope 1.
    np.testing.assert_array_equal(tape.gradient(total, bias), [5] * FILTERS)


def test_a_gate_that_keeps_all_moves_two_thirds(rng):
    """Exactly: what is kept travels a column a step, and falls off the end."""
    cell = diagonal_neural_gpu.DiagonalConvolutionalGRU(FILTERS)
    mask = np.ones((1, 4), "bool")
    cell.build((1, 4, FILTERS))
    gate_kernel, gate_bias, kernel, bias = cell.get_weights()
    cell.set_weights([0 * gate_kernel, 0 * gate_bias + 1, kernel, bias])
    image = rng.normal(size=(1, 4, FILTERS)).astype("float32")
    following, _ = cell(image, mask)
    np.testing.assert_array_equal(following[0], shift(image[0]))
    for _ in range(3):
        following, _ = cell(following, mask)
    assert not np.any(following[0, :, 3:])
    np.testing.assert_array_equal(following[0, :, :3], image[0, :, :3])


def test_columns_outside_of_the_mask_are_zero_and_cost_nothing(rng):
    cell = diagonal_neural_gpu.DiagonalConvolutionalGRU(FILTERS)
    image = 3 * rng.normal(size=(1, 7, FILTERS)).astype("float32")
    mask = np.arange(7)[None] < 4
    image[~mask] = 0
    following, total = cell(image, mask)
    alone, of_alone = cell(image[:, :4], mask[:, :4])
    assert not np.any(following[0, 4:])
    np.testing.assert_allclose(following[:, :4], alone, atol=1e-6)
    np.testing.assert_allclose(total, of_alone, rtol=1e-5)


def test_the_cost_of_numbers_by_hand():
    """0.9 is free, 1 costs 0.1, and -2.4 costs 1.5."""
    x = np.array([[[0.9, 1.0], [-2.4, 0.0], [9.0, 9.0]]], "float32")
    mask = np.array([[True, True, False]])
    found = diagonal_neural_gpu.saturation_cost(x, mask)
    np.testing.assert_allclose(found, [1.6], rtol=1e-6)


def test_the_first_gates():
    """The authors' first biases: 0.7 keeps 85 %, and 0.5 reads 75 %."""
    cell = diagonal_neural_gpu.DiagonalConvolutionalGRU(FILTERS)
    cell.build((None, None, FILTERS))
    bias = cell.gate_bias.numpy()
    np.testing.assert_allclose(hard_sigmoid(bias[:FILTERS]), 0.85, rtol=1e-6)
    np.testing.assert_allclose(hard_sigmoid(bias[FILTERS:]), 0.75, rtol=1e-6)


def test_dropout_acts_on_the_candidate(rng):
    """A candidate that is dropped is 0, and what is kept stays."""
    cell = diagonal_neural_gpu.DiagonalConvolutionalGRU(FILTERS)
    image = rng.normal(size=(1, 5, FILTERS)).astype("float32")
    mask = np.ones((1, 5), "bool")
    cell.build(image.shape)
    dropped, total = cell(image, mask, noise=0)
    gate_kernel, gate_bias, _, _ = cell.get_weights()
    u = hard_sigmoid(convolve(image[0], gate_kernel, gate_bias))[:, :FILTERS]
    np.testing.assert_allclose(dropped[0], u * shift(image[0]), atol=1e-6)
    np.testing.assert_allclose(total, cell(image, mask)[1], rtol=1e-6)


def test_the_weights_of_a_step_are_uniform(create):
    memory = create().encode(np.array([[5, 7, 11, 3], [17, 3, 0, 0]]))
    np.testing.assert_allclose(
        memory["attention_weights"], [[0.25] * 4, [0.5, 0.5, 0, 0]]
    )


@pytest.mark.parametrize(
    "choices", [{"extra_columns": -1}, {"filters": 2}, {"kernel_size": 2}]
)
def test_a_wrong_size_is_refused(choices):
    ((name, value),) = choices.items()
    with pytest.raises(ValueError, match=f"{name}={value}"):
        models.DiagonalNeuralGPU(V, **choices)


@pytest.mark.parametrize("filters", [FILTERS, 48])
def test_parameters(filters):
    """Three convolutions over three columns, whatever moves."""
    m = filters
    model = models.DiagonalNeuralGPU(V, SOURCE_V, filters)
    model.build()
    assert model.count_params() == (
        SOURCE_V * m + 3 * (3 * m * m + m) + (m + 1) * V
    )
