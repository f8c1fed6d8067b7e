"""The LSTM whose large matrix is a product of two small ones: F-LSTM."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_attention")
class FactorizedLSTMCell(keras.layers.Layer):
    """One step of an LSTM with a factorised matrix, for `keras.layers.RNN`.

    Kuchaiev & Ginsburg 2017, sections 2.1 and 2.2:

    ```
    i, f, g, o = W_2 W_1 [x_t; h_{t-1}] + b      T, of rank r
    c_t = sigm(f) * c_{t-1} + sigm(i) * tanh(g)
    h_t = P (sigm(o) * tanh(c_t))                without P where p is None
    ```

    The affine map T of an LSTM with n cells, inputs of width d and outputs of
    width p has a matrix of `4 n (d + p)` weights, and does as many
    multiplications a step. Its factors have `r (d + p) + 4 n r`: fewer if
    `r < 4 n (d + p) / (4 n + d + p)`. Bias and P have `4 n + n p` more. Two
    layers of the paper (d = p = 1024, n = 8192) have 151,060,480 weights, and
    52,494,336 with r = 512.

    | paper | here |
    |---|---|
    | W_1, from 2p to r | `first_factor` |
    | W_2, from r to 4n | `second_factor` |
    | r | `rank` |
    | n, cells | `units` |
    | p, P, the projection of LSTMP | `projection_dim`, `projection_kernel` |

    Deviation: the paper's cells always have a projection, and its inputs are
    as wide as its outputs.

    Args:
        units: width of the memory c.
        rank: width between the factors. From `min(4 n, d + p)` on, the cell
            can be any LSTM.
        projection_dim: width of the output h. By default there is no
            projection, and h is as wide as c.

    Call arguments:
        inputs: [B, D], x.
        states: list of h [B, P] and c [B, units], where P is `projection_dim`
            or `units`.

    Returns:
        `(h, [h, c])`.

    Raises:
        ValueError: If a width is not positive.

    Reference: https://arxiv.org/abs/1703.10722
    """

    def __init__(self, units, rank, projection_dim=None, **kwargs):
        super().__init__(**kwargs)
        output_size = units if projection_dim is None else projection_dim
        if min(units, rank, output_size) < 1:
            raise ValueError(
                "`units`, `rank` and `projection_dim` must be positive "
                f"integers. Received: units={units}, rank={rank}, "
                f"projection_dim={projection_dim}"
            )
        self.units = units
        self.rank = rank
        self.projection_dim = projection_dim
        # What `keras.layers.RNN` asks a cell for.
        self.state_size = [output_size, units]
        self.output_size = output_size

    def build(self, inputs_shape, states_shape=None):
        self.first_factor = self.add_weight(
            name="first_factor",
            shape=(inputs_shape[-1] + self.output_size, self.rank),
            initializer="glorot_uniform",
        )
        self.second_factor = self.add_weight(
            name="second_factor",
            shape=(self.rank, 4 * self.units),
            initializer="glorot_uniform",
        )
        self.bias = self.add_weight(
            name="bias", shape=(4 * self.units,), initializer=self._first_bias
        )
        if self.projection_dim is not None:
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
        z = ops.concatenate([inputs, output], axis=-1)
        z = ops.matmul(z, self.first_factor)  # [B, rank]
        z = ops.matmul(z, self.second_factor) + self.bias
        i, f, g, o = ops.split(z, 4, axis=-1)
        memory = ops.sigmoid(f) * memory + ops.sigmoid(i) * ops.tanh(g)
        output = ops.sigmoid(o) * ops.tanh(memory)
        if self.projection_dim is not None:
            output = ops.matmul(output, self.projection_kernel)
        return output, [output, memory]

    def compute_output_shape(self, inputs_shape, states_shape=None):
        output_shape = (inputs_shape[0], self.output_size)
        return output_shape, [output_shape, (inputs_shape[0], self.units)]

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "rank": self.rank,
            "projection_dim": self.projection_dim,
        }
