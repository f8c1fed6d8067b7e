"""ConvS2S: gated convolutions read, and attend in every layer."""

import math

import keras
from keras import ops

from keras_attention import layers
from keras_attention.layers import learned_positions
from keras_attention.models import seq2seq
from keras_attention.tokens import PAD

ROOT_HALF = math.sqrt(0.5)


def _normal(variance):
    """Weights of mean 0 (section 3.5)."""
    return keras.initializers.RandomNormal(stddev=math.sqrt(variance))


class _DecoderLayer(keras.layers.Layer):
    """A gated causal convolution, then attention (section 3.3).

    Args:
        hidden_dim: channels h.
        embedding_dim: width of embeddings and of the encoder's outputs.
        kernel_size: k.
        dropout: rate on the convolution's input.
    """

    def __init__(
        self, hidden_dim, embedding_dim, kernel_size, dropout, **kwargs
    ):
        super().__init__(**kwargs)
        policy = {"dtype": self.dtype_policy}
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.convolution = layers.CausalConvolution(
            2 * hidden_dim,
            kernel_size,
            kernel_initializer=_normal(
                4 * (1 - dropout) / (kernel_size * hidden_dim)
            ),
            name="convolution",
            **policy,
        )
        self.query_projection = keras.layers.Dense(
            embedding_dim,
            kernel_initializer=_normal(1 / hidden_dim),
            name="query_projection",
            **policy,
        )
        self.attention = layers.MultiplicativeAttention(
            "dot", name="attention", **policy
        )
        self.context_projection = keras.layers.Dense(
            hidden_dim,
            kernel_initializer=_normal(1 / embedding_dim),
            name="context_projection",
            **policy,
        )
        self.convolution.build((None, None, hidden_dim))
        self.query_projection.build((None, None, hidden_dim))
        self.attention.build(
            (None, None, embedding_dim), (None, None, embedding_dim)
        )
        self.context_projection.build((None, None, embedding_dim))
        self.built = True

    def _attend(self, convolved, embedded, inputs, memory):
        """From the convolution's output to the layer's: [B, T, ...]."""
        h = keras.activations.glu(convolved)
        d = (self.query_projection(h) + embedded) * ROOT_HALF
        context, attention_weights = self.attention.attend(
            query=d,
            projected_key=memory["keys"],
            value=memory["values"],
            padding_mask=memory["mask"],
        )
        h = (h + self.context_projection(context)) * ROOT_HALF
        return (h + inputs) * ROOT_HALF, attention_weights

    def call(self, inputs, embedded, memory, training=None):
        convolved = self.convolution(self.dropout(inputs, training=training))
        return self._attend(convolved, embedded, inputs, memory)

    def step(self, inputs, embedded, memory, buffer):
        """One position: [B, h] -> outputs, attention weights, buffer."""
        convolved, buffer = self.convolution.step(inputs, buffer)
        outputs, attention_weights = self._attend(
            convolved[:, None], embedded[:, None], inputs[:, None], memory
        )
        return outputs[:, 0], attention_weights[:, 0], buffer


