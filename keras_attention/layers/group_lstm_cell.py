"""The LSTM of independent groups: G-LSTM."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_attention")
class GroupLSTMCell(keras.layers.Layer):
    """One step of an LSTM made of groups, for `keras.layers.RNN`.

    Input and state are cut into k parts. Each part is read by an LSTM of its
    own, and the outputs are put side by side (Kuchaiev & Ginsburg 2017,
    section 2.3):

    ```
    i^j, f^j, g^j, o^j = W^j [x_t^j; h_{t-1}^j] + b^j        j = 1 ... k
    c_t^j = sigm(f^j) * c_{t-1}^j + sigm(i^j) * tanh(g^j)
    m_t^j = sigm(o^j) * tanh(c_t^j)
    h_t = P [m_t^1; ...; m_t^k]                  without P where p is None
    ```

    The matrix of an LSTM with n cells, inputs of width d and outputs of width
    p has `4 n (d + p)` weights. Here, only the k blocks of its diagonal are
    left: `4 n (d + p) / k`. Bias and P have `4 n + n p` more. Two layers of the
    paper (d = p = 1024, n = 8192) have 151,060,480 weights, and 50,397,184
    with k = 4.

    | paper | here |
    |---|---|
    | T^1 ... T^k | `kernel` [k, (d + p) / k, 4 n / k], `bias` [k, 4 n / k] |
    | k | `num_groups` |
    | n, cells | `units` |
    | p, P, the projection of LSTMP | `projection_dim`, `projection_kernel` |

    P sees all groups: without a projection, no group ever knows of another.

    Deviation: the paper's cells always have a projection, and its inputs are
    as wide as its outputs.

    Args:
        units: width of the memory c, of all groups together.
        num_groups: groups. The width of the inputs, `units` and
            `projection_dim` are multiples of it.
        projection_dim: width of the output h. By default there is no
            projection, and h is as wide as c.

    Call arguments:
        inputs: [B, D], x.
        states: list of h [B, P] and c [B, units], where P is `projection_dim`
            or `units`.

    Returns:
        `(h, [h, c])`.

    Raises:
        ValueError: If a number is not positive, or if `num_groups` does not
            divide a width.

    Reference: https://arxiv.org/abs/1703.10722
    """

    def __init__(self, units, num_groups, projection_dim=None, **kwargs):
        super().__init__(**kwargs)
        output_size = units if projection_dim is None else projection_dim
        if min(units, num_groups, output_size) < 1:
            raise ValueError(
                "`units`, `num_groups` and `projection_dim` must be positive "
                f"integers. Received: units={units}, num_groups={num_groups}, "
                f"projection_dim={projection_dim}"
            )
        self.units = units
        self.num_groups = num_groups
        self.projection_dim = projection_dim
        self._check_divides("`units`", units)
        self._check_divides("`projection_dim`", output_size)
        # What `keras.layers.RNN` asks a cell for.
        self.state_size = [output_size, units]
        self.output_size = output_size

    def _check_divides(self, name, width):
        if width % self.num_groups:
            raise ValueError(
                f"{name} must be a multiple of `num_groups`, so that all "
                f"groups are equally wide. Received: a width of {width}, "
                f"num_groups={self.num_groups}"
            )

    def build(self, inputs_shape, states_shape=None):
        input_dim, groups = inputs_shape[-1], self.num_groups
        self._check_divides("The width of the inputs", input_dim)
        width = 4 * self.units // groups
        self.kernel = self.add_weight(
            name="kernel",
            shape=(groups, (input_dim + self.output_size) // groups, width),
            # The widths of one group decide how large its weights are.
            initializer=keras.initializers.GlorotUniform(
                input_axes=[1], output_axes=[2]
            ),
        )
        self.bias = self.add_weight(
            name="bias", shape=(groups, width), initializer=self._first_bias
        )
        if self.projection_dim is not None:
            self.projection_kernel = self.add_weight(
                name="projection_kernel",
                shape=(self.units, self.projection_dim),
                initializer="glorot_uniform",
            )

    def _first_bias(self, shape, dtype=None):
        """1 for the forget gates, as in Keras's LSTM."""
        is_forget = ops.arange(shape[1]) // (shape[1] // 4) == 1
        # No view of one row: PyTorch could not assign to it.
        return ops.ones(shape, dtype) * ops.cast(is_forget, dtype)

    def _groups(self, x):
        """[B, D] -> [B, k, D / k]."""
        width = x.shape[-1] // self.num_groups
        return ops.reshape(x, (-1, self.num_groups, width))

    def call(self, inputs, states):
        output, memory = states
        z = ops.concatenate(
            [self._groups(inputs), self._groups(output)], axis=-1
        )
        z = ops.einsum("bki,kio->bko", z, self.kernel) + self.bias
        i, f, g, o = ops.split(z, 4, axis=-1)  # [B, k, n / k]
        memory = ops.sigmoid(f) * self._groups(memory)
        memory = memory + ops.sigmoid(i) * ops.tanh(g)
        output = ops.sigmoid(o) * ops.tanh(memory)
        memory = ops.reshape(memory, (-1, self.units))
        output = ops.reshape(output, (-1, self.units))
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
            "num_groups": self.num_groups,
            "projection_dim": self.projection_dim,
        }
