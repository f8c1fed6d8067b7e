"""Means over the real tokens, equal for any number of replicas."""

import keras
from keras import ops

from keras_attention.tokens import PAD
from keras_attention.training import losses


class TokenMean(keras.metrics.Mean):
    """A mean over all real tokens seen: abstract.

    A subclass says what the mean is taken of. Sums and counts are kept apart
    and added over replicas, so uneven shares do not matter. Sample weights are
    ignored, since labels say which tokens are real.

    Call arguments of `update_state`:
        y_true: int [B, T], PAD where there is no token.
        y_pred: logits [B, T, V].
    """

    def token_values(self, y_true, y_pred):
        """Values [B, T] of the tokens."""
        raise NotImplementedError

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true = ops.cast(y_true, "int32")
        real = ops.cast(ops.not_equal(y_true, PAD), "float32")
        # Flat: Keras would divide each row by its length, padding included.
        super().update_state(
            ops.reshape(self.token_values(y_true, y_pred), (-1,)),
            sample_weight=ops.reshape(real, (-1,)),
        )


@keras.saving.register_keras_serializable(package="keras_attention")
class TokenLoss(TokenMean):
    """The mean (label-smoothed) cross-entropy of a token, in nats."""

    def __init__(self, label_smoothing=0.0, name="token_loss", **kwargs):
        super().__init__(name=name, **kwargs)
        self.label_smoothing = label_smoothing

    def token_values(self, y_true, y_pred):
        """Losses [B, T]."""
        return losses.token_cross_entropy(y_pred, y_true, self.label_smoothing)

    def get_config(self):
        return {
            **super().get_config(),
            "label_smoothing": self.label_smoothing,
        }


@keras.saving.register_keras_serializable(package="keras_attention")
class TokenAccuracy(TokenMean):
    """The share of labels that no other logit is above."""

    def __init__(self, name="accuracy", **kwargs):
        super().__init__(name=name, **kwargs)

    def token_values(self, y_true, y_pred):
        """1 where right, [B, T]."""
        return losses.is_greatest(y_pred, y_true)


@keras.saving.register_keras_serializable(package="keras_attention")
class Perplexity(TokenMean):
    """`exp(mean cross-entropy of a token)`, without label smoothing."""

    def __init__(self, name="perplexity", **kwargs):
        super().__init__(name=name, **kwargs)

    def token_values(self, y_true, y_pred):
        """Negative log-likelihoods [B, T]."""
        return losses.token_cross_entropy(y_pred, y_true)

    def result(self):
        return ops.exp(super().result())
