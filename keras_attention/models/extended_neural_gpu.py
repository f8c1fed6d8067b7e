"""The Extended Neural GPU: an active memory in place of attention."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import seq2seq
from keras_attention.tokens import PAD


@keras.saving.register_keras_serializable(package="keras_attention")
class ConvolutionalGRU(keras.layers.Layer):
    """One step of a gated recurrent unit whose state is an image.

    Kaiser and Bengio 2016, section 2 (Kaiser and Sutskever 2016, equation 1):

    ```
    u  = sigmoid'(U' * s + W' * p + B')      how much of the past to keep
    r  = sigmoid'(U'' * s + W'' * p + B'')   how much of it to look at
    s~ = tanh(U * (r . s) + W * p + B)       the candidate
    s' = u . s + (1 - u) . s~
    sigmoid'(x) = max(0, min(1, 1.2 sigmoid(x) - 0.1))
    ```

    `*` is a convolution with a kernel of 3 x 3, and `.` the product of
    elements. sigmoid' reaches 0 and 1: where u is 1, the past stays exactly
    what it was. All columns change at once.

    | paper | here |
    |---|---|
    | s | `image` |
    | p, the output tape | `tape`; the encoder has none, and no W |
    | U', U'', W', W'' | `gate_kernel` |
    | U, W | `kernel` |
    | B', B'' | `gate_bias`, 1 at first |
    | m | `filters` |

    Deviation: columns outside of `mask` are 0, before and after.

    Args:
        filters: m, the depth of the image.
        kernel_size: columns of a kernel, and its rows if the image has as
            many.

    Call arguments:
        image: [B, N, H, filters]: N columns of H rows.
        mask: bool [B, N], True at the columns that there are.
        tape: [B, N, H, D] or None.

    Returns:
        The next image, [B, N, H, filters].

    Raises:
        ValueError: If `filters` is not positive, or `kernel_size` is even.

    References: https://arxiv.org/abs/1610.08613,
    https://arxiv.org/abs/1511.08228
    """

    def __init__(self, filters, kernel_size=3, **kwargs):
        super().__init__(**kwargs)
        if filters < 1 or kernel_size % 2 != 1:
            raise ValueError(
                "`filters` must be positive, and `kernel_size` odd. "
                f"Received: filters={filters}, kernel_size={kernel_size}"
            )
        self.filters = filters
        self.kernel_size = kernel_size

    def build(self, image_shape, mask_shape=None, tape_shape=None):
        depth = image_shape[-1] + (tape_shape[-1] if tape_shape else 0)
        rows = min(self.kernel_size, 2 * image_shape[2] - 1)
        area = (self.kernel_size, rows)
        self.gate_kernel = self.add_weight(
            name="gate_kernel", shape=(*area, depth, 2 * self.filters)
        )
        self.gate_bias = self.add_weight(
            name="gate_bias", shape=(2 * self.filters,), initializer="ones"
        )
        self.kernel = self.add_weight(
            name="kernel", shape=(*area, depth, self.filters)
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.filters,), initializer="zeros"
        )

    def call(self, image, mask, tape=None):
        def convolve(x, kernel):
            x = x if tape is None else ops.concatenate([x, tape], axis=-1)
            convolved = ops.conv(x, kernel, padding="same")
            # By oneDNN, TensorFlow gives an empty batch the shape of x.
            return ops.reshape(
                convolved, (*ops.shape(x)[:-1], kernel.shape[-1])
            )

        gates = ops.sigmoid(convolve(image, self.gate_kernel) + self.gate_bias)
        gates = ops.clip(1.2 * gates - 0.1, 0, 1)
        u, r = ops.split(gates, 2, axis=-1)
        candidate = ops.tanh(convolve(r * image, self.kernel) + self.bias)
        image = u * image + (1 - u) * candidate
        return ops.where(mask[:, :, None, None], image, 0)

    def compute_output_shape(
        self, image_shape, mask_shape=None, tape_shape=None
    ):
        return (*image_shape[:-1], self.filters)

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
        }


@keras.saving.register_keras_serializable(package="keras_attention")
class ExtendedNeuralGPU(seq2seq.Seq2Seq):
    """Kaiser's active memory: each step rewrites the whole of it.

    Kaiser and Bengio 2016, section 3, figure 5. A source of n symbols is an
    image of n columns, whose first row holds the embedded symbols:

    ```
    s_0     = [E x; 0; ...; 0]
    s_i     = CGRU(s_{i-1}), i = 1 ... n      the encoder
    d_0     = s_n, p_0 = 0
    d_t     = CGRU^d(d_{t-1}, p_{t-1})        the decoder
    p(y_t)  = softmax(O d_t[t, 0])            column t, first row
    p_t     = p_{t-1}, with p_t[t, 0] = E' y_t
    ```

    Attention looks at one place at a time. Here each column sees its
    neighbours. In a step, news travels `num_layers` columns or more. After n
    steps, each column can have heard of all others. The decoder reads its
    answer from one column after the other, and writes the answer on the tape.

    | paper | here |
    |---|---|
    | m, maps of the image | `filters` |
    | w, width of the image | `height`: its rows. Columns are symbols. |
    | l, layers of a step | `num_layers`: CGRUs one after the other |
    | s, d | `image` |
    | p | `tape` |

    The model has no attention. All of the memory takes part in each step, so
    the weights that `step` returns are uniform over the source.

    Deviations: START is written on the tape before the first step. So the tape
    has y_{t-1} in the column of y_t. Where the answer is longer than the
    source, the decoder's image grows by a column a step. In the authors' code,
    both are padded to one length. A row of a batch takes as many steps as it
    has symbols. Kaiser and Sutskever 2016 relax the sharing of parameters and
    add noise to gradients. Neither is done here. Dropout acts on the image
    before each step, as in the authors' code.

    Args:
        vocabulary_size: target (or joint) vocabulary.
        source_vocabulary_size: that of the source; by default the same
            size. The two embeddings are always two matrices.
        filters: depth of the image, and width of the embeddings.
        height: rows of the image.
        num_layers: CGRUs in each step, of encoder and decoder.
        kernel_size: of the convolutions.
        dropout: rate.

    Raises:
        ValueError: If `height` or `num_layers` is not positive.

    References: https://arxiv.org/abs/1610.08613,
    https://arxiv.org/abs/1511.08228
    """

    sizes = {
        # One row of 48 maps: for `addition` on two cores.
        "mini": {"filters": 48, "height": 1, "num_layers": 1, "dropout": 0.06},
        # Two rows of 128 maps: for small data and two cores.
        "tiny": {"filters": 128, "height": 2, "num_layers": 2, "dropout": 0.1},
        # Four rows of 512 maps, two layers: a large model of the authors' code.
        # https://github.com/tensorflow/models, research/neural_gpu
        "base": {},
    }

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        filters=512,
        height=4,
        num_layers=2,
        kernel_size=3,
        dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._check_layers(num_layers)
        if height < 1:
            raise ValueError(
                f"`height` must be at least 1. Received: height={height}"
            )
        self.supports_jit = seq2seq.LOOPS_COMPILE
        self.config = {
            "vocabulary_size": vocabulary_size,
            "source_vocabulary_size": source_vocabulary_size,
            "filters": filters,
            "height": height,
            "num_layers": num_layers,
            "kernel_size": kernel_size,
            "dropout": dropout,
        }
        policy = {"dtype": self.dtype_policy}
        # As large as what tanh writes beside them.
        uniform = keras.initializers.RandomUniform(-1, 1)
        self.source_embedding, self.target_embedding = (
            keras.layers.Embedding(
                size, filters, uniform, name=f"{side}_embedding", **policy
            )
            for side, size in (
                ("source", source_vocabulary_size or vocabulary_size),
                ("target", vocabulary_size),
            )
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.encoder, self.decoder = (
            [
                ConvolutionalGRU(
                    filters, kernel_size, name=f"{name}_{i}", **policy
                )
                for i in range(num_layers)
            ]
            for name in ("encoder", "decoder")
        )
        self.output_projection = keras.layers.Dense(
            vocabulary_size, name="output_projection", **policy
        )
        # Before a step is traced: JAX loses weights made in a trace.
        image_shape = (None, None, height, filters)
        for cell in self.encoder:
            cell.build(image_shape)
        for cell in self.decoder:
            cell.build(image_shape, tape_shape=image_shape)

    def _first_row(self, x):
        """[B, N, D] -> [B, N, H, D]: x, and rows of 0 below it."""
        below = self.config["height"] - 1
        return ops.pad(x[:, :, None], ((0, 0), (0, 0), (0, below), (0, 0)))

    def _noise(self, num_steps, image, training):
        """A function of the step: what dropout makes of ones."""
        if not training or not self.config["dropout"]:
            return lambda step: 1
        # Drawn before the loop: JAX loses a seed that changes in a trace.
        ones = ops.ones((num_steps, *ops.shape(image)), image.dtype)
        noise = self.dropout(ones, training=True)
        return lambda step: ops.take(noise, step, axis=0)

    def encode(self, source_ids, training=None):
        """The image after n steps, of a row of n symbols."""
        mask = layers.padding_mask(source_ids, PAD)  # [B, S]
        x = self.source_embedding(source_ids)
        image = ops.where(mask[:, :, None, None], self._first_row(x), 0)

        lengths = ops.sum(ops.cast(mask, "int32"), axis=1)  # [B]
        num_steps = ops.shape(mask)[1]
        noise = self._noise(num_steps, image, training)

        def advance(image, step):
            following = image * noise(step)
            for cell in self.encoder:
                following = cell(following, mask)
            is_on = (step < lengths)[:, None, None, None]
            image = ops.where(is_on, following, image)
            return image, image

        image, _ = ops.scan(advance, image, xs=ops.arange(num_steps))
        lengths = ops.cast(ops.maximum(lengths, 1), "float32")
        return {
            "image": image,  # [B, S, H, D]
            "mask": mask,
            "attention_weights": ops.cast(mask, "float32") / lengths[:, None],
        }

    def initial_state(self, memory, max_length):
        """d_0, with a column for each symbol of source or answer."""
        image, mask = memory["image"], memory["mask"]
        batch_size, length, height, filters = ops.shape(image)
        width = _greater(length, max_length)
        room = (batch_size, width - length)
        image = ops.concatenate(
            [image, ops.zeros((*room, height, filters), image.dtype)], axis=1
        )
        return {
            "image": image,  # [B, N, H, D]
            "tape": ops.zeros_like(image[:, :, 0]),  # [B, N, D]
            "mask": ops.concatenate([mask, ops.zeros(room, "bool")], axis=1),
            "position": ops.zeros((batch_size,), "int32"),
            "features": ops.zeros_like(image[:, 0, 0]),
        }

    def _advance(self, embedded, state, noise=1):
        position = state["position"][:, None]  # [B, 1]
        columns = ops.arange(ops.shape(state["mask"])[1])[None]  # [1, N]
        is_position = ops.equal(columns, position)
        mask = ops.logical_or(state["mask"], is_position)
        place = ops.cast(is_position, embedded.dtype)[:, :, None]  # [B, N, 1]
        tape = state["tape"] + place * embedded[:, None]
        image, tape_image = state["image"] * noise, self._first_row(tape)
        for cell in self.decoder:
            image = cell(image, mask, tape_image)
        return {
            "image": image,
            "tape": tape,
            "mask": mask,
            "position": state["position"] + 1,
            "features": ops.sum(place * image[:, :, 0], axis=1),  # [B, D]
        }

    def _logits(self, features):
        return layers.logits(self.output_projection, features)

    def step(self, token_ids, memory, state):
        """Writes the last token on the tape, and reads the next column."""
        state = self._advance(self.target_embedding(token_ids), state)
        logits = self._logits(state["features"])
        return logits, state, memory["attention_weights"]

    def call(self, inputs, training=None):
        memory = self.encode(inputs["source_ids"], training)
        embedded = self.target_embedding(inputs["target_ids"])  # [B, T, D]
        num_steps = ops.shape(embedded)[1]
        state = self.initial_state(memory, num_steps)
        noise = self._noise(num_steps, state["image"], training)

        def advance(state, step):
            token = ops.take(embedded, step, axis=1)  # [B, D]
            state = self._advance(token, state, noise(step))
            return state, state

        _, states = ops.scan(advance, state, xs=ops.arange(num_steps))
        features = ops.swapaxes(states["features"], 0, 1)  # [B, T, D]
        return self._logits(features)  # [B, T, V]

    def get_config(self):
        return {**super().get_config(), **self.config}


def _greater(length, other):
    """The greater of two lengths, which a graph may not know yet."""
    if isinstance(length, int) and isinstance(other, int):
        return max(length, other)
    return ops.maximum(length, other)
