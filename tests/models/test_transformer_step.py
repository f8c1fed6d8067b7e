"""The step that a search takes: the numbers of `step`, in fewer operations."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import models
from keras_attention.models import transformer_step

V, ROOM = 23, 5
SIZES = {
    "num_layers": 2,
    "hidden_dim": 14,
    "intermediate_dim": 13,
    "num_heads": 7,
}
SOURCE_IDS = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])
TARGET_IDS = np.array([[2, 19, 5, 9], [2, 22, 4, 8]], "int32")
# Beside constants, and the weights as they are.
FREE = {"Const", "Identity", "Placeholder", "ReadVariableOp", "NoOp"}


def four_steps(model, step, source_ids):
    """Logits and attention weights of four steps, and the state at the end."""
    memory = model.encode(source_ids)
    state = model.initial_state(memory, ROOM)
    found = []
    for token_ids in TARGET_IDS.T:
        logits, state, weights = step(token_ids, memory, state)
        found += [logits, weights]
    return found, state


def check_equal(ours, expected):
    keras.tree.assert_same_structure(ours, expected)
    for one, other in zip(
        keras.tree.flatten(ours), keras.tree.flatten(expected), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("source_size", [None, 19])
def test_four_steps_are_those_of_the_model(randomize, source_size):
    model = randomize(models.Transformer(V, source_size, **SIZES))
    step = transformer_step.prepare(model)
    check_equal(
        four_steps(model, step, SOURCE_IDS),
        four_steps(model, model.step, SOURCE_IDS),
    )


def test_caches_that_grow(randomize):
    """In a graph that does not know how long a source or an answer is."""
    model = randomize(models.Transformer(V, **SIZES))

    def body(position, state, logits):
        token_ids = tf.gather(TARGET_IDS, position, axis=1)
        logits, state, _ = transformer_step.prepare(model)(
            token_ids, model.encode(SOURCE_IDS), state
        )
        return position + 1, state, logits

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def last_logits(room):
        state = model.initial_state(model.encode(SOURCE_IDS), room)
        assert state["caches"][0].key.shape[2] is None
        loop = lambda position, *_: position < 4  # noqa: E731
        return keras.ops.while_loop(loop, body, (0, state, tf.zeros([2, V])))[2]

    expected, _ = four_steps(model, model.step, SOURCE_IDS)
    np.testing.assert_allclose(last_logits(ROOM), expected[-2], atol=1e-4)


def num_operations(model, step):
    """Operations of TensorFlow in a step between others."""
    memory = model.encode(SOURCE_IDS)
    state = model.initial_state(memory, ROOM)
    specs = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype),
        (tf.constant(TARGET_IDS[:, 0]), memory, state),
    )
    graph = tf.function(step).get_concrete_function(*specs).graph
    return sum(one.type not in FREE for one in graph.get_operations())


def test_a_layer_has_fewer_operations(randomize):
    plain, fast = [], []
    for num_layers in (2, 3):
        sizes = SIZES | {"num_layers": num_layers}
        model = randomize(models.Transformer(V, **sizes))
        step = transformer_step.prepare(model)
        plain.append(num_operations(model, model.step))
        fast.append(num_operations(model, lambda *a, step=step: step(*a)))
    assert fast[1] - fast[0] <= 0.6 * (plain[1] - plain[0])


def is_prepared(model):
    return getattr(model.prepared_step(), "func", None) is transformer_step.step


@pytest.mark.parametrize(
    "name, options",
    [
        ("Transformer", {"norm_first": False}),
        ("Transformer", {"dtype": "mixed_bfloat16"}),
        ("RoFormer", {}),
    ],
)
def test_other_models_keep_their_own_step(randomize, name, options):
    assert is_prepared(randomize(models.Transformer(V, **SIZES)))
    model = randomize(getattr(models, name)(V, **SIZES, **options))
    assert not is_prepared(model)


def test_a_quantized_model_keeps_its_own_step(randomize):
    model = randomize(models.Transformer(V, **SIZES))
    model.quantize(
        "int8", filters=lambda layer: isinstance(layer, keras.layers.Dense)
    )
    assert not is_prepared(model)
