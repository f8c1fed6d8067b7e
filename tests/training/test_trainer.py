"""One step is the step of the whole batch, however it is shared."""

import functools

import keras
import numpy as np
import pytest
import small_runs
import tensorflow as tf

from keras_attention import data, devices, models
from keras_attention.models import catalog
from keras_attention.training import losses, objectives, optimizers, trainer

VOCABULARY = small_runs.VOCABULARY


@functools.cache
def batches(num_batches=20, replicas=4):
    """Uneven rows; the last batch leaves three of four replicas empty.

    The same dataset each time: it is traced once.
    """
    rows = [*small_runs.uneven(105), [*range(4, 29), 3]]
    return (
        small_runs.reversing(rows)
        .apply(data.batch_by_tokens(66, replicas, seed=1))
        .apply(data.to_examples())
        .repeat(3)
        .take(num_batches)
        .apply(tf.data.experimental.assert_cardinality(num_batches))
    )


def seven_rows():
    """One batch that two replicas cannot share evenly."""
    rows = [[*range(4, 6 + n), 3] for n in range(7)]
    return (
        small_runs.reversing(rows)
        .apply(data.batch_by_tokens(999, 1))
        .apply(data.to_examples())
        .apply(tf.data.experimental.assert_cardinality(1))
    )


def make_model(kind, dtype="float32", dropout=0.0):
    keras.utils.set_random_seed(1)
    if kind == "transformer":
        model = models.Transformer.from_size(
            "tiny",
            VOCABULARY,
            num_layers=1,
            hidden_dim=16,
            intermediate_dim=32,
            num_heads=2,
            dropout=dropout,
            dtype=dtype,
        )
    else:
        model = models.RNNSearch.from_size(
            "tiny",
            VOCABULARY,
            embedding_dim=8,
            units=8,
            readout_dim=8,
            dropout=dropout,
            dtype=dtype,
        )
    model.build()
    return model


def make_optimizer(name):
    if name == "sgd":
        return keras.optimizers.SGD(0.5)
    return optimizers.Adam(1e-3, beta_2=0.98)


# Below the norm of the gradient of nearly every batch.
CLIP_NORM = 0.05


def fit(
    kind,
    replicas,
    optimizer,
    micro_batches=1,
    dtype="float32",
    clip_norm=CLIP_NORM,
):
    """Weights after 20 clipped steps, how far they moved, and the logs."""
    with devices.make_strategy(replicas).scope():
        model = make_model(kind, dtype)
        before = [variable.numpy() for variable in model.trainable_variables]
        fitted = trainer.Trainer(model, 0.1, clip_norm, micro_batches)
        fitted.compile(optimizer=make_optimizer(optimizer), jit_compile=False)
        fitted.optimizer.build(model.trainable_variables)
    history = fitted.fit(batches(), verbose=0, shuffle=False).history
    after = [variable.numpy() for variable in model.trainable_variables]
    logs = {name: values[-1] for name, values in history.items()}
    return after, greatest_difference(before, after), logs


def greatest_difference(first, second):
    return max(np.abs(a - b).max() for a, b in zip(first, second, strict=True))


def test_some_replicas_have_no_token_at_all():
    shares = [np.array_split(labels.numpy(), 4) for _, labels, _ in batches()]
    tokens = np.array([[np.sum(s != 0) for s in batch] for batch in shares])
    assert (tokens == 0).any()
    assert (tokens.max(axis=1) != tokens.min(axis=1)).any()


@functools.cache
def one_replica(kind, optimizer):
    return fit(kind, 1, optimizer)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["transformer", pytest.param("rnnsearch", marks=pytest.mark.slow)],
)
def test_clipping_acts_in_what_is_compared(kind):
    clipped, _, _ = one_replica(kind, "sgd")
    unclipped, _, _ = fit(kind, 1, "sgd", clip_norm=0.0)
    assert greatest_difference(clipped, unclipped) > 1e-2


TOLERANCES = {"sgd": 1e-6, "adam": 1e-4}
SHARES = ((2, 1), (2, 2), (4, 1), (1, 3), (4, 2))
FAST = ("transformer", "sgd", 2, 2)


@pytest.mark.parametrize(
    "kind, optimizer, replicas, micro_batches",
    [
        pytest.param(*case, marks=() if case == FAST else pytest.mark.slow)
        for case in (
            (kind, optimizer, *share)
            for kind in ("transformer", "rnnsearch")
            for optimizer in TOLERANCES
            for share in SHARES
        )
    ],
)
def test_replicas_and_micro_batches_give_the_same_weights(
    kind, optimizer, replicas, micro_batches
):
    expected, moved, expected_logs = one_replica(kind, optimizer)
    assert moved > 1e-2
    weights, _, logs = fit(kind, replicas, optimizer, micro_batches)
    difference = greatest_difference(expected, weights)
    print(f"largest difference: {difference:.1e}, moved {moved:.1e}")
    assert difference < TOLERANCES[optimizer]
    for name, value in expected_logs.items():
        assert logs[name] == pytest.approx(value, rel=1e-4)


