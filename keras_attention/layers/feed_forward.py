"""The position-wise feed-forward network."""

import keras

from keras_attention.layers import quantized_parts


@keras.saving.register_keras_serializable(package="keras_attention")
def tanh_gelu(inputs):
    """`x Phi(x)`, with the tanh for Phi (Hendrycks & Gimpel 2016, section 2).

    Args:
        inputs: [..., D].

    Returns:
        [..., D].

    Reference: https://arxiv.org/abs/1606.08415
    """
    return keras.activations.gelu(inputs, approximate=True)


@keras.saving.register_keras_serializable(package="keras_attention")
class FeedForward(quantized_parts.QuantizedParts, keras.layers.Layer):
    """`FFN(x) = max(0, x W_1 + b_1) W_2 + b_2` (Vaswani 2017, equation 2).

    With `gated`, a second product weighs each number of the hidden layer
    (Shazeer 2020, equation 6): `(activation(x W) * x V) W_2`.

    | paper | here |
    |---|---|
    | W_1 (2017), W (2020) | `expand` |
    | V (2020) | `gate` |
    | W_2 | `contract` |

    Args:
        intermediate_dim: width of the hidden layer, d_ff in the paper.
        activation: its activation: "relu" as in the paper, any of Keras's, or
            "tanh_gelu".
        use_bias: whether there are b_1 and b_2.
        gated: whether there is V.

    Call arguments:
        inputs: [..., D].

    Returns:
        [..., D].

    References: https://arxiv.org/abs/1706.03762,
    https://arxiv.org/abs/2002.05202 (gated)
    """

    def __init__(
        self,
        intermediate_dim,
        activation="relu",
        use_bias=True,
        gated=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.intermediate_dim = intermediate_dim
        if activation == "tanh_gelu":
            activation = tanh_gelu
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        self.gated = gated

    def _dense(self, units, name, activation=None):
        return keras.layers.Dense(
            units,
            activation=activation,
            use_bias=self.use_bias,
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, inputs_shape):
        self.expand = self._dense(
            self.intermediate_dim, "expand", self.activation
        )
        self.contract = self._dense(inputs_shape[-1], "contract")
        self.expand.build(inputs_shape)
        if self.gated:
            self.gate = self._dense(self.intermediate_dim, "gate")
            self.gate.build(inputs_shape)
        self.contract.build((*inputs_shape[:-1], self.intermediate_dim))

    def call(self, inputs):
        hidden = self.expand(inputs)
        if self.gated:
            hidden = hidden * self.gate(inputs)
        return self.contract(hidden)

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "gated": self.gated,
        }
