"""The contract that every language model keeps."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny

from keras_attention import models
from keras_attention.models import catalog
from keras_attention.training import losses

V = 23
# Name of a test -> a model of the catalogue and its arguments.
VARIANTS = {name: (name, {}) for name in tiny.names("language_modelling")} | {
    "rnn_language_model_rnn": ("rnn_language_model", {"cell": "rnn"}),
    "rnn_language_model_gru": ("rnn_language_model", {"cell": "gru"}),
    "rnn_language_model_factorized": (
        "rnn_language_model",
        {"cell": "factorized_lstm_5"},
    ),
    "rnn_language_model_groups": (
        "rnn_language_model",
        {"embedding_dim": 6, "units": 12, "cell": "group_lstm_2"},
    ),
    "rnn_language_model_tied": (
        "rnn_language_model",
        {"embedding_dim": 11, "tied": True},
    ),
    "transformer_language_model_gpt": (
        "transformer_language_model",
        {"max_length": 17, "norm_first": False},
    ),
    "transformer_language_model_gpt2": (
        "transformer_language_model",
        {"max_length": 17},
    ),
    "transformer_language_model_shared_keys": (
        "transformer_language_model",
        {"num_key_value_heads": 1},
    ),
    "char_cnn_language_model_projected": (
        "char_cnn_language_model",
        {"embedding_dim": 7, "projection_dim": 5},
    ),
}
every_model = pytest.mark.parametrize("name", VARIANTS)
# One with a state of Keras's cells, one with a cache, one that spells words.
typical = pytest.mark.fast_for(
    "rnn_language_model",
    "transformer_language_model",
    "char_cnn_language_model",
)
TOKEN_IDS = np.array([[2, 19, 5, 9, 7], [2, 22, 4, 0, 0]], "int32")


def small_model(name):
    paper, arguments = VARIANTS[name]
    return tiny.create(paper, V, **arguments)


@functools.cache
def random_model(name):
    """A small model, random in all weights; it serves several tests."""
    model = small_model(name)
    model.build()
    rng = np.random.default_rng(7)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(scale=0.3, size=weight.shape))
    return model


def steps(model, token_ids, max_length=7):
    """Logits, token by token."""
    state = model.initial_state(len(token_ids), max_length)
    outputs = []
    for t in range(token_ids.shape[1]):
        logits, state = model.step(token_ids[:, t], state)
        outputs.append(logits.numpy())
    return np.stack(outputs, axis=1)


@every_model
def test_steps_equal_call(name):
    model = random_model(name)
    assert isinstance(model, models.LanguageModel)
    logits = model(TOKEN_IDS)
    assert logits.shape == (2, 5, V) and logits.dtype == "float32"
    np.testing.assert_allclose(steps(model, TOKEN_IDS), logits, atol=1e-5)


@typical
@every_model
def test_state_keeps_its_structure_and_its_batch_axis(name):
    model = random_model(name)
    state = model.initial_state(2, 5)
    _, new_state = model.step(TOKEN_IDS[:, 0], state)
    keras.tree.assert_same_structure(state, new_state)
    for old, new in zip(
        keras.tree.flatten(state), keras.tree.flatten(new_state), strict=True
    ):
        assert old.shape == new.shape and old.dtype == new.dtype
        assert old.shape[0] == 2


@typical
@every_model
def test_padding_changes_nothing(name):
    model = random_model(name)
    padded = np.pad(TOKEN_IDS, ((0, 0), (0, 3)))
    np.testing.assert_allclose(
        model(padded)[:, :5], model(TOKEN_IDS), atol=1e-5
    )


@typical
@every_model
def test_a_row_alone_is_the_row_in_its_batch(name):
    model = random_model(name)
    logits = model(TOKEN_IDS).numpy()
    for row, length in enumerate([5, 3]):
        alone = model(TOKEN_IDS[row : row + 1, :length])
        np.testing.assert_allclose(alone[0], logits[row, :length], atol=1e-5)


@every_model
def test_a_token_changes_what_follows_and_nothing_before_it(name):
    model = random_model(name)
    before = model(TOKEN_IDS).numpy()
    for t in range(1, 5):
        changed = TOKEN_IDS.copy()
        changed[:, t] = 8
        after = model(changed).numpy()
        np.testing.assert_allclose(after[:, :t], before[:, :t], atol=1e-6)
        moved = np.abs(after[:, t:] - before[:, t:]).max(axis=-1)
        assert (moved > 1e-5).all()


@pytest.mark.parametrize(
    "vocabulary_size", [53, pytest.param(997, marks=pytest.mark.slow)]
)
@every_model
@pytest.mark.fast_for("rnn_language_model", "lstmn")
def test_first_loss_is_that_of_a_blind_guess(name, vocabulary_size, rng):
    paper, arguments = VARIANTS[name]
    options = {k: one for k, one in arguments.items() if k != "embedding_dim"}
    model = catalog.create(
        paper, "tiny", vocabulary_size=vocabulary_size, **options
    )
    ids = rng.integers(4, vocabulary_size, (2, 29, 17))
    loss = float(losses.TokenCrossEntropy()(ids[1], model(ids[0])))
    assert loss == pytest.approx(np.log(vocabulary_size), rel=0.05)


@typical
@every_model
def test_config_and_file_round_trip(name, tmp_path):
    model = random_model(name)
    clone = type(model).from_config(model.get_config())
    clone.build()
    assert clone.get_config() == model.get_config()
    clone.set_weights(model.get_weights())
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is type(model)
    expected = model(TOKEN_IDS)
    np.testing.assert_array_equal(clone(TOKEN_IDS), expected)
    np.testing.assert_array_equal(loaded(TOKEN_IDS), expected)


@typical
@every_model
def test_weights_file_round_trip(name, tmp_path):
    model = random_model(name)
    model.save_weights(tmp_path / "model.weights.h5")
    other = small_model(name)
    other.build()
    other.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(other(TOKEN_IDS), model(TOKEN_IDS))


@pytest.mark.fast_for("rnn_language_model")
@every_model
def test_export_takes_any_shape(name, tmp_path):
    model = small_model(name)
    model.build()
    model.export(str(tmp_path / "exported"), verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    for batch in (TOKEN_IDS, TOKEN_IDS[1:, :2]):
        np.testing.assert_allclose(
            loaded.serve(tf.constant(batch)), model(batch), atol=1e-5
        )


@typical
@every_model
def test_an_empty_batch(name):
    """In graph, as an export meets it: Keras's LSTM has no eager one."""
    model = random_model(name)
    call = tf.function(
        model, input_signature=[tf.TensorSpec([None, None], "int32")]
    )
    assert call(tf.zeros((0, 5), "int32")).shape == (0, 5, V)


