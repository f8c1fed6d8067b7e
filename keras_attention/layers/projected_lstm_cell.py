"""The LSTM whose state is projected: many cells, few connections."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_attention")
class ProjectedLSTMCell(keras.layers.Layer):
    """One step of an LSTM with a projection, for `keras.layers.RNN`.

    Sak et al. 2014, section 2.2, without its peepholes:

    ```
    i, f, g, o = W x_t + R r_{t-1} + b
    c_t = sigm(f) * c_{t-1} + sigm(i) * tanh(g)
    r_t = W_r (sigm(o) * tanh(c_t))
    ```

    r_t is the output, and returns at the next step. It is narrower than c_t.
    An LSTM with n cells and inputs of width d has `4 n (d + n + 1)` weights.
    With a projection to width p it has `4 n (d + p + 1) + n p`.

    | paper | here |
    |---|---|
    | n_c, cells | `units` |
    | n_r, recurrent projection | `projection_dim` |
    | W_rm | `projection_kernel` |

    Deviation: there are no peepholes, and no second projection that is output
    and does not return.

    Args:
        units: width of the memory c.
        projection_dim: width of the output r.

    Call arguments:
        inputs: [B, D], x.
        states: list of r [B, projection_dim] and c [B, units].

    Returns:
        `(r, [r, c])`.

    Raises:
        ValueError: If a width is not positive.

    Reference: https://arxiv.org/abs/1402.1128 (Sak et al. 2014);
    https://arxiv.org/abs/1602.02410 (Jozefowicz et al. 2016) has its use
    """

    def __init__(self, units, projection_dim, **kwargs):
        super().__init__(**kwargs)
        if units < 1 or projection_dim < 1:
            raise ValueError(
                "`units` and `projection_dim` must be positive integers. "
                f"Received: units={units}, projection_dim={projection_dim}"
            )
        self.units = units
        self.projection_dim = projection_dim
        # What `keras.layers.RNN` asks a cell for.
        self.state_size = [projection_dim, units]
        self.output_size = projection_dim

    def build(self, inputs_shape, states_shape=None):
        width = 4 * self.units
        self.kernel = self.add_weight(
            name="kernel",
            shape=(inputs_shape[-1], width),
            initializer="glorot_uniform",
        )
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(self.projection_dim, width),
            initializer="orthogonal",
        )
        self.bias = self.add_weight(
            name="bias", shape=(width,), initializer=self._first_bias
        )
        self.projection_kernel = self.add_weight(
            name="projection_kernel",
            shape=(self.units, self.projection_dim),
            initializer="glorot_uniform",
        )

    def _first_bias(self, shape, dtype=None):
        """1 for the forget gates, as in Keras's LSTM."""
        is_forget = ops.arange(shape[0]) // self.units == 1
        return ops.cast(is_forget, dtype)

    def call(self, inputs, states):
        output, memory = states
        z = ops.matmul(inputs, self.kernel)
        z = z + ops.matmul(output, self.recurrent_kernel) + self.bias
        i, f, g, o = ops.split(z, 4, axis=-1)
        memory = ops.sigmoid(f) * memory + ops.sigmoid(i) * ops.tanh(g)
        hidden = ops.sigmoid(o) * ops.tanh(memory)
        output = ops.matmul(hidden, self.projection_kernel)
        return output, [output, memory]

    def compute_output_shape(self, inputs_shape, states_shape=None):
        output_shape = (inputs_shape[0], self.projection_dim)
        return output_shape, [output_shape, (inputs_shape[0], self.units)]

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "projection_dim": self.projection_dim,
        }