@keras.saving.register_keras_serializable(package="keras_attention")
class ConvSeq2Seq(seq2seq.Seq2Seq):
    """Convolutions in place of recurrence (Gehring et al. 2017, section 3).

    ```
    e_j = w_j + p_j                     words and their places, 3.1
    GLU(x) = A * sigmoid(B), [A; B] = W [x_{i-k/2} ... x_{i+k/2}] + b   3.2
    z^l = (GLU(z^{l-1}) + z^{l-1}) sqrt(0.5)              encoder
    h_i = GLU(x_{i-k+1} ... x_i)                          decoder: causal
    d_i = (W_d h_i + b_d + g_i) sqrt(0.5)                 equation 1
    a_ij = exp(d_i . z_j) / sum_t exp(d_i . z_t)
    c_i = sqrt(m) sum_j a_ij (z_j + e_j)                  equation 2, 3.4
    x^l_i = ((h_i + W_c c_i) sqrt(0.5) + x^{l-1}_i) sqrt(0.5)
    p(y_{i+1}) = softmax(W_o h^L_i + b_o)
    ```

    z without a layer is the encoder's output, of m tokens.

    | paper | here |
    |---|---|
    | k | `kernel_size` |
    | channels of a layer | `hidden_dim` |
    | e, z, g, d | width `embedding_dim` |
    | p, absolute positions | `num_positions` learned vectors a side |
    | `a` of each layer | attention weights [B, L, S]: layers like heads |

    Weights start as in section 3.5, from a normal distribution of mean 0. A
    layer whose units have n inputs has the variance 1 / n. Before a GLU it is
    4 / n. Where dropout acts on the inputs, it is multiplied by 1 - dropout.
    Embeddings have the deviation 0.1. d_i is scaled by sqrt(0.5), as in the
    authors' code. Equation 1 has no factor.

    Deviations: the output projection starts with the deviation
    sqrt(1 / n) / 4, so that the first loss is ln V. The weights are not
    normalised, where the paper normalises all but the embeddings (4.2). The
    gradient of the encoder is not divided by the number of attentions (3.4).

    Args:
        vocabulary_size: target (or joint) vocabulary.
        source_vocabulary_size: that of the source; by default the same
            size. The two embeddings are always two matrices.
        num_layers: gated convolutions of the encoder, and of the decoder.
        embedding_dim: width of the embeddings.
        hidden_dim: channels of the convolutions.
        kernel_size: width of the kernels, odd: the encoder's are centred.
        num_positions: the most tokens of a source, and of a target, each
            with a learned position.
        dropout: rate on embeddings, before each convolution and before the
            softmax.

    Raises:
        ValueError: If there is no layer, if `kernel_size` is even, or if the
            tokens are known to be more than `num_positions`. A graph that
            does not know how many there are gives NaN behind them.

    Reference: https://arxiv.org/abs/1705.03122
    """

    sizes = {
        # 3+3 layers, 128 wide: for the embedded `phrases`.
        "mini": {
            "num_layers": 3,
            "embedding_dim": 128,
            "hidden_dim": 128,
            "num_positions": 256,
        },
        # 4+4 layers, 256 wide: for small data and two cores.
        "tiny": {
            "num_layers": 4,
            "embedding_dim": 256,
            "hidden_dim": 256,
            "num_positions": 256,
            "dropout": 0.2,
        },
        # 20+20 layers, 512 wide: the paper's for English to Romanian (5.1).
        "base": {},
    }
    maps = {"cross": ("target", "source")}

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        num_layers=20,
        embedding_dim=512,
        hidden_dim=512,
        kernel_size=3,
        num_positions=1024,
        dropout=0.1,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._check_layers(num_layers)
        if kernel_size % 2 == 0:
            raise ValueError(
                "`kernel_size` must be odd, as the encoder's kernels are "
                f"centred. Received: kernel_size={kernel_size}"
            )
        self.config = {
            "vocabulary_size": vocabulary_size,
            "source_vocabulary_size": source_vocabulary_size,
            "num_layers": num_layers,
            "embedding_dim": embedding_dim,
            "hidden_dim": hidden_dim,
            "kernel_size": kernel_size,
            "num_positions": num_positions,
            "dropout": dropout,
        }
        self.max_length = num_positions
        policy = {"dtype": self.dtype_policy}
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self._create_embeddings(policy)
        self._create_encoder(policy)
        self.decoder_projection = self._dense(
            "decoder_projection", embedding_dim, hidden_dim, dropout
        )
        self.decoder_layers = [
            _DecoderLayer(
                hidden_dim,
                embedding_dim,
                kernel_size,
                dropout,
                name=f"decoder_{i}",
                **policy,
            )
            for i in range(num_layers)
        ]
        self.readout = self._dense("readout", hidden_dim, embedding_dim)
        self.output_projection = keras.layers.Dense(
            vocabulary_size,
            kernel_initializer=_normal(1 / (16 * embedding_dim)),
            name="output_projection",
            **policy,
        )

    def _dense(self, name, input_dim, units, dropout=0.0):
        """A projection, with the rate of dropout that acts on its inputs."""
        return keras.layers.Dense(
            units,
            kernel_initializer=_normal((1 - dropout) / input_dim),
            name=name,
            dtype=self.dtype_policy,
        )

    def _create_embeddings(self, policy):
        config = self.config
        source_size = config["source_vocabulary_size"]
        sizes = {
            "source_embedding": source_size or config["vocabulary_size"],
            "target_embedding": config["vocabulary_size"],
            "source_positions": config["num_positions"],
            "target_positions": config["num_positions"],
        }
        (
            self.source_embedding,
            self.target_embedding,
            self.source_positions,
            self.target_positions,
        ) = [
            keras.layers.Embedding(
                size,
                config["embedding_dim"],
                embeddings_initializer=_normal(0.1**2),
                name=name,
                **policy,
            )
            for name, size in sizes.items()
        ]

    def _create_encoder(self, policy):
        embedding_dim, hidden_dim, kernel_size, dropout = (
            self.config[name]
            for name in (
                "embedding_dim",
                "hidden_dim",
                "kernel_size",
                "dropout",
            )
        )
        self.encoder_projection = self._dense(
            "encoder_projection", embedding_dim, hidden_dim, dropout
        )
        self.encoder = [
            layers.CausalConvolution(
                2 * hidden_dim,
                kernel_size,
                kernel_initializer=_normal(
                    4 * (1 - dropout) / (kernel_size * hidden_dim)
                ),
                name=f"encoder_{i}",
                **policy,
            )
            for i in range(self.config["num_layers"])
        ]
        self.memory_projection = self._dense(
            "memory_projection", hidden_dim, embedding_dim
        )

    def _places(self, embedding, positions):
        return learned_positions.vectors_at(
            embedding, positions, self.max_length
        )

    def encode(self, source_ids, training=None):
        """Keys z_j; values sqrt(m) (z_j + e_j); which of them are real."""
        learned_positions.check_length(source_ids.shape[1], self.max_length)
        mask = layers.padding_mask(source_ids, PAD)  # [B, S]
        real = ops.cast(mask, self.compute_dtype)[..., None]  # [B, S, 1]
        positions = ops.arange(ops.shape(source_ids)[1])
        embedded = self.dropout(
            self.source_embedding(source_ids)
            + self._places(self.source_positions, positions),
            training=training,
        )
        x = self.encoder_projection(embedded)
        for convolution in self.encoder:
            # A kernel at the end of a sentence must see 0, as at the start.
            inputs = self.dropout(x, training=training) * real
            convolved = layers.centered(convolution, inputs)
            x = (keras.activations.glu(convolved) + x) * ROOT_HALF
        keys = self.memory_projection(x)  # [B, S, E]
        scale = ops.sqrt(ops.sum(real, axis=1, keepdims=True))
        return {
            "keys": keys,
            "values": scale * (keys + embedded),
            "mask": mask,
        }

    def initial_state(self, memory, max_length=None):
        """The inputs before the first: zeros for each layer."""
        learned_positions.check_length(max_length, self.max_length)
        batch_size = ops.shape(memory["mask"])[0]
        return {
            "buffers": [
                layer.convolution.initial_buffer(batch_size)
                for layer in self.decoder_layers
            ],
            "position": ops.zeros((batch_size,), dtype="int32"),
        }

    def _logits(self, x, training=None):
        x = self.dropout(self.readout(x), training=training)
        return layers.logits(self.output_projection, x)

    def step(self, token_ids, memory, state):
        """One token, with the k - 1 inputs before it in each layer.

        The attention weights are those of all layers, [B, L, S].
        """
        embedded = self.target_embedding(token_ids) + self._places(
            self.target_positions, state["position"]
        )  # [B, E]
        x = self.decoder_projection(embedded)
        buffers, attention_weights = [], []
        for layer, buffer in zip(
            self.decoder_layers, state["buffers"], strict=True
        ):
            x, weights, buffer = layer.step(x, embedded, memory, buffer)
            buffers.append(buffer)
            attention_weights.append(weights)
        state = {"buffers": buffers, "position": state["position"] + 1}
        return self._logits(x), state, ops.stack(attention_weights, axis=1)

    def call(self, inputs, training=None):
        logits, _ = self._decode(inputs, training)
        return logits  # [B, T, V]

    def call_with_attention(self, inputs, training=None):
        """See `Seq2Seq`. The attention weights are those of all layers."""
        logits, attention_weights = self._decode(inputs, training)
        return logits, ops.stack(attention_weights, axis=1)

    def call_with_maps(self, inputs, training=None):
        """See `PaperModel`. Each layer has one head."""
        logits, attention_weights = self.call_with_attention(inputs, training)
        return logits, self.as_maps(attention_weights[:, :, None])

    def _decode(self, inputs, training):
        """The logits, and the attention weights of each layer."""
        memory = self.encode(inputs["source_ids"], training)
        target_ids = inputs["target_ids"]
        learned_positions.check_length(target_ids.shape[1], self.max_length)
        positions = ops.arange(ops.shape(target_ids)[1])
        embedded = self.dropout(
            self.target_embedding(target_ids)
            + self._places(self.target_positions, positions),
            training=training,
        )
        x = self.decoder_projection(embedded)
        attention_weights = []
        for layer in self.decoder_layers:
            x, weights = layer(x, embedded, memory, training=training)
            attention_weights.append(weights)
        return self._logits(x, training), attention_weights

    def get_config(self):
        return {**super().get_config(), **self.config}
