"""Adam with one fused operation for each weight."""

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="keras_attention")
class Adam(keras.optimizers.Adam):
    """Keras's Adam, through TensorFlow's fused update; on TensorFlow only.

    It does the same arithmetic (Kingma and Ba 2014, section 2, last paragraph)
    in one operation instead of a dozen. With a hundred small weights, Keras's
    own Adam takes about as long as the model's forward pass. The arguments are
    those of `keras.optimizers.Adam`, without `amsgrad`.

    With `use_ema`, the weights stay what training made them when `fit` ends,
    so that training can go on. `keras.callbacks.SwapEMAWeights` puts their
    averages in place.

    Raises:
        ValueError: If `amsgrad` is True.

    Reference: https://arxiv.org/abs/1412.6980
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.amsgrad:
            raise ValueError(
                "Use keras.optimizers.Adam for AMSGrad. Received: amsgrad=True"
            )

    def finalize_variable_values(self, var_list):
        """Nothing: the averages do not replace the weights, see above."""

    def update_step(self, gradient, variable, learning_rate):
        # Keras counts from 0, the paper from 1. The operation does not count:
        # it gets the powers of beta that correct the means of this step.
        step = tf.cast(self.iterations + 1, variable.dtype)
        index = self._get_variable_index(variable)
        # The fused operation has no sparse form. Keras's own Adam, too, moves
        # every row of an embedding, as each has momentum.
        if isinstance(gradient, tf.IndexedSlices):
            gradient = tf.convert_to_tensor(gradient)
        tf.raw_ops.ResourceApplyAdam(
            var=_handle(variable),
            m=_handle(self._momentums[index]),
            v=_handle(self._velocities[index]),
            beta1_power=tf.pow(tf.cast(self.beta_1, step.dtype), step),
            beta2_power=tf.pow(tf.cast(self.beta_2, step.dtype), step),
            lr=tf.cast(learning_rate, variable.dtype),
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=tf.cast(gradient, variable.dtype),
        )


def _handle(variable):
    """The resource that holds a variable's value on this device."""
    if isinstance(variable, keras.Variable):
        variable = variable.value
    return variable.handle