@pytest.mark.slow
def test_bfloat16_stays_close():
    expected, moved, _ = fit("transformer", 1, "sgd", dtype="mixed_bfloat16")
    weights, _, _ = fit("transformer", 2, "sgd", dtype="mixed_bfloat16")
    assert moved > 2e-2
    assert greatest_difference(expected, weights) < 2e-2


@pytest.mark.slow
@pytest.mark.parametrize("make_batches", [seven_rows, batches])
def test_plain_fit_does_not_depend_on_replicas(make_batches):
    results = []
    for replicas in (1, 2):
        with devices.make_strategy(replicas).scope():
            model = make_model("transformer")
            model.compile(
                optimizer=make_optimizer("sgd"),
                loss=losses.TokenCrossEntropy(),
                jit_compile=False,
            )
        model.fit(make_batches(), verbose=0, shuffle=False)
        results.append([v.numpy() for v in model.trainable_variables])
    assert greatest_difference(*results) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("is_built", [True, False])
def test_the_first_batch_may_be_uneven(is_built):
    """Seven rows on two replicas; Keras builds by the first batch."""
    results = []
    for replicas in (1, 2):
        with devices.make_strategy(replicas).scope():
            model = make_model("transformer")
            fitted = trainer.Trainer(model, clip_norm=CLIP_NORM)
            fitted.compile(optimizer=make_optimizer("adam"), jit_compile=False)
            if is_built:
                fitted.optimizer.build(model.trainable_variables)
        logs = fitted.fit(seven_rows(), verbose=0, shuffle=False).history
        measured = fitted.evaluate(seven_rows(), verbose=0)
        assert fitted.optimizer.iterations.numpy() == 1
        results.append([v.numpy() for v in model.trainable_variables])
        results[-1] += [np.array(logs["loss"]), np.array(measured)]
    assert greatest_difference(*results) < 1e-4


@pytest.mark.slow
def test_plain_fit_of_a_language_model_begins_with_an_uneven_batch():
    """Three rows on two replicas."""
    ids = np.random.default_rng(0).integers(4, 20, (3, 5)).astype("int32")
    weights = np.full((3, 5), 1 / 15, "float32")
    results = []
    for replicas in (1, 2):
        keras.utils.set_random_seed(0)
        with devices.make_strategy(replicas).scope():
            model = catalog.create(
                "rnn_language_model",
                "mini",
                vocabulary_size=20,
                units=8,
                dropout=0.0,
            )
            model.build()
            model.compile(
                keras.optimizers.SGD(0.1), loss=losses.TokenCrossEntropy()
            )
        batches = tf.data.Dataset.from_tensors((ids, ids, weights))
        model.fit(batches, verbose=0, shuffle=False)
        results.append([v.numpy() for v in model.trainable_variables])
    assert greatest_difference(*results) < 1e-6


def test_a_checkpoint_of_keras_is_one_of_the_model(tmp_path):
    """`ModelCheckpoint` keeps what is trained, to be loaded without us."""
    model = make_model("transformer")
    fitted = trainer.Trainer(model)
    fitted.compile(optimizer=make_optimizer("sgd"), jit_compile=False)
    paths = [tmp_path / name for name in ("best.keras", "best.weights.h5")]
    best = [
        keras.callbacks.ModelCheckpoint(
            path,
            monitor="val_loss",
            save_best_only=True,
            save_weights_only=path.suffix == ".h5",
        )
        for path in paths
    ]
    fitted.fit(
        batches(1),
        validation_data=batches(1),
        epochs=2,
        verbose=0,
        shuffle=False,
        callbacks=best,
    )
    kept = keras.models.load_model(paths[0])
    assert type(kept) is type(model)
    inputs = next(iter(batches(1)))[0]
    expected = model(inputs).numpy()
    np.testing.assert_allclose(kept(inputs).numpy(), expected, atol=1e-6)
    for variable in model.trainable_variables:
        variable.assign(variable * 0)
    fitted.load_weights(paths[1])
    np.testing.assert_allclose(model(inputs).numpy(), expected, atol=1e-6)


