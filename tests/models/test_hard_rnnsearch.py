"""Hard attention: one draw's gradient beside the mean over all draws."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import models
from keras_attention.tokens import START

V, SOURCE_V, S, T = 7, 9, 3, 2
SIZES = {"embedding_dim": 3, "units": 5, "readout_dim": 2}
SOURCE = [[5, 7, 3]]
INPUTS = {
    "source_ids": np.array(SOURCE, "int32"),
    "target_ids": np.array([[START, 4]], "int32"),
}
LABELS = np.array([[4, 6]], "int32")


@pytest.fixture
def hard(randomize):
    def create(**options):
        model = models.HardRNNSearch(V, SOURCE_V, **SIZES, **options)
        return randomize(model, scale=0.7)

    return create


def of_places(model, places):
    """log p(s_t | s_<t, y_<t, x) and log p(y_t | s_<=t, y_<t, x), each [T].

    Step by step, by the equations of the class, with places that are given.
    """
    memory = model.encode(INPUTS["source_ids"])
    state = model.initial_state(memory)
    chosen, written = [], []
    for t, place in enumerate(places):
        scores = model.attention.score(
            query=state["hidden"][:, None], projected_key=memory["keys"]
        )
        chosen.append(tf.nn.log_softmax(scores[0, 0])[place])
        embedded = model.target_embedding(INPUTS["target_ids"][:, t])
        context = memory["annotations"][:, place]
        x = tf.concat([embedded, context], axis=-1)
        hidden, _ = model.decoder(x, [state["hidden"]])
        state = {"hidden": hidden, "context": context}
        features = tf.concat([hidden, embedded, context], axis=-1)
        logits = model.output_projection(model.maxout(features))
        written.append(tf.nn.log_softmax(logits[0])[LABELS[0, t]])
    return tf.stack(chosen), tf.stack(written)


def flat_gradient(tape, value, variables):
    gradients = tape.gradient(value, variables, None, "zero")
    return np.concatenate(
        [np.ravel(tf.convert_to_tensor(gradient)) for gradient in gradients]
    )


def test_the_mean_gradient_is_that_of_all_places(hard):
    """Equation 11, with a sum over 3^2 ways to look; baseline and all."""
    model = hard(soft_share=0.0, entropy_weight=0.0)
    # The score first, whose gradient is the reward's alone.
    of_score = model.attention.trainable_weights
    weights = sorted(
        model.trainable_weights, key=lambda w: all(w is not v for v in of_score)
    )
    variables = [weight.value for weight in weights]
    with tf.GradientTape() as tape:
        bound = 0.0
        for places in itertools.product(range(S), repeat=T):
            chosen, written = of_places(model, places)
            bound += tf.exp(tf.reduce_sum(chosen)) * tf.reduce_sum(written)
    expected = -flat_gradient(tape, bound, variables)
    count, repeats = 1000, 30
    rows = {key: np.repeat(ids, count, axis=0) for key, ids in INPUTS.items()}
    batch = rows, np.repeat(LABELS, count, axis=0), np.ones((count, T), "f")
    keras.utils.set_random_seed(1)
    found = []
    # As in training, the baseline is from the batches before.
    for _ in range(repeats):
        with tf.GradientTape() as tape:
            loss, counts = model.objective(batch, training=True)["loss"]
            loss = tf.reduce_sum(loss) / count
        found.append(flat_gradient(tape, loss, variables))
    assert counts.shape == (count, T)
    error = np.std(found, axis=0) / np.sqrt(repeats)
    assert np.all(np.abs(np.mean(found, axis=0) - expected) < 5 * error + 1e-5)
    # Exact enough to see a wrong sign, or a missing term.
    count = sum(np.size(weight) for weight in of_score)
    signal = np.abs(expected) / (error + 1e-6)
    assert np.max(signal[:count]) > 10 and np.max(signal[count:]) > 10


def test_the_gradient_of_the_score_is_the_reward_alone(hard):
    """Without a reward, nothing of a draw's gradient reaches the score."""
    for reward_weight in (0.0, 1.0):
        model = hard(
            soft_share=0.0, entropy_weight=0.0, reward_weight=reward_weight
        )
        variables = [w.value for w in model.attention.trainable_weights]
        batch = INPUTS, LABELS, np.ones((1, T), "float32")
        with tf.GradientTape() as tape:
            loss, _ = model.objective(batch, training=True)["loss"]
            loss = tf.reduce_sum(loss)
        gradient = flat_gradient(tape, loss, variables)
        assert np.any(gradient) == bool(reward_weight)


def test_the_loss_shown_is_that_of_the_places_drawn(hard):
    model = hard(soft_share=0.0)
    batch = INPUTS, LABELS, np.ones((1, T), "float32")
    possible = [
        -of_places(model, places)[1].numpy()
        for places in itertools.product(range(S), repeat=T)
    ]
    for _ in range(5):
        loss, _ = model.objective(batch, training=True)["loss"]
        distances = np.abs(np.array(possible) - loss[0]).max(axis=1)
        assert distances.min() < 1e-5


def test_elsewhere_the_most_probable_place_is_looked_at(hard):
    model = hard()
    places = []
    for _ in range(T):
        # The places before decide on the next one.
        chosen = [
            of_places(model, (*places, place))[0][-1] for place in range(S)
        ]
        places.append(int(np.argmax(chosen)))
    batch = INPUTS, LABELS, np.ones((1, T), "float32")
    loss, _ = model.objective(batch, training=False)["loss"]
    _, written = of_places(model, places)
    np.testing.assert_allclose(loss[0], -written, atol=1e-5)
    log_p = model.log_probability(INPUTS["source_ids"], LABELS)
    np.testing.assert_allclose(log_p[0], sum(written), atol=1e-5)


def test_a_soft_text_is_rnnsearchs(hard):
    """With `soft_share=1`, the loss and its gradient are those of RNNsearch."""
    model = hard(soft_share=1.0, entropy_weight=0.0)
    soft = models.RNNSearch(V, SOURCE_V, **SIZES)
    soft.build()
    kept = [w for w in model.weights if w is not model.baseline]
    soft.set_weights([weight.numpy() for weight in kept])
    batch = INPUTS, LABELS, np.ones((1, T), "float32")
    gradients = []
    for one in (model, soft):
        with tf.GradientTape() as tape:
            if one is soft:
                log_p = tf.nn.log_softmax(one(INPUTS)[0])
                loss = -tf.gather(log_p, LABELS[0], batch_dims=1)[None]
            else:
                loss, _ = one.objective(batch, training=True)["loss"]
        variables = [weight.value for weight in one.trainable_weights]
        gradients.append(flat_gradient(tape, loss, variables))
    np.testing.assert_allclose(*gradients, atol=1e-5)


def test_the_baseline_follows_the_tokens(hard):
    """b <- 0.9 b + 0.1 mean log p, over real tokens, in training alone."""
    model = hard(soft_share=1.0)
    model.baseline.assign(-7.0)
    weights = np.array([[1, 0]], "float32")
    batch = INPUTS, LABELS, weights
    model.objective(batch, training=False)
    assert model.baseline.numpy() == -7
    loss, _ = model.objective(batch, training=True)["loss"]
    expected = -6.3 - 0.1 * loss[0, 0]
    assert model.baseline.numpy() == pytest.approx(float(expected), rel=1e-5)
    kept = model.baseline.numpy()
    model.objective((INPUTS, LABELS, 0 * weights), training=True)
    assert model.baseline.numpy() == kept
    fresh = models.HardRNNSearch(V, SOURCE_V, **SIZES)
    assert fresh.baseline.numpy() == pytest.approx(-np.log(V))
