"""The transducer against its alignments, one by one."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import models
from keras_attention.models import rnn_transducer
from keras_attention.tokens import END, PAD, START
from keras_attention.training import losses

V, SOURCE_V, EMBEDDING, UNITS, JOINT = 7, 9, 3, 5, 11
# Every length up to 4 on each side, each without its END on the right side.
SOURCES = ((4, 5, 6, END), (8, 4, END), (5, END), (END,))
TARGETS = ((6, 4, 5, 4), (4, 4), (), (5, 6, 1))
both_joints = pytest.mark.parametrize("joint_dim", [JOINT, None])


def padded(rows):
    width = max(map(len, rows))
    return np.array([[*row, *[PAD] * (width - len(row))] for row in rows])


def target_ids(texts):
    return padded([(START, *text) for text in texts])


@pytest.fixture
def model(randomize, joint_dim):
    return randomize(
        models.RNNTransducer(
            V, SOURCE_V, EMBEDDING, UNITS, num_layers=2, joint_dim=joint_dim
        ),
        scale=1,
    )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(inputs, weights):
    """Hochreiter and Schmidhuber's, with Keras's order of gates."""
    w, u, b = weights
    h = c = np.zeros(UNITS)
    outputs = []
    for x in inputs:
        i, f, candidate, o = np.split(x @ w + h @ u + b, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(candidate)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return outputs


def output_network(model, source, text):
    """p(k | s, u) of one pair: [S, U+1, V], by the equations of the class."""
    x = model.source_embedding.get_weights()[0][list(source)]
    for layer in model.encoder:
        forward = lstm(x, layer.forward_layer.get_weights())
        backward = lstm(x[::-1], layer.backward_layer.get_weights())[::-1]
        x = np.concatenate([forward, backward], axis=1)
    w, b = model.source_projection.get_weights()
    f = x @ w + b
    y = model.target_embedding.get_weights()[0][[START, *text]]
    g = np.array(lstm(y, model.prediction.get_weights()))
    g = g @ model.prediction_projection.get_weights()[0]
    p = np.zeros((len(f), len(g), V))
    for s, u in np.ndindex(len(f), len(g)):
        logits = f[s] + g[u]
        if model.output_projection is not None:
            w, b = model.output_projection.get_weights()
            logits = np.tanh(logits) @ w + b
        p[s, u] = np.exp(logits) / np.exp(logits).sum()
    return p


def alignments(num_steps, num_tokens):
    """Each alignment, as the step at which each token is written."""
    return itertools.combinations_with_replacement(range(num_steps), num_tokens)


def arcs(p, text, steps):
    """The places (s, u, k) of an alignment, but for the last blank."""
    s, passed = 0, []
    for u, (token, step) in enumerate(zip(text, steps, strict=True)):
        passed += [(blank, u, END) for blank in range(s, step)]
        passed.append((step, u, token))
        s = step
    return passed + [(s, len(text), END) for s in range(s, len(p) - 1)]


def whole_text(p, text):
    """p(y | x): the sum over all alignments of their products."""
    last = p[-1, len(text), END]
    return last * sum(
        np.prod([p[arc] for arc in arcs(p, text, steps)])
        for steps in alignments(len(p), len(text))
    )


def next_token(model, source, text):
    """p(k and where | x, text): [S, V], by all beginnings one by one.

    A beginning ends with the arc that writes its last token. Then some blanks
    follow, and the next token, or the last blank as END.
    """
    p = output_network(model, source, text)
    joint = np.zeros((len(p), V))
    for steps in alignments(len(p), len(text)):
        for place in range(steps[-1] if steps else 0, len(p)):
            passed = arcs(p, (*text, 0), (*steps, place))
            passed = passed[: len(text) + place]  # Up to the next token.
            joint[place] += (
                np.prod([p[arc] for arc in passed]) * p[place, len(text)]
            )
    joint[:-1, END] = 0  # A blank before the last step ends nothing.
    return joint / joint.sum()


@both_joints
def test_the_loss_is_the_sum_over_all_alignments(model):
    """Cross-entropy of `call` is -log p(y | x) of Graves 2012."""
    source_ids = padded(SOURCES)
    labels = padded([(*text, END) for text in TARGETS])
    expected = [
        np.log(whole_text(output_network(model, source, text), text))
        for source, text in zip(SOURCES, TARGETS, strict=True)
    ]
    assert np.ptp(expected) > 1
    log_p = model.log_probability(source_ids, labels)
    np.testing.assert_allclose(log_p, expected, rtol=1e-5, atol=1e-6)
    logits = model(
        {"source_ids": source_ids, "target_ids": target_ids(TARGETS)}
    )
    loss = losses.token_cross_entropy(logits, labels)
    loss = np.sum(np.where(labels == PAD, 0, loss), axis=1)
    np.testing.assert_allclose(-loss, expected, rtol=1e-5, atol=1e-6)


@both_joints
def test_each_step_has_the_probabilities_of_all_next_tokens(model):
    for source in SOURCES:
        memory = model.encode(np.array([source]))
        for text in TARGETS:
            state = model.initial_state(memory, 5)
            for u, token in enumerate((START, *text)):
                logits, state, weights = model.step(
                    np.array([token]), memory, state
                )
                joint = next_token(model, source, text[:u])
                np.testing.assert_allclose(
                    np.exp(logits[0]), joint.sum(axis=0), atol=1e-6
                )
                np.testing.assert_allclose(
                    weights[0], joint.sum(axis=1), atol=1e-6
                )


@both_joints
def test_all_texts_up_to_a_length_and_the_rest_sum_to_one(model):
    """Graves 2012, section 2: one distribution over texts of any length."""
    most, source = 3, SOURCES[1]
    tokens = [token for token in range(V) if token != END]
    total = 0.0
    for length in range(most):
        texts = [*itertools.product(tokens, repeat=length)]
        ids = np.array([source] * len(texts))
        labels = np.array([(*text, END) for text in texts])
        inputs = np.array([(START, *text) for text in texts])
        logits = model({"source_ids": ids, "target_ids": inputs})
        log_p = -losses.token_cross_entropy(logits, labels).numpy()
        total += np.exp(log_p.sum(axis=1)).sum()
        if length == most - 1:  # What begins with `length` tokens, and goes on.
            goes_on = 1 - np.exp(logits[:, -1, END])
            total += np.exp(log_p[:, :-1].sum(axis=1)) @ goes_on
    assert total == pytest.approx(1, abs=1e-5)


def test_the_gradient_is_the_mean_number_of_passes(rng):
    """Of log p(y | x) with respect to each log p(k | s, u)."""
    size, text = 4, (6, 4, 5)
    logits = rng.normal(size=(size, len(text) + 1, V)).astype("float32")
    p = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    passes, total = np.zeros_like(p), 0.0
    for steps in alignments(size, len(text)):
        passed = [*arcs(p, text, steps), (size - 1, len(text), END)]
        probability = np.prod([p[arc] for arc in passed])
        total += probability
        for arc in passed:
            passes[arc] += probability
    log_p = tf.constant(np.log(p))
    with tf.GradientTape() as tape:
        tape.watch(log_p)
        start = np.where(np.arange(size) == 0, 0.0, -1e9).astype("float32")
        written = tf.constant(start[None])
        for u, token in enumerate(text):
            alpha = rnn_transducer.reach(written, log_p[None, :, u, END])
            written = alpha + log_p[None, :, u, token]
        alpha = rnn_transducer.reach(written, log_p[None, :, -1, END])
        log_sum = alpha[0, -1] + log_p[-1, -1, END]
    assert float(log_sum) == pytest.approx(np.log(total), rel=1e-6)
    gradient = tape.gradient(log_sum, log_p)
    np.testing.assert_allclose(gradient, passes / total, atol=1e-6)


def test_long_texts_stay_exact(rng):
    """A hundred steps in float32, beside Graves's recursion in float64."""
    size = 100
    log_blank = np.log(rng.uniform(1e-4, 1, size=size))
    written = np.log(rng.dirichlet(np.ones(size)))
    alpha, log_alpha = 0.0, []
    for s in range(size):
        passed = alpha * np.exp(log_blank[s - 1]) if s else 0.0
        alpha = passed + np.exp(written[s])
        log_alpha.append(np.log(alpha))
    found = rnn_transducer.reach(
        written[None].astype("float32"), log_blank[None].astype("float32")
    )
    np.testing.assert_allclose(found[0], log_alpha, atol=1e-4)


