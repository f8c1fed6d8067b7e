"""A layer's outputs without its attention weights."""

import keras


@keras.saving.register_keras_serializable(package="keras_attention")
class OutputsOnly(keras.layers.Wrapper):
    """The first of the two things that an attention layer returns.

    For what takes one tensor from a layer: `keras.Sequential`, or
    `keras.layers.TimeDistributed`, which applies a layer to each sentence of
    a document:

    ```
    layer = ka.layers.TransformerEncoderLayer(num_heads=2, intermediate_dim=16)
    keras.layers.TimeDistributed(ka.layers.OutputsOnly(layer))
    ```

    Args:
        layer: a layer of one input that returns `(outputs,
            attention_weights)`: a `TransformerEncoderLayer` or a
            `MultiHeadAttention`, say.

    Call arguments:
        inputs: what the layer takes.
        training: whether dropout acts.
        mask: bool [B, S]. Keras fills it in, and the layer gets it.

    Returns:
        The layer's outputs.
    """

    def __init__(self, layer, **kwargs):
        super().__init__(layer, **kwargs)
        self.supports_masking = True

    def call(self, inputs, training=None, mask=None):
        outputs, _ = self.layer(inputs, training=training, mask=mask)
        return outputs

    def compute_output_shape(self, inputs_shape):
        outputs_shape, _ = self.layer.compute_output_shape(inputs_shape)
        return outputs_shape
