"""A convolution that sees no later position, at once or step by step."""

import keras
from keras import ops

from keras_attention.layers import weights


@keras.saving.register_keras_serializable(package="keras_attention")
class CausalConvolution(keras.layers.Layer):
    """A masked, dilated convolution over a sequence.

    ```
    y_t = b + sum_j W_j x_{t - (k - 1 - j) d},  j = 0 ... k - 1
    ```

    What lies before the first position is 0. The last tap is the position
    itself. A stack of such layers sees `1 + sum (k - 1) d` positions, with one
    term for each layer (Kalchbrenner et al. 2016, section 3).

    | paper | here |
    |---|---|
    | k, width of the kernel | `kernel_size` |
    | d, rate of dilation | `dilation_rate` |
    | W, b | `kernel` [k, D, F], `bias` |

    A call sees a whole sequence. `step` sees one position and a buffer of the
    (k - 1) d inputs before it.

    Args:
        filters: width F of the outputs.
        kernel_size: k.
        dilation_rate: d: 1 is a convolution without gaps.
        kernel_initializer: initializer of W.

    Call arguments:
        inputs: [B, T, D].
        ahead: by how many positions the window is moved on. It is 0 for a
            convolution that sees no later position, see `centered`.

    Returns:
        [B, T, F].

    Raises:
        ValueError: If a size is not positive, or if the inputs are not of
            rank 3.

    Reference: https://arxiv.org/abs/1610.10099
    """

    def __init__(
        self,
        filters,
        kernel_size,
        dilation_rate=1,
        kernel_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if min(filters, kernel_size, dilation_rate) < 1:
            raise ValueError(
                "`filters`, `kernel_size` and `dilation_rate` must be "
                f"positive integers. Received: filters={filters}, "
                f"kernel_size={kernel_size}, dilation_rate={dilation_rate}"
            )
        self.filters = filters
        self.kernel_size = kernel_size
        self.dilation_rate = dilation_rate
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3)

    @property
    def buffer_length(self):
        """How many inputs before a position its output depends on."""
        return (self.kernel_size - 1) * self.dilation_rate

    def build(self, inputs_shape):
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.kernel_size, inputs_shape[-1], self.filters),
            initializer=self.kernel_initializer,
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.filters,), initializer="zeros"
        )

    def _product(self, taps):
        """All taps side by side, [..., k D], times all of the kernel."""
        kernel = ops.reshape(self.kernel, (-1, self.filters))
        kernel = ops.cast(kernel, self.compute_dtype)
        bias = ops.cast(self.bias, self.compute_dtype)
        return ops.matmul(ops.concatenate(taps, axis=-1), kernel) + bias

    def call(self, inputs, ahead=0):
        padding = ((0, 0), (self.buffer_length - ahead, ahead), (0, 0))
        padded = ops.pad(inputs, padding)  # [B, (k - 1) d + T, D]
        starts = [j * self.dilation_rate for j in range(self.kernel_size)]
        # On a CPU, TensorFlow's gradient of `slice` is several times as fast
        # as that of an index.
        return self._product(
            [
                ops.slice(padded, (0, start, 0), ops.shape(inputs))
                for start in starts
            ]
        )

    def initial_buffer(self, batch_size):
        """The inputs before the first position: zeros [B, (k - 1) d, D].

        Raises:
            ValueError: If the layer is not built: it has no width yet.
        """
        weights.check_ready(self)
        width = self.kernel.shape[1]
        return ops.zeros(
            (batch_size, self.buffer_length, width), self.compute_dtype
        )

    def step(self, inputs, buffer):
        """One more position.

        Args:
            inputs: [B, D].
            buffer: as `initial_buffer` or the last `step` returned it. Zeros
                [B, (k - 1) d, D] are the first one.

        Returns:
            `(outputs, buffer)`: [B, F], and the buffer with this position in
            the place of the oldest.

        Raises:
            ValueError: If the layer is not built, or if the inputs are
                symbolic inputs of a functional model.
        """
        weights.check_ready(self, inputs)
        inputs = ops.cast(inputs, self.compute_dtype)
        window = ops.concatenate([buffer, inputs[:, None]], axis=1)
        starts = [j * self.dilation_rate for j in range(self.kernel_size)]
        outputs = self._product([window[:, start] for start in starts])
        return outputs, window[:, 1:]

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape[:-1], self.filters)

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "dilation_rate": self.dilation_rate,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }


def centered(convolution, inputs):
    """A `CausalConvolution` whose window looks as far ahead as back.

    With a window of an odd width, it is Keras's `Conv1D(padding="same")`. But
    where TensorFlow computes by oneDNN, `Conv1D` gives an empty batch a wrong
    shape.

    Args:
        convolution: a `CausalConvolution`. With a window of an even width, it
            looks ahead less than back.
        inputs: [B, T, D].

    Returns:
        [B, T, F].
    """
    return convolution(inputs, ahead=convolution.buffer_length // 2)
