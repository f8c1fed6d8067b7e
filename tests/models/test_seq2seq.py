"""The contract that every model keeps."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny

from keras_attention import models
from keras_attention.models import catalog
from keras_attention.training import losses

V, SOURCE_V = 23, 19
# Name of a test -> a model of the catalogue and its arguments.
VARIANTS = {name: (name, {}) for name in tiny.names("translation")} | {
    "luong_bidirectional": ("luong", {"units": 12, "bidirectional": True}),
    "neural_turing_machine_feed_forward": (
        "neural_turing_machine",
        {"controller": "feed_forward"},
    ),
    "transformer_post": ("transformer", {"norm_first": False}),
    "bytenet_convolution": ("bytenet", {"joined_by": "convolution"}),
}
PAPERS = [*VARIANTS]
each_paper = pytest.mark.parametrize("name", PAPERS)
VARIANTS["lstm_encoder_decoder_forward"] = (
    "lstm_encoder_decoder",
    {"num_layers": 1, "reverse_source": False},
)
VARIANTS |= {
    f"luong_{scoring}{'_feeding' if feeding else ''}": (
        "luong",
        {"scoring": scoring, "input_feeding": feeding},
    )
    for scoring in ("dot", "general", "concat")
    for feeding in (False, True)
}
every_model = pytest.mark.parametrize(
    "name",
    [
        *PAPERS,
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in VARIANTS
            if name not in PAPERS
        ),
    ],
)
# Whose answer does not depend on the tokens that were written.
AT_ONCE = ["diagonal_neural_gpu"]
every_vocabulary = pytest.mark.parametrize(
    "sizes", [(V,), (V, SOURCE_V)], ids=["joint", "separate"]
)


def small_model(name, *sizes):
    """The model of a row above; `sizes` are those of its vocabularies."""
    paper, arguments = VARIANTS[name]
    return tiny.create(paper, *sizes, **arguments)


@functools.cache
def random_model(name, *sizes):
    """A small model, random in all weights; it serves several tests."""
    model = small_model(name, *sizes)
    model.build()
    rng = np.random.default_rng(7)
    model.set_weights(
        [rng.normal(scale=0.3, size=w.shape) for w in model.weights]
    )
    return model


@pytest.fixture
def inputs():
    return {
        "source_ids": np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]]),
        "target_ids": np.array([[2, 19, 5, 9], [2, 22, 4, 0]]),
    }


def steps(model, inputs, max_length=7):
    """Logits and attention weights, token by token."""
    memory = model.encode(inputs["source_ids"])
    state = model.initial_state(memory, max_length)
    outputs = []
    for t in range(inputs["target_ids"].shape[1]):
        logits, state, weights = model.step(
            inputs["target_ids"][:, t], memory, state
        )
        outputs.append((logits.numpy(), weights.numpy()))
    logits, weights = zip(*outputs, strict=True)
    return np.stack(logits, axis=1), np.stack(weights, axis=1)


@pytest.mark.fast_for((V,), "rnnsearch", "transformer")
@every_vocabulary
@every_model
def test_steps_equal_call(name, sizes, inputs):
    model = random_model(name, *sizes)
    logits = model(inputs)
    assert logits.shape == (2, 4, V) and logits.dtype == "float32"
    step_logits, weights = steps(model, inputs)
    np.testing.assert_allclose(step_logits, logits, atol=1e-5)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    at_padding = np.broadcast_to(
        np.expand_dims(
            inputs["source_ids"] == 0, tuple(range(1, weights.ndim - 1))
        ),
        weights.shape,
    )
    assert (weights[at_padding] == 0).all()


@pytest.mark.parametrize(
    "name", ["rnn_encoder_decoder", "rnnsearch", "luong", "gnmt"]
)
def test_cells_have_weights_before_a_step_is_traced(name):
    """JAX loses a weight that is made while a scan is traced."""
    decoder = small_model(name, V).decoder
    cells = decoder if isinstance(decoder, list) else [decoder]
    assert all(cell.built for cell in cells)


@every_model
def test_state_keeps_its_structure_and_its_batch_axis(name, inputs):
    model = random_model(name, V)
    memory = model.encode(inputs["source_ids"])
    state = model.initial_state(memory, 5)
    _, new_state, _ = model.step(inputs["target_ids"][:, 0], memory, state)
    keras.tree.assert_same_structure(state, new_state)
    for old, new in zip(
        keras.tree.flatten(state), keras.tree.flatten(new_state), strict=True
    ):
        assert old.shape == new.shape and old.dtype == new.dtype
    for leaf in keras.tree.flatten((memory, state)):
        assert leaf.shape[0] == 2


@pytest.mark.fast_for("rnnsearch", "transformer", "luong", "rnn_transducer")
@every_model
def test_a_prepared_step_is_the_step(name, inputs):
    model = random_model(name, V)
    memory = model.encode(inputs["source_ids"])
    state = model.initial_state(memory, 5)
    arguments = inputs["target_ids"][:, 0], memory, state
    for ours, expected in zip(
        keras.tree.flatten(model.prepared_step()(*arguments)),
        keras.tree.flatten(model.step(*arguments)),
        strict=True,
    ):
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


@each_paper
@pytest.mark.fast_for("rnnsearch", "transformer")
def test_padding_changes_nothing(name, inputs):
    model = random_model(name, V)
    padded = {key: np.pad(ids, ((0, 0), (0, 3))) for key, ids in inputs.items()}
    logits = model(inputs).numpy()
    np.testing.assert_allclose(model(padded)[:, :4], logits, atol=1e-5)
    step_logits, weights = steps(model, padded)
    np.testing.assert_allclose(step_logits[:, :4], logits, atol=1e-5)
    assert (weights[..., 5:] == 0).all()


@each_paper
@pytest.mark.fast_for("rnnsearch", "transformer")
def test_a_row_alone_is_the_row_in_its_batch(name, inputs):
    model = random_model(name, V)
    logits = model(inputs).numpy()
    for row, (source_length, target_length) in enumerate([(5, 4), (3, 3)]):
        alone = {
            "source_ids": inputs["source_ids"][row : row + 1, :source_length],
            "target_ids": inputs["target_ids"][row : row + 1, :target_length],
        }
        np.testing.assert_allclose(
            model(alone)[0], logits[row, :target_length], atol=1e-5
        )


@every_model
@pytest.mark.fast_for("rnnsearch", "transformer")
def test_a_target_token_changes_nothing_before_it(name, inputs):
    model = random_model(name, V)
    before = model(inputs).numpy()
    for t in range(1, 4):
        changed = {key: ids.copy() for key, ids in inputs.items()}
        changed["target_ids"][:, t] = 8
        after = model(changed).numpy()
        np.testing.assert_allclose(after[:, :t], before[:, :t], atol=1e-6)
        moved = np.abs(after[:, t:] - before[:, t:]).max(axis=-1)
        if name in AT_ONCE:
            assert not moved.any()
        else:
            assert (moved > 1e-4).all()


@each_paper
@pytest.mark.fast_for("rnnsearch", "transformer")
def test_each_source_token_reaches_the_logits(name, inputs):
    model = random_model(name, V)
    before = model(inputs).numpy()
    for s in range(5):
        changed = {key: ids.copy() for key, ids in inputs.items()}
        changed["source_ids"][0, s] = 8
        after = model(changed).numpy()
        assert np.abs(after[0] - before[0]).max() > 1e-5
        np.testing.assert_allclose(after[1], before[1], atol=1e-6)


@pytest.mark.fast_for("rnnsearch", "transformer")
@pytest.mark.parametrize(
    "vocabulary_size", [53, pytest.param(997, marks=pytest.mark.slow)]
)
@each_paper
def test_first_loss_is_that_of_a_blind_guess(name, vocabulary_size, rng):
    """-log(1 / V) on random labels: the logits start small."""
    paper, arguments = VARIANTS[name]
    options = {k: one for k, one in arguments.items() if k != "units"}
    model = catalog.create(
        paper, "tiny", vocabulary_size=vocabulary_size, **options
    )
    ids = rng.integers(4, vocabulary_size, (3, 29, 17))
    inputs = {"source_ids": ids[0], "target_ids": ids[1]}
    loss = float(losses.TokenCrossEntropy()(ids[2], model(inputs)))
    assert loss == pytest.approx(np.log(vocabulary_size), rel=0.05)


def names_of(weights):
    return [w.path.partition("/")[2] for w in weights]


@pytest.mark.fast_for("rnnsearch", "transformer", "bytenet")
@each_paper
def test_no_layer_hides_a_method_of_keras(name):
    model = small_model(name, V, SOURCE_V)
    hidden = {
        attribute
        for attribute, value in vars(model).items()
        if isinstance(value, keras.Layer | list)
        and hasattr(keras.Model, attribute)
    }
    assert not hidden
    model.build()
    lines = []
    model.summary(print_fn=lines.append)
    assert f"{model.count_params():,}" in "".join(lines)


@pytest.mark.fast_for("rnnsearch", "transformer")
@every_model
def test_config_and_file_round_trip(name, inputs, tmp_path):
    model = random_model(name, V, SOURCE_V)
    clone = type(model).from_config(model.get_config())
    clone.build()
    assert clone.get_config() == model.get_config()
    assert names_of(clone.weights) == names_of(model.weights)
    clone.set_weights(model.get_weights())
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is type(model)
    expected = model(inputs)
    np.testing.assert_array_equal(clone(inputs), expected)
    np.testing.assert_array_equal(loaded(inputs), expected)


@pytest.mark.fast_for("rnnsearch", "transformer")
@each_paper
def test_file_round_trip_with_a_joint_vocabulary(name, inputs, tmp_path):
    model = random_model(name, V)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(inputs), model(inputs))


@pytest.mark.fast_for("rnnsearch", "transformer")
@each_paper
def test_weights_file_round_trip(name, inputs, tmp_path):
    model = random_model(name, V)
    model.save_weights(tmp_path / "model.weights.h5")
    other = small_model(name, V)
    other.build()
    other.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(other(inputs), model(inputs))


@pytest.mark.fast_for("rnnsearch")
@each_paper
def test_export_takes_any_shape(name, inputs, tmp_path):
    """Keras's own export, of a model that was built and never called."""
    model = small_model(name, V, SOURCE_V)
    model.build()
    model.export(str(tmp_path / "exported"), verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    for rows, length in ((slice(None), None), (slice(1), 2)):
        batch = {
            name: tf.constant(ids[rows, :length], tf.int32)
            for name, ids in inputs.items()
        }
        np.testing.assert_allclose(loaded.serve(batch), model(batch), atol=1e-5)


@pytest.mark.parametrize("name", ["Transformer", "Luong", "LSTMEncoderDecoder"])
def test_a_model_has_layers(name):
    with pytest.raises(ValueError, match="Received: num_layers=0"):
        getattr(models, name)(V, num_layers=0)


@pytest.mark.fast_for("rnnsearch", "transformer")
@each_paper
def test_unknown_lengths(name, inputs):
    model = random_model(name, V)
    ids = tf.TensorSpec([None, None], "int32")

    @tf.function(input_signature=[{"source_ids": ids, "target_ids": ids}])
    def compiled(inputs):
        return model(inputs)

    short = {key: ids[:1, :2] for key, ids in inputs.items()}
    for batch in (inputs, short):
        batch = {key: ids.astype("int32") for key, ids in batch.items()}
        np.testing.assert_allclose(compiled(batch), model(batch), atol=1e-5)


@pytest.mark.fast_for("rnnsearch", "transformer")
@pytest.mark.parametrize(
    "dtype", ["bfloat16", pytest.param("float16", marks=pytest.mark.slow)]
)
@each_paper
def test_mixed_precision(name, dtype, inputs):
    exact = random_model(name, V)
    config = {**exact.get_config(), "dtype": f"mixed_{dtype}"}
    mixed = type(exact).from_config(config)
    mixed.build()
    assert all(w.dtype == "float32" for w in mixed.trainable_weights)
    mixed.set_weights(exact.get_weights())
    expected = exact(inputs).numpy()
    logits = mixed(inputs)
    assert logits.dtype == "float32"
    share = {"bfloat16": 0.05, "float16": 0.01}[dtype]
    tolerance = share * np.abs(expected).max()
    np.testing.assert_allclose(logits, expected, atol=tolerance)
    step_logits, _ = steps(mixed, inputs)
    np.testing.assert_allclose(step_logits, logits, atol=tolerance)


@each_paper
@pytest.mark.fast_for("rnnsearch", "transformer", "bytenet", "conv_seq2seq")
def test_an_empty_batch(name):
    """In graph, as an export meets it: Keras's LSTM has no eager one."""
    model = random_model(name, V)
    spec = tf.TensorSpec([None, None], "int32")
    call = tf.function(
        lambda source, target: model(
            {"source_ids": source, "target_ids": target}
        ),
        input_signature=[spec, spec],
    )
    ids = tf.zeros((0, 5), "int32")
    assert call(ids, ids).shape == (0, 5, V)


def training_loss(model, inputs):
    """What training lowers. A choice that is hard elsewhere may be soft."""
    labels = inputs["target_ids"]
    if model.objective is None:
        logits = model(inputs, training=True)
        return losses.TokenCrossEntropy()(labels, logits)
    batch = inputs, labels, np.ones(labels.shape, "float32")
    values, _ = model.objective(batch, training=True)["loss"]
    return tf.reduce_mean(values)


@each_paper
@pytest.mark.fast_for("rnnsearch", "transformer")
def test_a_source_of_padding_alone_is_finite(name, inputs):
    model = random_model(name, V)
    inputs["source_ids"][1] = 0
    with tf.GradientTape() as tape:
        loss = training_loss(model, inputs)
    variables = [w.value for w in model.trainable_weights]
    assert np.isfinite(model(inputs)).all()
    for gradient in tape.gradient(loss, variables):
        gradient = tf.convert_to_tensor(gradient)
        assert np.isfinite(gradient).all()


@each_paper
def test_every_weight_has_a_gradient(name, inputs):
    model = random_model(name, V)
    with tf.GradientTape() as tape:
        loss = training_loss(model, inputs)
    gradients = tape.gradient(loss, [w.value for w in model.trainable_weights])
    for weight, gradient in zip(
        model.trainable_weights, gradients, strict=True
    ):
        assert gradient is not None, weight.path
        # A bias of all keys cancels in the softmax.
        if not weight.path.endswith("key_bias"):
            assert np.any(tf.convert_to_tensor(gradient)), weight.path


B, S, T, E, U = 2, 5, 4, 7, 11
SOURCE, TARGET = (B, S, E), (B, T, E)


@pytest.mark.parametrize(
    "name, places",
    [
        ("rnn_encoder_decoder", [SOURCE, TARGET, (B, T, 5)]),
        # Before each of the two layers, then before the softmax.
        (
            "lstm_encoder_decoder",
            [SOURCE, (B, S, U), TARGET, (B, T, U), (B, T, U)],
        ),
        ("rnnsearch", [SOURCE, TARGET, (B, T, 5)]),
        # Behind each of the two layers of two directions, and in prediction.
        (
            "rnn_transducer",
            [SOURCE, (B, S, 2 * U), (B, S, 2 * U), TARGET, (B, T, U)],
        ),
        (
            "intra_attention_summarizer",
            [SOURCE, TARGET, (B, T, 6 * U)],
        ),
        # Between the decoder's two layers one mask for all T.
        ("luong", [SOURCE, (B, S, U), TARGET, (B, U), (B, T, U)]),
        # The encoder has three layers. One mask above each of the decoder's.
        (
            "gnmt",
            [SOURCE, (B, S, 2 * U), (B, S, U), TARGET]
            + [(B, U), (B, U), (B, T, U)],
        ),
        ("neural_turing_machine", [SOURCE, TARGET, (B, T, U + 5)]),
        ("transformer", [(B, S, 14), (B, T, 14)]),
    ],
)
def test_where_dropout_acts(name, places, inputs, monkeypatch):
    """In training only; a Transformer's sublayers have theirs besides."""
    model = random_model(name, V)
    seen = []

    def record(x, training=None):
        if training:
            seen.append(tuple(x.shape))
        return x

    monkeypatch.setattr(model, "dropout", record)
    model(inputs)
    assert seen == []
    model(inputs, training=True)
    assert seen == places


@each_paper
@pytest.mark.fast_for("rnnsearch", "transformer")
def test_dropout_changes_training_only(name, inputs):
    config = random_model(name, V).get_config()
    model = type(random_model(name, V)).from_config({**config, "dropout": 0.5})
    still = model(inputs).numpy()
    np.testing.assert_array_equal(model(inputs, training=False), still)
    assert not np.allclose(model(inputs, training=True), still)


def test_the_contract_is_abstract(inputs):
    model = models.Seq2Seq()
    with pytest.raises(NotImplementedError):
        model.encode(inputs["source_ids"])
    with pytest.raises(NotImplementedError):
        model.initial_state({}, 5)
    with pytest.raises(NotImplementedError):
        model.step(inputs["target_ids"][:, 0], {}, {})


@pytest.mark.parametrize(
    "inputs",
    [
        (np.ones((2, 3), "int32"), np.ones((2, 4), "int32")),
        {"source_ids": np.ones((2, 3), "int32")},
        np.ones((2, 3), "int32"),
    ],
    ids=["tuple", "source only", "tensor"],
)
def test_inputs_that_are_no_pair_are_refused(inputs):
    model = small_model("rnnsearch", SOURCE_V, V)
    with pytest.raises(ValueError, match="a dict of `source_ids` and"):
        model(inputs)
