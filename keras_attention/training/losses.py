"""Cross-entropy over the real tokens of a batch."""

import keras
from keras import ops

from keras_attention.tokens import PAD


def token_cross_entropy(logits, labels, label_smoothing=0.0):
    """Label-smoothed cross-entropy of each token.

    The target distribution is `q = (1 - e) onehot(label) + e / V` (Szegedy
    et al. 2015, section 7; Vaswani et al. 2017, 5.4). The loss is
    `- sum_v q_v log softmax(logits)_v`, and its gradient is
    `softmax(logits) - q`.

    Args:
        logits: [..., V].
        labels: int [...], 0 ... V-1.
        label_smoothing: e.

    Returns:
        float32 [...]. A label outside 0 ... V-1 has probability 0 and so an
        infinite loss. TensorFlow refuses a label outside -V ... V-1 on a CPU,
        where it is not compiled.
    """
    vocabulary_size = logits.shape[-1]

    # A gradient by hand: logits are the largest tensor of a step, and those of
    # the parts below would each be as large.
    @ops.custom_gradient
    def cross_entropy(logits):
        probabilities = ops.softmax(logits, axis=-1)
        # log(sum(exp)) from the greatest probability, which cannot vanish.
        greatest = ops.log(ops.max(probabilities, axis=-1))
        normaliser = ops.max(logits, axis=-1) - greatest
        loss = normaliser - label_logits(logits, labels)
        if label_smoothing:
            uniform = normaliser - _mean(logits)
            loss = (1 - label_smoothing) * loss + label_smoothing * uniform

        # It keeps `probabilities`, so that no softmax is computed again.
        def gradient(*args, upstream=None):
            if upstream is None:  # PyTorch passes it by keyword.
                (upstream,) = args
            uniform = label_smoothing / vocabulary_size
            is_label = ops.equal(labels[..., None], ops.arange(vocabulary_size))
            target = ops.where(is_label, 1 - label_smoothing + uniform, uniform)
            return (probabilities - target) * upstream[..., None]

        return loss, gradient

    losses = cross_entropy(ops.cast(logits, "float32"))
    possible = ops.logical_and(labels >= 0, labels < vocabulary_size)
    # A gather that is compiled, or on a GPU, reads the logit of another label.
    return losses - ops.log(ops.cast(possible, "float32"))


def _mean(logits):
    # Summed first: TensorFlow's mean takes five times as long.
    return ops.sum(logits, axis=-1) / logits.shape[-1]


def label_logits(logits, labels):
    """The logit of each label: [..., V], int [...] -> [...]."""
    picked = ops.take_along_axis(logits, labels[..., None], axis=-1)
    return ops.squeeze(picked, -1)


def without_smoothing(loss, logits, labels, label_smoothing):
    """The negative log-likelihood of each token, from its smoothed loss.

    With the logits l, `loss = -log p(label) + e (l_label - mean(l))`. So no
    second softmax is needed.

    Args:
        loss: [...], what `token_cross_entropy` returned.
        logits, labels, label_smoothing: what `token_cross_entropy` got.

    Returns:
        float32 [...].
    """
    if not label_smoothing:
        return loss
    logits = ops.cast(logits, "float32")
    distance = label_logits(logits, labels) - _mean(logits)
    return loss - label_smoothing * distance


def is_greatest(logits, labels):
    """1.0 where no logit is above the label's, else 0.0: float32 [...]."""
    # Keras's argmax makes several copies of the logits.
    greatest = ops.max(logits, axis=-1)
    return ops.cast(label_logits(logits, labels) >= greatest, "float32")


# The least weight whose logarithm is taken: that of 0 has no gradient.
SMALLEST = 1e-20


def attention_cross_entropy(attention_weights, shares):
    """How far attention is from where it should be, for each target token.

    `- sum_s shares_s log attention_weights_s` (Chen et al. 2016).

    Args:
        attention_weights: [B, T, S], or [B, H, T, S], whose mean over the heads
            is taken.
        shares: [B, T, S]. They sum to 1 over S, or are all 0 where nothing is
            said.

    Returns:
        float32 [B, T].

    Reference: https://arxiv.org/abs/1607.01628
    """
    attention_weights = ops.cast(attention_weights, "float32")
    if len(attention_weights.shape) == 4:
        attention_weights = ops.mean(attention_weights, axis=1)
    logs = ops.log(ops.maximum(attention_weights, SMALLEST))
    return -ops.sum(shares * logs, axis=-1)


@keras.saving.register_keras_serializable(package="keras_attention")
class TokenCrossEntropy(keras.losses.Loss):
    """Label-smoothed cross-entropy on integer labels, padding left out.

    Without sample weights, it is the mean over the real tokens of the batch,
    or of one replica's share of it. With sample weights, it is the weighted
    sum. `data.to_examples` gives each token the weight 1 / (real tokens of the
    whole batch). The gradient then does not depend on how replicas share the
    batch.

    Args:
        label_smoothing: e, see `token_cross_entropy`.

    Call arguments:
        y_true: int [B, T], 0 ... V-1; PAD where there is no token.
        y_pred: logits [B, T, V].
        sample_weight: float [B, T], [B] (one for each example), a scalar
            or None. The loss is not divided by the sum of the weights.

    Returns:
        float32 scalar. It is infinite if a label is out of range, see
        `token_cross_entropy`, unless the label's weight is 0.

    Raises:
        ValueError: If the label smoothing is out of range, or labels or
            weights have another rank.
    """

    def __init__(self, label_smoothing=0.0, name="token_cross_entropy"):
        super().__init__(name=name, reduction="sum", dtype="float32")
        if not 0 <= label_smoothing < 1:
            raise ValueError(
                "`label_smoothing` must be in [0, 1). "
                f"Received: label_smoothing={label_smoothing}"
            )
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        y_true = ops.cast(y_true, "int32")
        if len(y_true.shape) != len(y_pred.shape) - 1:
            raise ValueError(
                "Expected labels [B, T] of logits [B, T, V]. Received: shapes "
                f"{tuple(y_true.shape)}, {tuple(y_pred.shape)}"
            )
        losses = self.call(y_true, y_pred)
        weights = ops.cast(ops.not_equal(y_true, PAD), "float32")
        if sample_weight is None:
            weights /= ops.maximum(ops.sum(weights), 1.0)
        else:
            sample_weight = ops.cast(sample_weight, "float32")
            ranks = len(y_true.shape), len(sample_weight.shape)
            if ranks == (2, 1):
                sample_weight = ops.expand_dims(sample_weight, 1)
            elif ranks[1] not in (0, ranks[0]):
                raise ValueError(
                    "Expected `sample_weight` of shape [B, T] or [B]. "
                    f"Received: shape {tuple(sample_weight.shape)}"
                )
            weights *= sample_weight
        # 0 * inf is NaN: a label that does not count may be out of range.
        return ops.sum(ops.where(weights == 0, 0.0, losses * weights))

    def call(self, y_true, y_pred):
        return token_cross_entropy(y_pred, y_true, self.label_smoothing)

    def get_config(self):
        return {"label_smoothing": self.label_smoothing, "name": self.name}
