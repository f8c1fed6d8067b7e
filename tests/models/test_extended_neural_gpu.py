import keras
import numpy as np
import pytest

from keras_attention import models
from keras_attention.data.embedded import addition
from keras_attention.models import extended_neural_gpu
from keras_attention.tokens import END, START
from keras_attention.training import losses

V, SOURCE_V, FILTERS, HEIGHT = 23, 19, 5, 3


def gate(x):
    return np.clip(1.2 / (1 + np.exp(-x)) - 0.1, 0, 1)


def convolve(image, kernel, bias):
    """3 x 3 places around each, and 0 outside of the image."""
    columns, rows, _ = image.shape
    output = np.zeros((columns, rows, kernel.shape[-1])) + bias
    for column in range(columns):
        for row in range(rows):
            for i in range(3):
                for j in range(3):
                    x, y = column + i - 1, row + j - 1
                    if 0 <= x < columns and 0 <= y < rows:
                        output[column, row] += image[x, y] @ kernel[i, j]
    return output


def cgru(s, weights, tape=None):
    """The equations of `ConvolutionalGRU`."""
    gate_kernel, gate_bias, kernel, bias = weights

    def beside_tape(x):
        return x if tape is None else np.concatenate([x, tape], axis=-1)

    gates = gate(convolve(beside_tape(s), gate_kernel, gate_bias))
    u, r = gates[..., :FILTERS], gates[..., FILTERS:]
    candidate = np.tanh(convolve(beside_tape(r * s), kernel, bias))
    return u * s + (1 - u) * candidate


def translate(model, source, target):
    """Logits of one pair without padding: the equations of the class."""
    image = np.zeros((len(source), HEIGHT, FILTERS))
    image[:, 0] = model.source_embedding.get_weights()[0][source]
    for _ in source:
        for cell in model.encoder:
            image = cgru(image, cell.get_weights())
    tape, logits = np.zeros_like(image), []
    for t, token in enumerate(target):
        if t == len(image):  # A column more, in both.
            image, tape = (
                np.concatenate([x, np.zeros((1, HEIGHT, FILTERS))])
                for x in (image, tape)
            )
        tape[t, 0] = model.target_embedding.get_weights()[0][token]
        for cell in model.decoder:
            image = cgru(image, cell.get_weights(), tape)
        w, b = model.output_projection.get_weights()
        logits.append(image[t, 0] @ w + b)
    return logits


@pytest.fixture
def model(randomize):
    return randomize(
        models.ExtendedNeuralGPU(
            V, SOURCE_V, filters=FILTERS, height=HEIGHT, num_layers=2
        )
    )


def test_equals_the_equations(model):
    """One answer is shorter than its source, one is longer."""
    source_ids = np.array([[5, 7, 11, 13, 3], [17, 3, 0, 0, 0]])
    target_ids = np.array([[2, 19, 5, 8], [2, 22, 4, 9]])
    logits = model({"source_ids": source_ids, "target_ids": target_ids})
    for row, length in enumerate([5, 2]):
        np.testing.assert_allclose(
            logits[row],
            translate(model, source_ids[row, :length], target_ids[row]),
            atol=1e-5,
        )


def test_a_closed_gate_keeps_the_image_exactly(rng):
    """The gate's cut: a sigmoid alone is never 1."""
    cell = extended_neural_gpu.ConvolutionalGRU(FILTERS)
    image = rng.normal(size=(1, 7, HEIGHT, FILTERS)).astype("float32")
    mask = np.ones((1, 7), "bool")
    cell.build(image.shape)
    gate_kernel, gate_bias, kernel, bias = cell.get_weights()
    weights = [0 * gate_kernel, 0 * gate_bias + 5, kernel, bias]
    cell.set_weights(weights)
    np.testing.assert_array_equal(cell(image, mask), image)


def test_news_travel_two_columns_in_a_step(rng):
    """One column through the candidate, and one through its reset gate."""
    cell = extended_neural_gpu.ConvolutionalGRU(FILTERS)
    image = rng.normal(size=(1, 11, HEIGHT, FILTERS)).astype("float32")
    mask = np.ones((1, 11), "bool")
    before = cell(image, mask).numpy()
    image[0, 5] += 1
    moved = np.abs(cell(image, mask) - before).max(axis=(0, 2, 3)) > 0
    np.testing.assert_array_equal(np.flatnonzero(moved), [3, 4, 5, 6, 7])


