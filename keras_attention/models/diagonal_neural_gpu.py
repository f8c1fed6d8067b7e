"""The diagonal Neural GPU: an active memory that moves what it keeps."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import seq2seq
from keras_attention.tokens import PAD

# What a hard function's input may be without a cost. The cuts are at 1.
LIMIT = 0.9
# The first biases of the authors' code: most is kept, and most of it is read.
KEPT, READ = 0.7, 0.5


def saturation_cost(x, mask):
    """How far inputs of hard functions are beyond a limit.

    ```
    S(x) = sum max(0, |x| - 0.9)
    ```

    Where a function is cut, it has no gradient. The cost has one: it draws
    inputs back to where they can learn.

    Args:
        x: [B, N, D], inputs of hard_tanh or hard_sigmoid.
        mask: bool [B, N], True at the columns that there are.

    Returns:
        float32 [B], the sum over columns and maps.
    """
    beyond = ops.relu(ops.abs(ops.cast(x, "float32")) - LIMIT)
    return ops.sum(ops.where(mask[:, :, None], beyond, 0.0), axis=(1, 2))


def _hard_sigmoid(x):
    return ops.clip(0.5 * x + 0.5, 0, 1)


def shift(image):
    """Moves a third of the maps to the right, and a third to the left.

    The first maps stay where they are, the next ones move to the right by a
    column, and the last ones to the left.

    Args:
        image: [B, N, D].

    Returns:
        [B, N, D]. What comes from beyond an end is 0.
    """
    third = image.shape[-1] // 3
    still, right, left = ops.split(
        image, [image.shape[-1] - 2 * third, image.shape[-1] - third], axis=-1
    )
    right = ops.pad(right, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    left = ops.pad(left, ((0, 0), (0, 1), (0, 0)))[:, 1:]
    return ops.concatenate([still, right, left], axis=-1)


@keras.saving.register_keras_serializable(package="keras_attention")
class DiagonalConvolutionalGRU(keras.layers.Layer):
    """One step of a gated recurrent unit that keeps, moves or rewrites.

    Freivalds and Liepins 2017:

    ```
    u  = hard_sigmoid(U' * s + B')      how much of the past to keep
    r  = hard_sigmoid(U'' * s + B'')    how much of it to look at
    s~ = hard_tanh(U * (r . s) + B)     the candidate
    s' = u . shift(s) + (1 - u) . s~
    hard_tanh(x) = max(-1, min(1, x))
    hard_sigmoid(x) = max(0, min(1, (x + 1) / 2))
    ```

    `*` is a convolution over columns, and `.` the product of elements. The
    unit of Kaiser and Sutskever 2016 has s in place of `shift(s)`: where u is
    1, the past stays. Here a third of the maps stays, a third moves a column to
    the right, and a third to the left. So what is kept can travel.

    | paper | here |
    |---|---|
    | s | `image` |
    | U', U''; B', B'' | `gate_kernel`; `gate_bias`, 0.7 and 0.5 at first |
    | U; B | `kernel`; `bias` |
    | m, maps | `filters` |

    Deviations: columns outside of `mask` are 0, before and after, and cost
    nothing. Both gates have one kernel. Its first weights are 0.8 times as
    large as those of two kernels would be.

    Args:
        filters: m, the depth of the image, at least 3.
        kernel_size: columns of a kernel.

    Call arguments:
        image: [B, N, filters], N columns.
        mask: bool [B, N], True at the columns that there are.
        noise: what the candidate is multiplied by, such as the mask of a
            dropout.

    Returns:
        The next image, [B, N, filters], and what its step costs: float32 [B],
        the `saturation_cost` of all three functions.

    Raises:
        ValueError: If there are fewer than 3 filters, or `kernel_size` is even.

    Reference: https://arxiv.org/abs/1702.08727
    """

    def __init__(self, filters, kernel_size=3, **kwargs):
        super().__init__(**kwargs)
        if filters < 3 or kernel_size % 2 != 1:
            raise ValueError(
                "`filters` must be at least 3, and `kernel_size` odd. "
                f"Received: filters={filters}, kernel_size={kernel_size}"
            )
        self.filters = filters
        self.kernel_size = kernel_size

    def build(self, image_shape, mask_shape=None):
        area = (self.kernel_size, self.filters)

        def begin(shape, dtype=None):
            return ops.repeat(ops.array([KEPT, READ], dtype), self.filters)

        self.gate_kernel = self.add_weight(
            name="gate_kernel", shape=(*area, 2 * self.filters)
        )
        self.gate_bias = self.add_weight(
            name="gate_bias", shape=(2 * self.filters,), initializer=begin
        )
        self.kernel = self.add_weight(
            name="kernel", shape=(*area, self.filters)
        )
        self.bias = self.add_weight(
            name="bias", shape=(self.filters,), initializer="zeros"
        )

    def call(self, image, mask, noise=1):
        def convolve(x, kernel, bias):
            convolved = ops.conv(x, kernel, padding="same")
            # By oneDNN, TensorFlow gives an empty batch the shape of x.
            shape = (*ops.shape(x)[:-1], kernel.shape[-1])
            return ops.reshape(convolved, shape) + bias

        gates = convolve(image, self.gate_kernel, self.gate_bias)
        u, r = ops.split(_hard_sigmoid(gates), 2, axis=-1)
        candidate = convolve(r * image, self.kernel, self.bias)
        cost = saturation_cost(gates, mask)
        cost += saturation_cost(candidate, mask)
        candidate = noise * ops.hard_tanh(candidate)
        image = u * shift(image) + (1 - u) * candidate
        return ops.where(mask[:, :, None], image, 0), cost

    def compute_output_shape(self, image_shape, mask_shape=None):
        return (*image_shape[:-1], self.filters), image_shape[:1]

    def get_config(self):
        return {
            **super().get_config(),
            "filters": self.filters,
            "kernel_size": self.kernel_size,
        }


@keras.saving.register_keras_serializable(package="keras_attention")
class DiagonalNeuralGPU(seq2seq.Seq2Seq):
    """Freivalds' Neural GPU: the whole answer at once, by steps of one unit.

    Freivalds and Liepins 2017. A source of n symbols is an image of n columns,
    which is rewritten n times:

    ```
    s_0     = hard_tanh(E x)
    s_i     = DCGRU(s_{i-1}), i = 1 ... n
    p(y_t)  = softmax(O s_n[t])               column t
    ```

    So the answer's tokens do not read each other. `step` looks at no token that
    was written, and gives the logits of the next column.

    Training also lowers the cost of what is beyond the functions' limits, with
    S as in `saturation_cost`:

    ```
    C(x)    = n S(E x) + sum_i S(inputs of the functions of step i)
    ```

    | paper | here |
    |---|---|
    | m, maps | `filters` |
    | s | `image` |
    | weight of the saturation cost | `saturation_weight` |

    The model has no attention. All of the memory takes part in each step, so
    the weights that `step` returns are uniform over the source.

    Deviations, from the authors' code: a row of a batch has as many columns,
    and takes as many steps, as it has symbols and `extra_columns`. The authors
    pad rows to the length of a bin, which is at least that of the answer. So
    they train columns behind the answer to be empty, and short rows with more
    steps. Here an answer that is longer than the image has logits of the bias
    alone there. The source's symbols have no bias beside E. The authors lower
    the weight of the cost as the loss falls. They train by AdaMax, clip each
    gradient by the largest one before it, and add noise. None of it is done
    here: `train` has Adam, and clips the norm of all gradients together.

    Args:
        vocabulary_size: target (or joint) vocabulary.
        source_vocabulary_size: that of the source; by default the same size.
        filters: m, width of the image.
        kernel_size: of the convolutions.
        extra_columns: how many more tokens an answer may have than its source.
            They hold padding at first.
        dropout: rate, on the first image and on each step's candidate.
        saturation_weight: how much C / n^2 counts beside the cross-entropy of
            a token.

    Raises:
        ValueError: If `extra_columns` is negative, or see
            `DiagonalConvolutionalGRU`.

    Reference: https://arxiv.org/abs/1702.08727
    """

    sizes = {
        # 48 maps, for sums: as in the authors' code.
        # https://github.com/LUMII-Syslab/DNGPU
        "mini": {"filters": 48, "dropout": 0.1},
        # 96 maps, theirs for products of binary numbers.
        "tiny": {"filters": 96, "dropout": 0.1},
        # 192 maps, theirs for products of decimal numbers.
        "base": {"dropout": 0.1},
    }

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        filters=192,
        kernel_size=3,
        extra_columns=0,
        dropout=0.0,
        saturation_weight=1e-3,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if extra_columns < 0:
            raise ValueError(
                "`extra_columns` must be at least 0. "
                f"Received: extra_columns={extra_columns}"
            )
        self.supports_jit = seq2seq.LOOPS_COMPILE
        self.config = {
            "vocabulary_size": vocabulary_size,
            "source_vocabulary_size": source_vocabulary_size,
            "filters": filters,
            "kernel_size": kernel_size,
            "extra_columns": extra_columns,
            "dropout": dropout,
            "saturation_weight": saturation_weight,
        }
        policy = {"dtype": self.dtype_policy}
        self.source_embedding = keras.layers.Embedding(
            source_vocabulary_size or vocabulary_size,
            filters,
            "glorot_uniform",
            name="source_embedding",
            **policy,
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.cell = DiagonalConvolutionalGRU(
            filters, kernel_size, name="cell", **policy
        )
        self.output_projection = keras.layers.Dense(
            vocabulary_size, name="output_projection", **policy
        )
        # Before a step is traced: JAX loses weights made in a trace.
        self.cell.build((None, None, filters))

    def _compute(self, source_ids, training):
        """s_n, and C / n^2 of each row."""
        extra = self.config["extra_columns"]
        lengths = ops.sum(
            ops.cast(layers.padding_mask(source_ids, PAD), "int32"), axis=1
        )
        lengths = lengths + extra  # n, [B]
        ids = ops.pad(source_ids, ((0, 0), (0, extra)))
        num_steps = ops.shape(ids)[1]
        mask = ops.arange(num_steps)[None] < lengths[:, None]  # [B, N]
        embedded = self.source_embedding(ids)
        image = self.dropout(ops.hard_tanh(embedded), training=training)
        image = ops.where(mask[:, :, None], image, 0)
        noise = self._noise(num_steps, image, training)

        def advance(state, step):
            image, cost = self.cell(state["image"], mask, noise=noise(step))
            is_on = step < lengths  # [B]
            state = {
                "image": ops.where(is_on[:, None, None], image, state["image"]),
                "cost": state["cost"] + ops.where(is_on, cost, 0),
            }
            return state, state

        n = ops.cast(ops.maximum(lengths, 1), "float32")
        state = {"image": image, "cost": n * saturation_cost(embedded, mask)}
        state, _ = ops.scan(advance, state, xs=ops.arange(num_steps))
        return state["image"], state["cost"] / n**2

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
        image, _ = self._compute(source_ids, training)
        real = layers.padding_mask(source_ids, PAD)
        real = ops.cast(real, "float32")  # [B, S]
        lengths = ops.maximum(ops.sum(real, axis=1, keepdims=True), 1.0)
        return {"image": image, "attention_weights": real / lengths}

    def initial_state(self, memory, max_length=None):
        """The column that is read first."""
        return {"position": ops.zeros_like(memory["image"][:, 0, 0], "int32")}

    def _logits(self, features):
        return ops.cast(self.output_projection(features), "float32")

    def step(self, token_ids, memory, state):
        """Reads the next column; the last token changes nothing."""
        image, position = memory["image"], state["position"]
        columns = ops.arange(ops.shape(image)[1])[None]  # [1, N]
        place = ops.cast(ops.equal(columns, position[:, None]), image.dtype)
        # Beyond the image it is 0.
        features = ops.sum(place[:, :, None] * image, axis=1)  # [B, D]
        state = {"position": position + 1}
        return self._logits(features), state, memory["attention_weights"]

    def _read(self, image, num_tokens):
        """The logits of the first columns, and of zeros beyond the image."""
        batch_size, _, filters = ops.shape(image)
        beyond = ops.zeros((batch_size, num_tokens, filters), image.dtype)
        image = ops.concatenate([image, beyond], axis=1)
        return self._logits(image[:, :num_tokens])

    def call(self, inputs, training=None):
        image, _ = self._compute(inputs["source_ids"], training)
        return self._read(image, ops.shape(inputs["target_ids"])[1])

    def objective(self, batch, training):
        """Cross-entropy and, in training, the saturation cost.

        ```
        loss_t = -log p(y_t | x) + saturation_weight C(x) / n^2
        ```

        Labels are not smoothed.
        """
        inputs, labels, weights = batch
        real = ops.cast(weights > 0, "float32")  # [B, T]
        image, cost = self._compute(inputs["source_ids"], training)
        log_p = ops.take_along_axis(
            ops.log_softmax(self._read(image, ops.shape(labels)[1])),
            labels[..., None],
            axis=-1,
        )[..., 0]
        loss = ops.where(real > 0, -log_p, 0.0)
        if training:
            loss += self.config["saturation_weight"] * cost[:, None]
        return {"loss": (loss, real)}

    def get_config(self):
        return {**super().get_config(), **self.config}