@pytest.mark.parametrize("joint_dim", [JOINT])
def test_the_lattice_is_float32_also_in_bfloat16(model):
    config = {**model.get_config(), "dtype": "mixed_bfloat16"}
    mixed = models.RNNTransducer.from_config(config)
    mixed.build()
    memory = mixed.encode(padded(SOURCES))
    state = mixed.initial_state(memory, 5)
    logits, state, weights = mixed.step(np.full(4, START), memory, state)
    for tensor in (logits, state["written"], weights):
        assert tensor.dtype == "float32"
    np.testing.assert_allclose(np.exp(logits).sum(axis=1), 1, atol=1e-6)


def test_fewer_layers_than_none_are_refused():
    with pytest.raises(ValueError, match="Received: num_layers=-1"):
        models.RNNTransducer(V, num_layers=-1)


def test_parameters():
    """Three layers of 250, counted by hand."""
    model = models.RNNTransducer.from_size("base", 43, 61)
    model.build()
    n = 250

    def of_lstm(inputs):
        return 4 * (inputs * n + n * n + n)

    encoder = 2 * (of_lstm(n) + 2 * of_lstm(2 * n))
    embeddings = (61 + 43) * n
    joint = (2 * n * n + n) + n * n + (n * 43 + 43)
    assert model.count_params() == embeddings + encoder + of_lstm(n) + joint


