"""The maxout layer that the first neural translators end in."""

import keras
from keras import ops

from keras_attention.layers import quantized_parts


@keras.saving.register_keras_serializable(package="keras_attention")
class Maxout(quantized_parts.QuantizedParts, keras.layers.Layer):
    """`t_j = max(u_{2j-1}, u_{2j})` with `u = x W + b`.

    The deep output of Cho et al. 2014 (appendix A.1.1) and of Bahdanau et
    al. 2014 (appendix A.2.2); maxout is from Goodfellow et al. 2013.

    Args:
        units: outputs; W has twice as many columns.

    Call arguments:
        inputs: [..., D].

    Returns:
        [..., units].

    References: https://arxiv.org/abs/1302.4389,
    https://arxiv.org/abs/1406.1078, https://arxiv.org/abs/1409.0473
    """

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.units = units
        self.dense = keras.layers.Dense(
            2 * units, dtype=self.dtype_policy, name="dense"
        )

    def build(self, inputs_shape):
        if not self.dense.built:
            self.dense.build(inputs_shape)

    def call(self, inputs):
        pairs = self.dense(inputs)
        shape = (*ops.shape(pairs)[:-1], self.units, 2)
        pairs = ops.reshape(pairs, shape)
        return ops.maximum(pairs[..., 0], pairs[..., 1])

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape[:-1], self.units)

    def get_config(self):
        return {**super().get_config(), "units": self.units}
