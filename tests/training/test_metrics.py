"""Means over the real tokens of several batches, against numpy."""

import keras
import numpy as np
import pytest

from keras_attention.tokens import PAD
from keras_attention.training import metrics

V = 7


def batches():
    """Three batches of other shapes, with padding."""
    rng = np.random.default_rng(0)
    for shape in ((2, 3), (5, 4), (1, 6)):
        logits = rng.normal(scale=2.0, size=(*shape, V)).astype("float32")
        labels = rng.integers(1, V, shape)
        # Here and there a right answer.
        labels[0] = logits[0].argmax(-1)
        labels[0, -2:] = PAD
        yield labels.astype("int32"), logits


def real_tokens():
    """Labels [n] and log-probabilities [n, V] of all real tokens."""
    labels, log_probs = [], []
    for y_true, y_pred in batches():
        log_p = np.float64(y_pred)
        log_p -= np.log(np.exp(log_p).sum(-1, keepdims=True))
        labels.append(y_true[y_true != PAD])
        log_probs.append(log_p[y_true != PAD])
    return np.concatenate(labels), np.concatenate(log_probs)


def nll():
    labels, log_probs = real_tokens()
    return -log_probs[np.arange(len(labels)), labels].mean()


def smoothed():
    return 0.9 * nll() - 0.1 * real_tokens()[1].mean()


def accuracy():
    labels, log_probs = real_tokens()
    return (log_probs.argmax(-1) == labels).mean()


METRICS = {
    "token_loss": (metrics.TokenLoss, {}, nll),
    "smoothed": (metrics.TokenLoss, {"label_smoothing": 0.1}, smoothed),
    "accuracy": (metrics.TokenAccuracy, {}, accuracy),
    "perplexity": (metrics.Perplexity, {}, lambda: np.exp(nll())),
}
each_metric = pytest.mark.parametrize(
    "kind, arguments, expected", METRICS.values(), ids=METRICS
)


@each_metric
@pytest.mark.parametrize("weighted", [False, True])
def test_mean_over_all_real_tokens(kind, arguments, expected, weighted):
    metric = kind(**arguments)
    for labels, logits in batches():
        # Sample weights say how the loss is shared, not what is real.
        weights = np.full(labels.shape, 0.01, "float32") if weighted else None
        metric.update_state(labels, logits, weights)
    np.testing.assert_allclose(metric.result(), expected(), rtol=1e-5)


@each_metric
def test_a_reset_forgets(kind, arguments, expected):
    metric = kind(**arguments)
    labels, logits = next(batches())
    metric.update_state(labels, -logits)
    metric.reset_state()
    for labels, logits in batches():
        metric.update_state(labels, logits)
    np.testing.assert_allclose(metric.result(), expected(), rtol=1e-5)


@each_metric
def test_it_comes_back_from_its_config(kind, arguments, expected):
    metric = keras.metrics.deserialize(
        keras.metrics.serialize(kind(name="other", **arguments))
    )
    assert isinstance(metric, kind)
    assert metric.name == "other"
    for labels, logits in batches():
        metric.update_state(labels, logits)
    np.testing.assert_allclose(metric.result(), expected(), rtol=1e-5)


def test_the_abstract_mean_asks_for_values():
    labels, logits = next(batches())
    with pytest.raises(NotImplementedError):
        metrics.TokenMean().update_state(labels, logits)
