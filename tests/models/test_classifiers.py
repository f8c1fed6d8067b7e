"""The contract of classifiers, for every one in the catalogue."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny

from keras_attention import models

V, CLASSES = 23, 5
INPUTS = {
    "source_ids": np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]], "int32"),
    "pair_ids": np.array([[19, 5, 3], [22, 3, 0]], "int32"),
    # Two sentences in the first story, one in the second.
    "story_ids": np.array([[5, 3, 11, 13, 3], [17, 6, 3, 0, 0]], "int32"),
    "question_ids": np.array([[19, 5, 3], [22, 3, 0]], "int32"),
}
# Name of a test -> a model of the catalogue and its arguments.
VARIANTS = {
    name: (name, {})
    for name in tiny.names("classification", "entailment", "question_answering")
} | {
    "linear bag": ("bag_of_vectors", {"num_layers": 0}),
    "no layer": ("encoder_classifier", {"num_layers": 0}),
    "mean": (
        "encoder_classifier",
        {"num_layers": 1, "num_heads": 2, "answer_position": None},
    ),
    "layer-wise": (
        "end_to_end_memory_network",
        {"tying": "layer_wise", "sentence_encoding": "bag"},
    ),
    "linear hops": ("end_to_end_memory_network", {"is_linear": True}),
    "empty memories": (
        "end_to_end_memory_network",
        {"sentence_encoding": "centred", "has_empty_memories": True},
    ),
}
every_model = pytest.mark.parametrize("name", VARIANTS)


def random_model(name, randomize):
    paper, arguments = VARIANTS[name]
    return randomize(tiny.create(paper, V, **arguments))


def inputs_of(model, inputs=INPUTS):
    return {name: inputs[name] for name in model.text_names}


def weights_of(model, inputs):
    """Each array of weights, and the ids that its last axis is over."""
    _, weights = model.attend(inputs)
    if not isinstance(weights, tuple):
        return [(weights.numpy(), inputs[model.text_names[0]])]
    of_pair, of_source = weights
    return [
        (of_pair.numpy(), inputs["pair_ids"]),
        (of_source.numpy(), inputs["source_ids"]),
    ]


@every_model
def test_padding_and_the_rest_of_the_batch_change_nothing(name, randomize):
    model = random_model(name, randomize)
    assert isinstance(model, models.Classifier)
    inputs = inputs_of(model)
    logits = model(inputs).numpy()
    assert logits.shape == (2, CLASSES)
    assert np.ptp(logits) > 0.1
    for row in range(2):
        alone = {
            key: np.pad(ids[row : row + 1], [[0, 0], [0, 3]])
            for key, ids in inputs.items()
        }
        np.testing.assert_allclose(model(alone)[0], logits[row], atol=1e-5)


@every_model
def test_weights_sum_to_one_over_the_real_tokens(name, randomize):
    model = random_model(name, randomize)
    for weights, ids in weights_of(model, inputs_of(model)):
        assert weights.shape[0] == 2 and weights.shape[-1] == ids.shape[1]
        real = (ids > 0).reshape(2, *[1] * (weights.ndim - 2), -1)
        np.testing.assert_array_equal(weights * ~real, 0)
        if name not in ("no layer", "linear hops", "empty memories"):
            np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)


@every_model
def test_a_model_is_saved_and_loaded(name, tmp_path, randomize):
    model = random_model(name, randomize)
    inputs = inputs_of(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(inputs), model(inputs), atol=1e-6)


@every_model
def test_half_precision_gives_float32_logits(name):
    paper, arguments = VARIANTS[name]
    model = tiny.create(paper, V, **arguments, dtype="mixed_bfloat16")
    model.build()
    inputs = inputs_of(model)
    assert model(inputs).dtype == "float32"
    for weights, _ in weights_of(model, inputs):
        assert weights.dtype == "float32"


# A look-up has no gradient: the memory network has an objective of its own.
@pytest.mark.parametrize(
    "name", [name for name in VARIANTS if name != "memory_network"]
)
def test_every_weight_is_trained(name, randomize):
    model = random_model(name, randomize)
    inputs = inputs_of(model)
    with tf.GradientTape() as tape:
        loss = keras.losses.sparse_categorical_crossentropy(
            np.array([1, 3]), model(inputs), from_logits=True
        )
    gradients = tape.gradient(loss, model.trainable_variables)
    for variable, gradient in zip(
        model.trainable_variables, gradients, strict=True
    ):
        assert gradient is not None, variable.path
        if "key_bias" not in variable.path:  # The softmax takes it away.
            assert np.any(tf.convert_to_tensor(gradient)), variable.path


@pytest.mark.parametrize(
    "inputs",
    [
        INPUTS["source_ids"],
        {},
        INPUTS,
        {"source_ids": INPUTS["source_ids"].astype("float32")},
        {"source_ids": INPUTS["source_ids"][0]},
    ],
)
def test_other_inputs_are_refused(inputs, randomize):
    model = random_model("bag_of_vectors", randomize)
    with pytest.raises(ValueError, match="source_ids. Received: "):
        model(inputs)
