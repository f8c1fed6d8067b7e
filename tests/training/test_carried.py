"""A state that is carried from batch to batch, beside one long text."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import models
from keras_attention.models import catalog
from keras_attention.training import objectives, trainer

V = 11
MODELS = {
    "lstm": ("rnn_language_model", {"num_layers": 2, "cell": "lstm"}),
    "gru": ("rnn_language_model", {"num_layers": 1, "cell": "gru"}),
    "factorized": (
        "rnn_language_model",
        {"num_layers": 1, "cell": "factorized_lstm_2"},
    ),
    "char_cnn": (
        "char_cnn_language_model",
        {"filters": ((1, 3), (2, 5)), "num_layers": 2},
    ),
    "projected": (
        "char_cnn_language_model",
        {"filters": ((2, 3),), "num_layers": 1, "projection_dim": 3},
    ),
}
STREAM = np.random.default_rng(0).integers(4, V, 24)


def make_model(name):
    keras.utils.set_random_seed(5)
    paper, arguments = MODELS[name]
    if paper == "rnn_language_model":
        arguments = {**arguments, "embedding_dim": 5}
    model = catalog.create(
        paper, "mini", vocabulary_size=V, units=7, dropout=0.0, **arguments
    )
    model.build()
    generator = np.random.default_rng(1)
    for weight in model.trainable_variables:
        weight.assign(generator.normal(0, 0.5, weight.shape))
    return model


def batches(num_rows, length):
    """Batches of a stream whose label is the next token."""
    rows = np.arange(num_rows, dtype="int32")
    inputs = STREAM[:-1][: len(STREAM[1:]) // num_rows * num_rows]
    labels = STREAM[1:][: len(inputs)].reshape(num_rows, -1)
    inputs = inputs.reshape(num_rows, -1)
    for start in range(0, inputs.shape[1], length):
        part = slice(start, start + length)
        of_batch = labels[:, part].astype("int32")
        yield (
            {
                "target_ids": inputs[:, part].astype("int32"),
                "rows": rows,
                "goes_on": np.full(num_rows, start > 0),
            },
            of_batch,
            np.full(of_batch.shape, 1 / of_batch.size, "float32"),
        )


def dataset(num_rows, length):
    made = list(batches(num_rows, length))
    spec = tf.nest.map_structure(
        lambda array: tf.TensorSpec(
            [array.shape[0], *[None] * (array.ndim - 1)], array.dtype
        ),
        made[0],
    )
    return tf.data.Dataset.from_generator(
        lambda: iter(made), output_signature=spec
    ).apply(tf.data.experimental.assert_cardinality(len(made)))


def make_trainer(model, num_rows, optimizer=None, **options):
    objective = objectives.CarriedObjective(model, num_rows)
    fitted = trainer.Trainer(model, objective=objective, **options)
    fitted.compile(optimizer or keras.optimizers.SGD(0.7), jit_compile=False)
    return fitted


@pytest.mark.parametrize("name", MODELS)
def test_one_row_has_the_probability_of_the_whole_stream(name):
    """Whatever the length of its parts; and again, from a state of zeros."""
    model = make_model(name)
    log_p = tf.nn.log_softmax(model(STREAM[None, :-1].astype("int32")))[0]
    expected = -np.mean(log_p.numpy()[np.arange(23), STREAM[1:]])
    fitted = make_trainer(model, 1)
    for length in (5, 23):
        for _ in range(2):
            logs = fitted.evaluate(
                dataset(1, length), verbose=0, return_dict=True
            )
            assert logs["loss"] == pytest.approx(expected, rel=1e-5)
    parts = [model(x["target_ids"]) for x, _, _ in batches(1, 5)]
    apart = tf.nn.log_softmax(np.concatenate(parts, axis=1))[0]
    apart = -np.mean(apart.numpy()[np.arange(23), STREAM[1:]])
    assert abs(apart - expected) > 1e-3  # The state matters.


def stateful(model, num_rows):
    """Keras's own: an LSTM that remembers its last state."""
    stack = keras.Sequential(
        [
            keras.Input(batch_shape=(num_rows, None), dtype="int32"),
            keras.layers.Embedding(V, 5),
            *(
                keras.layers.LSTM(7, return_sequences=True, stateful=True)
                for _ in range(2)
            ),
            keras.layers.Dense(V),
        ]
    )
    for own, weight in zip(
        stack.trainable_variables, model.trainable_variables, strict=True
    ):
        own.assign(weight)
    return stack


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_training_is_that_of_a_stateful_lstm_of_keras(micro_batches):
    """Two epochs of truncated back-propagation, from a state of zeros each."""
    model, num_rows = make_model("lstm"), 3
    theirs = stateful(model, num_rows)
    optimizer = keras.optimizers.SGD(0.7)
    for _ in range(2):
        for layer in theirs.layers:
            if hasattr(layer, "reset_states"):
                layer.reset_states()
        for inputs, labels, _ in batches(num_rows, 3):
            with tf.GradientTape() as tape:
                loss = keras.losses.sparse_categorical_crossentropy(
                    labels, theirs(inputs["target_ids"]), from_logits=True
                )
                loss = tf.reduce_mean(loss)
            weights = theirs.trainable_variables
            gradients = tape.gradient(loss, [w.value for w in weights])
            optimizer.apply(gradients, weights)
    fitted = make_trainer(model, num_rows, micro_batches=micro_batches)
    fitted.fit(dataset(num_rows, 3), epochs=2, verbose=0, shuffle=False)
    for ours, expected in zip(
        model.trainable_variables, theirs.trainable_variables, strict=True
    ):
        np.testing.assert_allclose(ours, expected, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_the_state_is_kept_in_float32(dtype):
    model = models.RNNLanguageModel(V, 5, 7, dtype=dtype)
    model.build()
    objective = objectives.CarriedObjective(model, 2)
    assert len(objective.variables) == 4
    first, second = list(batches(2, 5))[:2]
    for batch in (first, second):
        objective(model, batch, training=False)
    state = model.initial_state(2)
    for inputs, *_ in (first, second):
        _, state = model.advance(inputs["target_ids"], state)
    for found, expected in zip(
        objective.variables, keras.tree.flatten(state), strict=True
    ):
        assert found.dtype == "float32"
        expected = keras.ops.cast(expected, "float32")
        np.testing.assert_array_equal(found.numpy(), expected)


def test_the_catalogue_knows_the_models_whose_state_is_carried():
    for name, entry in catalog.CATALOG.items():
        advance = getattr(getattr(models, entry.class_name), "advance", None)
        is_own = advance not in (None, models.LanguageModel.advance)
        assert is_own == (name in catalog.CARRIED)
        if is_own:
            assert [*inspect.signature(advance).parameters] == [
                *inspect.signature(models.LanguageModel.advance).parameters
            ]