def test_clipping_bounds_the_whole_step():
    model = make_model("transformer")
    fitted = trainer.Trainer(model, clip_norm=1e-3)
    fitted.compile(optimizer=keras.optimizers.SGD(1.0), jit_compile=False)
    before = [variable.numpy() for variable in model.trainable_variables]
    fitted.fit(batches(1), verbose=0, shuffle=False)
    after = [variable.numpy() for variable in model.trainable_variables]
    squares = [np.sum((a - b) ** 2) for a, b in zip(before, after, strict=True)]
    assert np.sqrt(sum(squares)) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize(
    "replicas", [1, pytest.param(2, marks=pytest.mark.slow)]
)
def test_the_end_of_the_data_counts_as_no_step(replicas):
    """Keras runs into the end of a dataset of unknown length."""
    unknown = batches(5).filter(lambda *_: True)
    assert unknown.cardinality() == tf.data.experimental.UNKNOWN_CARDINALITY
    with devices.make_strategy(replicas).scope():
        model = make_model("transformer", dropout=0.1)
        fitted = trainer.Trainer(model)
        fitted.compile(optimizer=make_optimizer("adam"), jit_compile=False)
        fitted.optimizer.build(model.trainable_variables)
    seeds = [v for v in model.variables if "seed" in v.path]
    before = [int(seed.numpy()[1]) for seed in seeds]
    fitted.fit(unknown, verbose=0, shuffle=False)
    draws = [
        int(seed.numpy()[1]) - old
        for seed, old in zip(seeds, before, strict=True)
    ]
    assert fitted.optimizer.iterations.numpy() == 5
    assert max(draws) > 0 and all(number % 5 == 0 for number in draws)


def test_loss_is_the_mean_over_all_tokens():
    model = make_model("transformer")
    fitted = trainer.Trainer(model)
    fitted.compile(optimizer="sgd", jit_compile=False)
    logs = fitted.evaluate(batches(), verbose=0, return_dict=True)
    total = count = right = 0.0
    for inputs, labels, _ in batches():
        log_probs = tf.nn.log_softmax(model(inputs)).numpy()
        labels = labels.numpy()
        for row, column in zip(*np.nonzero(labels), strict=True):
            total -= log_probs[row, column, labels[row, column]]
            right += log_probs[row, column].argmax() == labels[row, column]
            count += 1
    assert logs["loss"] == pytest.approx(total / count, rel=1e-5)
    assert logs["perplexity"] == pytest.approx(np.exp(total / count), rel=1e-5)
    assert logs["accuracy"] == pytest.approx(right / count, rel=1e-5)


def test_what_would_train_something_else_is_refused():
    with pytest.raises(ValueError, match="computes in float16"):
        trainer.Trainer(make_model("transformer", "mixed_float16"))
    model = make_model("transformer")
    fitted = trainer.Trainer(model)
    new = trainer.Trainer(keras.Sequential([keras.layers.Dense(2)]))
    with pytest.raises(ValueError, match="no weights yet"):
        new.compile(make_optimizer("sgd"))
    for name in ("loss", "metrics", "weighted_metrics"):
        with pytest.raises(ValueError, match=f"Received: {name}="):
            fitted.compile(make_optimizer("sgd"), **{name: ["accuracy"]})


@pytest.mark.parametrize(
    "replicas, micro_batches",
    [
        (2, 2),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((1, 1), (1, 3), (4, 1))
        ),
    ],
)
def test_losses_of_the_model_are_means_over_the_whole_batch(
    replicas, micro_batches
):
    """Against the gradient of the loss and the penalty, on one replica."""
    strategy = devices.make_strategy(replicas)
    batch = (
        {"source_ids": np.arange(60).reshape(12, 5) % 27 + 4},
        np.arange(12) % 5,
        np.full(12, 1 / 12, "float32"),
    )
    keras.utils.set_random_seed(1)
    with strategy.scope():
        model = models.SelfAttentiveEmbedding(
            VOCABULARY, 5, 6, 7, 8, 2, 9, penalty=0.7, dropout=0.0
        )
        model.build()
        rng = np.random.default_rng(1)
        model.set_weights(
            [rng.normal(scale=0.7, size=w.shape) for w in model.weights]
        )
        fitted = trainer.Trainer(
            model,
            micro_batches=micro_batches,
            objective=objectives.LabelObjective(),
        )
        fitted.compile(keras.optimizers.SGD(1.0), jit_compile=False)
    kernel = model.attention_scores.kernel
    before = kernel.numpy()
    with tf.GradientTape() as tape:
        logits, weights = model.attend(batch[0])
        cross_entropy = keras.losses.sparse_categorical_crossentropy(
            batch[1], logits, from_logits=True
        )
        products = tf.matmul(weights, weights, transpose_b=True) - tf.eye(2)
        penalty = tf.reduce_sum(products**2, axis=(1, 2))
        loss = tf.reduce_mean(cross_entropy + 0.7 * penalty)
    expected = tape.gradient(loss, [kernel.value])[0]
    data_set = tf.data.Dataset.from_tensors(batch)
    fitted.fit(data_set, verbose=0)
    np.testing.assert_allclose(before - kernel.numpy(), expected, atol=1e-5)
    assert np.abs(expected).max() > 1e-2


def test_wrong_micro_batches_are_refused():
    with pytest.raises(ValueError, match="at least 1. Received"):
        trainer.Trainer(make_model("transformer"), micro_batches=0)
