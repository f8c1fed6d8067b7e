"""The gated recurrent unit, as its papers have it."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_attention")
class GRUCell(keras.layers.Layer):
    """One step of a gated recurrent unit, for `keras.layers.RNN`.

    Cho et al. 2014, equations 5 to 8:

    ```
    z  = sigmoid(W_z x + U_z h + b_z)       how much of the past to keep
    r  = sigmoid(W_r x + U_r h + b_r)       how much of it to look at
    h~ = tanh(W x + U (r * h) + b)          the candidate
    h' = z * h + (1 - z) * h~
    ```

    | paper | here |
    |---|---|
    | W_z, W_r, W | `kernel`, side by side |
    | U_z, U_r, U | `recurrent_kernel`, side by side |
    | h~ | `candidate` |

    Bahdanau et al. 2014 (A.1.1) let z and 1 - z change places. Deviation:
    biases, b_z, b_r and b side by side in `bias`.
    `keras.layers.GRUCell(units, reset_after=False)` is the same function of
    the same weights, but takes slices of its kernels, whose gradients are as
    large as the kernels: training is slower by a tenth where cells are most
    of the work.

    Args:
        units: width of the state.

    Call arguments:
        inputs: [B, D], x.
        states: list of one tensor [B, units], h.

    Returns:
        `(h', [h'])`.

    Raises:
        ValueError: If `units` is not positive.

    References: https://arxiv.org/abs/1406.1078,
    https://arxiv.org/abs/1409.0473
    """

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(
                f"`units` must be a positive integer. Received: units={units}"
            )
        self.units = units
        # What `keras.layers.RNN` asks a cell for.
        self.state_size = units
        self.output_size = units

    def build(self, inputs_shape, states_shape=None):
        self.kernel = self.add_weight(
            name="kernel",
            shape=(inputs_shape[-1], 3 * self.units),
            initializer="glorot_uniform",
        )
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel",
            shape=(self.units, 3 * self.units),
            initializer="orthogonal",
        )
        self.bias = self.add_weight(
            name="bias", shape=(3 * self.units,), initializer="zeros"
        )

    def call(self, inputs, states):
        (hidden,) = states
        # z and r stand before the candidate.
        gates_end = [2 * self.units]
        projected = ops.matmul(inputs, self.kernel) + self.bias  # W x + b
        to_gates, to_candidate = ops.split(projected, gates_end, axis=-1)
        u_gates, u = ops.split(self.recurrent_kernel, gates_end, axis=-1)
        gates = ops.sigmoid(to_gates + ops.matmul(hidden, u_gates))
        z, r = ops.split(gates, 2, axis=-1)
        candidate = ops.tanh(to_candidate + ops.matmul(r * hidden, u))
        hidden = z * hidden + (1 - z) * candidate
        return hidden, [hidden]

    def compute_output_shape(self, inputs_shape, states_shape=None):
        hidden_shape = (inputs_shape[0], self.units)
        return hidden_shape, [hidden_shape]

    def get_config(self):
        return {**super().get_config(), "units": self.units}
