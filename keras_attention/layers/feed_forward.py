"""The position-wise feed-forward network."""

import keras

from keras_attention.layers import quantized_parts


@keras.saving.register_keras_serializable(package="keras_attention")
class FeedForward(quantized_parts.QuantizedParts, keras.layers.Layer):
    """`FFN(x) = max(0, x W_1 + b_1) W_2 + b_2` (Vaswani 2017, equation 2).

    Args:
        intermediate_dim: width of the hidden layer, d_ff in the paper.
        activation: its activation; the paper's is "relu".

    Call arguments:
        inputs: [..., D].

    Returns:
        [..., D].

    Reference: https://arxiv.org/abs/1706.03762
    """

    def __init__(self, intermediate_dim, activation="relu", **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.intermediate_dim = intermediate_dim
        self.activation = keras.activations.get(activation)

    def build(self, inputs_shape):
        self.expand = keras.layers.Dense(
            self.intermediate_dim,
            activation=self.activation,
            dtype=self.dtype_policy,
            name="expand",
        )
        self.contract = keras.layers.Dense(
            inputs_shape[-1], dtype=self.dtype_policy, name="contract"
        )
        self.expand.build(inputs_shape)
        self.contract.build((*inputs_shape[:-1], self.intermediate_dim))

    def call(self, inputs):
        return self.contract(self.expand(inputs))

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": keras.activations.serialize(self.activation),
        }