@pytest.mark.fast_for("rnn_language_model", "lstmn")
@pytest.mark.parametrize(
    "dtype", ["bfloat16", pytest.param("float16", marks=pytest.mark.slow)]
)
@every_model
def test_mixed_precision(name, dtype):
    exact = random_model(name)
    config = {**exact.get_config(), "dtype": f"mixed_{dtype}"}
    mixed = type(exact).from_config(config)
    mixed.build()
    assert all(w.dtype == "float32" for w in mixed.trainable_weights)
    mixed.set_weights(exact.get_weights())
    expected = exact(TOKEN_IDS).numpy()
    logits = mixed(TOKEN_IDS)
    assert logits.dtype == "float32"
    share = {"bfloat16": 0.05, "float16": 0.01}[dtype]
    tolerance = share * np.abs(expected).max()
    np.testing.assert_allclose(logits, expected, atol=tolerance)
    np.testing.assert_allclose(steps(mixed, TOKEN_IDS), logits, atol=tolerance)
    state = mixed.initial_state(2, 5)
    _, new_state = mixed.step(TOKEN_IDS[:, 0], state)
    for old, new in zip(
        keras.tree.flatten(state), keras.tree.flatten(new_state), strict=True
    ):
        assert old.dtype == new.dtype


@every_model
def test_every_weight_has_a_gradient(name):
    model = random_model(name)
    with tf.GradientTape() as tape:
        loss = losses.TokenCrossEntropy()(TOKEN_IDS, model(TOKEN_IDS))
    gradients = tape.gradient(loss, [w.value for w in model.trainable_weights])
    for weight, gradient in zip(
        model.trainable_weights, gradients, strict=True
    ):
        assert gradient is not None, weight.path
        assert np.any(tf.convert_to_tensor(gradient)), weight.path


@every_model
@pytest.mark.fast_for("rnn_language_model", "lstmn")
def test_dropout_changes_training_only(name):
    config = random_model(name).get_config()
    model = type(random_model(name)).from_config({**config, "dropout": 0.5})
    still = model(TOKEN_IDS).numpy()
    np.testing.assert_array_equal(model(TOKEN_IDS, training=False), still)
    assert not np.allclose(model(TOKEN_IDS, training=True), still)


@every_model
def test_no_layer_hides_a_method_of_keras(name):
    model = random_model(name)
    hidden = {
        attribute
        for attribute, value in vars(model).items()
        if isinstance(value, keras.Layer | list)
        and hasattr(keras.Model, attribute)
    }
    assert not hidden


@pytest.mark.fast_for("rnn_language_model")
@every_model
def test_trains_by_compile_and_fit(name):
    """With Keras's own choice of a compiler, and batches of two lengths."""
    paper, arguments = VARIANTS[name]
    model = tiny.create(paper, V, **arguments, dropout=0.0)
    model.compile("sgd", losses.TokenCrossEntropy())
    labels = np.array([[19, 5, 9, 7, 3], [22, 4, 3, 0, 0]], "int32")

    def batches():
        yield TOKEN_IDS, labels
        yield TOKEN_IDS[1:, :3], labels[1:, :3]

    ids = tf.TensorSpec([None, None], "int32")
    dataset = tf.data.Dataset.from_generator(
        batches, output_signature=(ids, ids)
    )
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(2))
    history = model.fit(dataset, epochs=2, verbose=0)
    first, second = history.history["loss"]
    assert second < first


def test_the_contract_is_abstract():
    model = models.LanguageModel()
    with pytest.raises(NotImplementedError):
        model.initial_state(2, 5)
    with pytest.raises(NotImplementedError):
        model.step(TOKEN_IDS[:, 0], {})


@pytest.mark.parametrize(
    "inputs, received",
    [
        ({"target_ids": TOKEN_IDS}, "dict"),
        ((TOKEN_IDS, TOKEN_IDS), "tuple"),
        (TOKEN_IDS[0], r"int32 of shape \(5,\)"),
        (TOKEN_IDS.astype("float32"), r"float32 of shape \(2, 5\)"),
    ],
    ids=["dict", "tuple", "one row", "floats"],
)
def test_inputs_that_are_no_ids_are_refused(inputs, received):
    model = small_model("rnn_language_model_gru")
    message = f"takes one integer tensor .* Received: {received}"
    with pytest.raises(ValueError, match=message):
        model(inputs)
