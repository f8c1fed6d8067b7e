"""ByteNet: dilated convolutions in two stacks, the one upon the other."""

import math
import typing

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import seq2seq
from keras_attention.tokens import PAD


class _ResidualBlock(keras.layers.Layer):
    """Three convolutions, each after a normalisation and a ReLU (fig. 3).

    ```
    x + W_3 r(x_2),  x_2 = Conv_{k,d}(r(W_1 r(x))),  r = ReLU(LayerNorm(.))
    ```

    Args:
        hidden_dim: d; the inputs are 2d wide.
        kernel_size: k of the convolution in the middle.
        dilation_rate: of the convolution in the middle.
        is_causal: whether it is masked (the decoder's).
        dropout: rate on the block's output.
    """

    def __init__(
        self,
        hidden_dim,
        kernel_size,
        dilation_rate,
        is_causal,
        dropout,
        **kwargs,
    ):
        super().__init__(**kwargs)
        policy = {"dtype": self.dtype_policy}
        self.norms = [
            keras.layers.LayerNormalization(
                epsilon=1e-6, name=f"norm_{i}", **policy
            )
            for i in range(3)
        ]
        self.contract = keras.layers.Dense(
            hidden_dim, name="contract", **policy
        )
        self.is_causal = is_causal
        self.convolution = layers.CausalConvolution(
            hidden_dim, kernel_size, dilation_rate, name="convolution", **policy
        )
        self.expand = keras.layers.Dense(
            2 * hidden_dim, name="expand", **policy
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        wide, narrow = (None, None, 2 * hidden_dim), (None, None, hidden_dim)
        for layer, shape in (
            (self.norms[0], wide),
            (self.contract, wide),
            (self.norms[1], narrow),
            (self.convolution, narrow),
            (self.norms[2], narrow),
            (self.expand, narrow),
        ):
            layer.build(shape)
        self.built = True

    def _before(self, inputs):
        x = self.contract(ops.relu(self.norms[0](inputs)))
        return ops.relu(self.norms[1](x))

    def _after(self, inputs, convolved, training=None):
        x = self.expand(ops.relu(self.norms[2](convolved)))
        return inputs + self.dropout(x, training=training)

    def call(self, inputs, real=None, training=None):
        """`real` [B, T, 1] is 0 where the convolution must see nothing."""
        x = self._before(inputs)
        x = x if real is None else x * real
        convolved = (
            self.convolution(x)
            if self.is_causal
            else layers.centered(self.convolution, x)
        )
        return self._after(inputs, convolved, training)

    def step(self, inputs, buffer):
        """One position of a causal block: [B, 2d] -> outputs, buffer."""
        convolved, buffer = self.convolution.step(self._before(inputs), buffer)
        return self._after(inputs, convolved), buffer


@keras.saving.register_keras_serializable(package="keras_attention")
class ByteNet(seq2seq.Seq2Seq):
    """A decoder stacked on an encoder (Kalchbrenner et al. 2016, section 3).

    ```
    s   = blocks(E x),  0 <= j < a |x| + b        dilated, not causal
    u_t = E' y_{t-1} + s_t                        the column of its own place
    h   = blocks(u)                               dilated and causal
    p(y_t) = softmax(W_2 ReLU(LayerNorm(W_1 ReLU(LayerNorm(h_t)))))
    ```

    There is no attention and no recurrence. The encoder keeps one column for
    each place. A translation may be longer than its source, so the encoder
    reads on for `a |x| + b` places (dynamic unfolding, 3.2). Step t of the
    decoder sees column t and all before it. After the last column it sees
    zeros. Dilation doubles from block to block, 1, 2, 4, 8, 16, and starts
    again.

    | paper | here |
    |---|---|
    | d | `hidden_dim`; embeddings and blocks are 2d wide |
    | k, r | `kernel_size`, `dilation_rates` |
    | sets of five blocks | `num_sets`, in encoder and decoder |
    | a, b | `unfolding_factor`, `unfolding_offset` |

    The attention weights of a step say where the decoder stands: 1 at its own
    place, or at the last token once the source is over. They are no alignment.

    Deviations: column and embedding are added, as the paper does not say how
    it joins them. The ByteNet of Tensor2Tensor, bytenet.py, has a causal
    convolution read both. `joined_by="convolution"` does so:

    ```
    u_t = LayerNorm(Conv_k(ReLU([s_t; E' y_{t-1}])))
    ```

    Two normalisations stand above the blocks, where the paper has convolution,
    ReLU, convolution and softmax alone. Dropout acts on embeddings, on each
    block's output and before the softmax. The tokens are those of any
    vocabulary, where the paper has characters.

    Args:
        vocabulary_size: target (or joint) vocabulary.
        source_vocabulary_size: that of the source; by default the same
            size. The two embeddings are always two matrices.
        num_sets: sets of blocks, in encoder and in decoder.
        hidden_dim: d.
        kernel_size: k, odd: the encoder's kernels are centred.
        dilation_rates: of the blocks of a set.
        unfolding_factor: a.
        unfolding_offset: b, in tokens.
        dropout: rate.
        joined_by: "sum" or "convolution": how the decoder's inputs are made of
            columns and embeddings.

    Raises:
        ValueError: If there is no set, if `kernel_size` is even, if the
            unfolding is shorter than the source, or if nothing joins as
            `joined_by` says.

    Reference: https://arxiv.org/abs/1610.10099
    """

    sizes = {
        # One set of five blocks a side, d = 128: for the embedded `phrases`.
        "mini": {
            "num_sets": 1,
            "hidden_dim": 128,
            "unfolding_offset": 4,
            "dropout": 0.1,
        },
        # Two sets of five blocks a side, d = 128: for small data.
        "tiny": {
            "num_sets": 2,
            "hidden_dim": 128,
            "unfolding_offset": 4,
            "dropout": 0.2,
        },
        # 30 blocks a side, d = 800: the paper's for English to German.
        "base": {},
    }

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        num_sets=6,
        hidden_dim=800,
        kernel_size=3,
        dilation_rates=(1, 2, 4, 8, 16),
        unfolding_factor=1.2,
        unfolding_offset=0,
        dropout=0.0,
        joined_by="sum",
        **kwargs,
    ):
        super().__init__(**kwargs)
        _check(num_sets, kernel_size, unfolding_factor, unfolding_offset)
        _check_joint(joined_by)
        self.config = {
            "vocabulary_size": vocabulary_size,
            "source_vocabulary_size": source_vocabulary_size,
            "num_sets": num_sets,
            "hidden_dim": hidden_dim,
            "kernel_size": kernel_size,
            "dilation_rates": list(dilation_rates),
            "unfolding_factor": unfolding_factor,
            "unfolding_offset": unfolding_offset,
            "dropout": dropout,
            "joined_by": joined_by,
        }
        policy = {"dtype": self.dtype_policy}
        self.source_embedding, self.target_embedding = self._two_embeddings(
            vocabulary_size, source_vocabulary_size, 2 * hidden_dim, **policy
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.joint: typing.Any = None
        if joined_by == "convolution":
            self.joint = layers.CausalConvolution(
                2 * hidden_dim, kernel_size, name="joint", **policy
            )
            self.joint.build((None, None, 4 * hidden_dim))
            self.joint_norm = keras.layers.LayerNormalization(
                epsilon=1e-6, name="joint_norm", **policy
            )
        self.encoder_blocks = self._blocks("encoder", is_causal=False)
        self.decoder_blocks = self._blocks("decoder", is_causal=True)
        self.readout_norm, self.output_norm = [
            keras.layers.LayerNormalization(epsilon=1e-6, name=name, **policy)
            for name in ("readout_norm", "output_norm")
        ]
        self.readout = keras.layers.Dense(
            2 * hidden_dim, name="readout", **policy
        )
        self.output_projection = keras.layers.Dense(
            vocabulary_size,
            kernel_initializer=keras.initializers.RandomNormal(
                stddev=0.25 / math.sqrt(hidden_dim)
            ),
            name="output_projection",
            **policy,
        )

    def _blocks(self, name, is_causal):
        dilation_rates = self.config["num_sets"] * self.config["dilation_rates"]
        return [
            _ResidualBlock(
                self.config["hidden_dim"],
                self.config["kernel_size"],
                dilation_rate,
                is_causal,
                self.config["dropout"],
                name=f"{name}_{index}",
                dtype=self.dtype_policy,
            )
            for index, dilation_rate in enumerate(dilation_rates)
        ]

    def _unfold(self, source_ids, mask):
        """The source, padded to `a |x| + b` places, and which of them count."""
        a, b = (
            self.config[f"unfolding_{name}"] for name in ("factor", "offset")
        )
        batch_size, source_length = ops.shape(source_ids)

        def unfolded(length):
            length = ops.cast(length, "float32")
            return ops.cast(ops.floor(a * length + 1e-4), "int32") + b

        if isinstance(source_length, int):
            length = math.floor(a * source_length + 1e-4) + b
        else:
            length = unfolded(source_length)
        padding = ops.full((batch_size, length - source_length), PAD)
        padding = ops.cast(padding, source_ids.dtype)
        lengths = unfolded(ops.sum(ops.cast(mask, "int32"), axis=1))  # [B]
        real = ops.arange(length)[None] < lengths[:, None]
        return ops.concatenate([source_ids, padding], axis=1), real

    def encode(self, source_ids, training=None):
        """The columns, and after them one of zeros."""
        source_ids = ops.convert_to_tensor(source_ids)
        mask = layers.padding_mask(source_ids, PAD)  # [B, S]
        unfolded_ids, real = self._unfold(source_ids, mask)
        real = ops.cast(real, self.compute_dtype)[..., None]
        x = self.dropout(self.source_embedding(unfolded_ids), training=training)
        for block in self.encoder_blocks:
            x = block(x, real, training=training)
        columns = ops.pad(x * real, ((0, 0), (0, 1), (0, 0)))
        return {"columns": columns, "mask": mask}

    def initial_state(self, memory, max_length=None):
        """The inputs before the first: zeros for each block."""
        batch_size = ops.shape(memory["mask"])[0]
        convolutions = [block.convolution for block in self.decoder_blocks]
        if self.joint is not None:
            convolutions.insert(0, self.joint)
        return {
            "buffers": [
                convolution.initial_buffer(batch_size)
                for convolution in convolutions
            ],
            "position": ops.zeros((batch_size,), dtype="int32"),
        }

    def _logits(self, x, training=None):
        x = self.readout(ops.relu(self.readout_norm(x)))
        x = self.dropout(ops.relu(self.output_norm(x)), training=training)
        return layers.logits(self.output_projection, x)

    def step(self, token_ids, memory, state):
        """One token upon the column of its place."""
        # All rows are at one position; the sum lets a batch be empty.
        position = ops.sum(state["position"][:1])
        last = ops.shape(memory["columns"])[1] - 1
        column = ops.take(
            memory["columns"], ops.minimum(position, last), axis=1
        )
        embedded, before = self.target_embedding(token_ids), state["buffers"]
        buffers = []
        if self.joint is None:
            x = embedded + column  # [B, 2d]
        else:
            joined, buffer = self.joint.step(_both(column, embedded), before[0])
            x, before = self.joint_norm(joined), before[1:]
            buffers.append(buffer)
        for block, buffer in zip(self.decoder_blocks, before, strict=True):
            x, buffer = block.step(x, buffer)
            buffers.append(buffer)
        state = {"buffers": buffers, "position": state["position"] + 1}
        return self._logits(x), state, self._place(memory["mask"], position)

    def _place(self, mask, position):
        last = ops.sum(ops.cast(mask, "int32"), axis=1) - 1
        return ops.one_hot(ops.minimum(position, last), ops.shape(mask)[1])

    def call(self, inputs, training=None):
        columns = self.encode(inputs["source_ids"], training)["columns"]
        embedded = self.dropout(
            self.target_embedding(inputs["target_ids"]), training=training
        )  # [B, T, 2d]
        length = ops.shape(embedded)[1]
        columns = ops.concatenate([columns, ops.zeros_like(embedded)], axis=1)
        columns = columns[:, :length]
        if self.joint is None:
            x = embedded + columns
        else:
            x = self.joint_norm(self.joint(_both(columns, embedded)))
        for block in self.decoder_blocks:
            x = block(x, training=training)
        return self._logits(x, training)  # [B, T, V]

    def get_config(self):
        return {**super().get_config(), **self.config}


def _both(columns, embedded):
    """ReLU([s_t; E' y_{t-1}]): what the joining convolution reads."""
    return ops.relu(ops.concatenate([columns, embedded], axis=-1))


def _check_joint(joined_by):
    if joined_by not in ("sum", "convolution"):
        raise ValueError(
            "Expected joined_by to be sum or convolution. Received: "
            f"joined_by={joined_by!r}"
        )


def _check(num_sets, kernel_size, unfolding_factor, unfolding_offset):
    if num_sets < 1:
        raise ValueError(
            f"`num_sets` must be at least 1. Received: num_sets={num_sets}"
        )
    if kernel_size % 2 == 0:
        raise ValueError(
            "`kernel_size` must be odd, as the encoder's kernels are centred. "
            f"Received: kernel_size={kernel_size}"
        )
    if unfolding_factor < 1 or unfolding_offset < 0:
        raise ValueError(
            "The unfolding must be no shorter than the source: "
            "`unfolding_factor` at least 1 and `unfolding_offset` at least 0. "
            f"Received: unfolding_factor={unfolding_factor}, "
            f"unfolding_offset={unfolding_offset}"
        )