def test_columns_outside_of_the_mask_are_zero(rng):
    cell = extended_neural_gpu.ConvolutionalGRU(FILTERS)
    image = rng.normal(size=(1, 7, HEIGHT, FILTERS)).astype("float32")
    mask = np.arange(7)[None] < 4
    image[~mask] = 0
    following = cell(image, mask).numpy()
    assert not following[~mask].any() and following[mask].any()
    np.testing.assert_allclose(
        following[:, :4], cell(image[:, :4], mask[:, :4]), atol=1e-6
    )


def test_the_weights_of_a_step_are_uniform(model):
    memory = model.encode(np.array([[5, 7, 11, 3], [17, 3, 0, 0]]))
    np.testing.assert_allclose(
        memory["attention_weights"], [[0.25] * 4, [0.5, 0.5, 0, 0]]
    )


@pytest.mark.parametrize(
    "choices",
    [{"height": 0}, {"num_layers": 0}, {"kernel_size": 2}],
)
def test_a_wrong_size_is_refused(choices):
    ((name, value),) = choices.items()
    with pytest.raises(ValueError, match=f"{name}={value}"):
        models.ExtendedNeuralGPU(V, **choices)


@pytest.mark.parametrize("height, rows", [(1, 1), (2, 3), (4, 3)])
def test_parameters(height, rows):
    """Kernels of 3 x 3; where the image has one row, of 3 x 1."""
    m, num_layers = FILTERS, 2
    model = models.ExtendedNeuralGPU(V, SOURCE_V, m, height, num_layers)
    model.build()
    encoder = 3 * (3 * rows * m * m + m)
    decoder = 3 * (3 * rows * 2 * m * m + m)
    assert model.count_params() == (
        num_layers * (encoder + decoder) + (SOURCE_V + V) * m + (m + 1) * V
    )


def sums(pairs):
    """`source_ids`, `target_ids` and `labels` of sums of as many bits."""
    sources, targets = (
        END
        + 1
        + np.array([["01+".index(sign) for sign in text] for text in of])
        for of in zip(*pairs, strict=True)
    )
    start, end = (np.full((len(pairs), 1), sign) for sign in (START, END))
    return (
        np.concatenate([sources, end], axis=1),
        np.concatenate([start, targets], axis=1),
        np.concatenate([targets, end], axis=1),
    )


@pytest.mark.slow
def test_adds_ten_bits_after_fewer_bits():
    """Every bit of sums that training has not had, but for one in twenty.

    Numbers of three bits come first, and those of ten in the second half.
    Kaiser and Sutskever 2016 have such a curriculum, too. All lengths at once
    fail with most seeds.

    Sums of 20 and 40 bits are tried as well. How many are right as a whole
    depends on the seed, and may be none of 40 bits. So their bound is weak:
    more bits are right than where each two bits are added without carries.
    """
    splits = addition.generate()
    most, batch_tokens, num_steps = addition.MOST_BITS, 512, 2000
    of_bits = {
        bits: sums([p for p in splits["train"] if len(p[1]) == bits + 1])
        for bits in range(1, most + 1)
    }
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(1)
    model = models.ExtendedNeuralGPU.from_size("mini", END + 4, dropout=0.0)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, num_steps - 200, warmup_target=2e-3, warmup_steps=200
    )
    model.compile(
        keras.optimizers.Adam(schedule, global_clipnorm=1.0),
        losses.TokenCrossEntropy(),
        jit_compile=False,
    )
    for step in range(num_steps):
        longest = min(most, 3 + 2 * (most - 3) * step // num_steps)
        bits = rng.integers(1, longest + 1)
        source_ids, target_ids, labels = of_bits[bits]
        rows = rng.integers(len(labels), size=batch_tokens // (bits + 2))
        model.train_on_batch(
            {"source_ids": source_ids[rows], "target_ids": target_ids[rows]},
            labels[rows],
        )
    for split in ("test", "test_20", "test_40"):
        source_ids, target_ids, labels = sums(splits[split])
        inputs = {"source_ids": source_ids, "target_ids": target_ids}
        found = np.argmax(model.predict(inputs, verbose=0), axis=-1)
        is_right = found == labels
        bits = addition.LENGTHS[split]
        differ = source_ids[:, :bits] != source_ids[:, bits + 1 : -1]
        without_carries = END + 1 + np.pad(differ, ((0, 0), (0, 1)))
        share = np.mean(without_carries == labels[:, :-1])
        assert np.mean(is_right[:, :-1]) > share
        # Where each token is right after right ones, so is greedy search.
        assert split != "test" or np.mean(is_right.all(axis=1)) > 0.95
