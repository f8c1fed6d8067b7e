"""Cross-entropy over the real tokens of a batch."""

import keras
from keras import ops

from keras_attention.tokens import PAD


def token_cross_entropy(logits, labels, label_smoothing=0.0):
    """Label-smoothed cross-entropy of each token, in one pass.

    The target distribution is `q = (1 - e) onehot(label) + e / V` (Szegedy
    et al. 2015, section 7; Vaswani et al. 2017, 5.4), the loss
    `- sum_v q_v log softmax(logits)_v`, its gradient `softmax(logits) - q`.

    Args:
        logits: [..., V].
        labels: int [...].
        label_smoothing: e.

    Returns:
        `(loss, negative_log_likelihood, correct)`, float32 [...] each: the
        smoothed loss; that without smoothing; 1 where the label has the
        greatest logit. Only the first has a gradient.
    """
    logits = ops.cast(logits, "float32")
    vocabulary_size = logits.shape[-1]

    @ops.custom_gradient
    def cross_entropy(logits):
        probabilities = ops.softmax(logits, axis=-1)
        greatest = ops.max(logits, axis=-1)
        # log(sum(exp)) from the greatest probability, which cannot vanish.
        normaliser = greatest - ops.log(ops.max(probabilities, axis=-1))
        label_logits = ops.squeeze(
            ops.take_along_axis(logits, labels[..., None], axis=-1), -1
        )
        nll = normaliser - label_logits
        loss = nll
        if label_smoothing:
            uniform = normaliser - ops.mean(logits, axis=-1)
            loss = (1 - label_smoothing) * nll + label_smoothing * uniform
        correct = ops.cast(label_logits >= greatest, "float32")

        def gradient(*upstream):
            scale = upstream[0][..., None]
            uniform = label_smoothing / vocabulary_size
            is_label = ops.equal(labels[..., None], ops.arange(vocabulary_size))
            target = ops.where(is_label, 1 - label_smoothing + uniform, uniform)
            return (probabilities - target) * scale

        return (loss, nll, correct), gradient

    return cross_entropy(logits)


@keras.saving.register_keras_serializable(package="keras_attention")
class TokenCrossEntropy(keras.losses.Loss):
    """Label-smoothed cross-entropy on integer labels, padding left out.

    Without sample weights: the mean over the real tokens of the batch (of
    one replica's share of it). With the weights that `data.to_examples`
    makes, 1 / (real tokens of the whole batch): their weighted sum, so that
    the gradient does not depend on how replicas share the batch.

    Args:
        label_smoothing: e, see `token_cross_entropy`.

    Call arguments:
        y_true: int [B, T], PAD where there is no token.
        y_pred: logits [B, T, V].
        sample_weight: float [B, T], or None.

    Returns:
        float32 scalar.
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
        losses = self.call(y_true, y_pred)
        real = ops.cast(ops.not_equal(y_true, PAD), "float32")
        if sample_weight is None:
            return ops.sum(losses * real) / ops.maximum(ops.sum(real), 1.0)
        return ops.sum(losses * real * ops.cast(sample_weight, "float32"))

    def call(self, y_true, y_pred):
        return token_cross_entropy(y_pred, y_true, self.label_smoothing)[0]

    def get_config(self):
        return {"label_smoothing": self.label_smoothing, "name": self.name}
