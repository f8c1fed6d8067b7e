"""The residual path around a sublayer."""

import typing

import keras

from keras_attention.layers import attention, weights

# RMSNorm has no mean and no shift (Zhang and Sennrich 2019, equation 4).
NORMALIZATIONS = {
    "layer": keras.layers.LayerNormalization,
    "rms": keras.layers.RMSNormalization,
}


@keras.saving.register_keras_serializable(package="keras_attention")
class Residual(keras.layers.Layer):
    """The path around a sublayer, with its dropout and normalisation.

    ```
    post-norm  LayerNorm(x + Dropout(f(x)))      the paper's
    pre-norm   x + Dropout(f(LayerNorm(x)))      trains without warm-up
    ```

    `enter(x)` gives the sublayer its input, `leave(x, f)` takes its output.
    A call is `leave`. The layer is called or built before `enter`.

    Args:
        dropout: rate.
        norm_first: pre-norm if True.
        normalization: "layer", or "rms" for RMSNorm in its place.
        epsilon: what the normalisation adds to the variance.

    Call arguments:
        inputs: x [..., D].
        outputs: f(...) [..., D].
        training: whether dropout acts.

    Returns:
        [..., D], with the mask that Keras passes along with `inputs`.

    Raises:
        ValueError: If both tensors come in a list, if `enter` or `leave` is
            used before the layer is built, or if there is no such
            normalisation.

    References: https://arxiv.org/abs/1706.03762 (5.4),
    https://arxiv.org/abs/2002.04745 (pre-norm),
    https://arxiv.org/abs/1910.07467 (RMSNorm)
    """

    def __init__(
        self,
        dropout=0.0,
        norm_first=False,
        normalization="layer",
        epsilon=1e-6,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if normalization not in NORMALIZATIONS:
            raise ValueError(
                f"`normalization` must be one of {', '.join(NORMALIZATIONS)}. "
                f"Received: normalization={normalization!r}"
            )
        self.supports_masking = True
        self.dropout = dropout
        self.norm_first = norm_first
        self.normalization = normalization
        self.epsilon = epsilon
        self.norm = NORMALIZATIONS[normalization](
            epsilon=epsilon, dtype=self.dtype_policy, name="norm"
        )
        self.dropout_layer = keras.layers.Dropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )

    def __call__(self, *args, **kwargs) -> typing.Any:
        attention.check_separate(
            "layer(inputs=inputs, outputs=outputs)", [*args, *kwargs.values()]
        )
        return super().__call__(*args, **kwargs)

    def build(self, inputs_shape):
        if not self.norm.built:
            self.norm.build(inputs_shape)

    def enter(self, inputs):
        """The sublayer's input."""
        weights.check_ready(self)
        return self.norm(inputs) if self.norm_first else inputs

    def leave(self, inputs, outputs, training=None):
        """Joins the sublayer's `outputs` to the residual path."""
        weights.check_ready(self)
        joined = inputs + self.dropout_layer(outputs, training=training)
        return joined if self.norm_first else self.norm(joined)

    def call(self, inputs, outputs, training=None):
        return self.leave(inputs, outputs, training=training)

    def compute_output_shape(self, inputs_shape, outputs_shape=None):
        return tuple(inputs_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "dropout": self.dropout,
            "norm_first": self.norm_first,
            "normalization": self.normalization,
            "epsilon": self.epsilon,
        }