def trained(model, source_ids, texts, num_steps=300):
    """The loss of a text in nats, and the share of exact greedy answers."""
    inputs = {
        "source_ids": source_ids,
        "target_ids": np.pad(texts, ((0, 0), (1, 0)), constant_values=START),
    }
    labels = np.pad(texts, ((0, 0), (0, 1)), constant_values=END)
    model.compile(
        keras.optimizers.Adam(1e-2),
        losses.TokenCrossEntropy(),
        jit_compile=False,
    )
    dataset = tf.data.Dataset.from_tensors((inputs, labels)).repeat(num_steps)
    model.fit(dataset, verbose=0)
    logits = model.predict(inputs, verbose=0)
    loss = losses.token_cross_entropy(logits, labels).numpy()
    is_right = np.argmax(logits, axis=-1) == labels
    return loss.sum(axis=1).mean(), is_right.all(axis=1).mean()


@pytest.mark.slow
def test_monotone_paths_cannot_turn_a_pair_round():
    """Twenty-one is one-and-twenty: of N tens and N ones, the ones come first.

    Where a step knows its own token alone, a path has to guess. Either the
    ones are written at the step of the tens, blindly; their probability is 1/N
    on average. Or they are written later, and then the tens are guessed: t of
    them, and the t sum to 1. So each tens has max(1/N, t) at best. If k of N
    tens have t = 1/k, the mean loss is (k log k + (N - k) log N) / N, and N
    texts of one tens and one text of each other are right.

    The same model copies without a fault. An encoder of two directions carries
    the ones to the first step, and attention looks at them there.
    """
    keras.utils.set_random_seed(1)
    num_words = 8
    tens = END + 1 + np.arange(num_words)
    pairs = np.array([*itertools.product(tens, tens + num_words)])
    source_ids = np.pad(pairs, ((0, 0), (0, 1)), constant_values=END)
    size = {"embedding_dim": 32, "units": 64}
    vocabulary_size = END + 1 + 2 * num_words

    def transducer(num_layers):
        return models.RNNTransducer(
            vocabulary_size, num_layers=num_layers, joint_dim=64, **size
        )

    copied, right = trained(transducer(0), source_ids, pairs)
    assert copied < 0.05 and right == 1
    turned, right = trained(transducer(0), source_ids, pairs[:, ::-1])
    k = np.arange(1, num_words + 1)
    losses_of_k = k * np.log(k) + (num_words - k) * np.log(num_words)
    least = losses_of_k.min() / num_words
    assert least - 1e-4 < turned < np.log(num_words) + 0.1
    assert right <= (2 * num_words - 1) / num_words**2
    carried, right = trained(transducer(1), source_ids, pairs[:, ::-1])
    assert carried < 0.05 and right == 1
    attentive = models.RNNSearch(vocabulary_size, readout_dim=32, **size)
    loss, right = trained(attentive, source_ids, pairs[:, ::-1])
    assert loss < 0.05 and right == 1
