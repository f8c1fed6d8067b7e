"""GNMT: deep residual LSTMs with one attention, asked by the bottom layer."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import seq2seq
from keras_attention.tokens import PAD

# As dicts: each layer makes its own initializer, and so draws its own weights.
EMBEDDINGS = {"class_name": "RandomNormal", "config": {"stddev": 1.0}}


@keras.saving.register_keras_serializable(package="keras_attention")
class GNMT(seq2seq.Seq2Seq):
    """Google's neural machine translation system.

    Wu et al. 2016, section 3:

    ```
    x_1 ... x_M = stacked LSTM over the source             equation 1
    s_t = v . tanh(W y_{i-1} + U x_t)                      equation 4
    p_t = softmax_t(s_t),  a_i = sum_t p_t x_t
    m^1_i = LSTM([E w_{i-1}; a_i]),  y_i = m^1_i           bottom layer
    m^k_i = LSTM([x^{k-1}_i; a_i])                         each other layer
    x^k_i = m^k_i + x^{k-1}_i from the third layer on      equation 6
    p(w_i) = softmax(W_o x^K_i)
    ```

    | paper | here |
    |---|---|
    | encoder: layers of LSTMs, the bottom one in both directions | `encoder` |
    | decoder | `decoder` |
    | AttentionFunction | `attention`, see `AdditiveAttention` |
    | y_{i-1}, the bottom layer's output a step before | `query` |
    | w_{i-1}, the last word | `target_ids` |

    The bottom layer alone asks, so that it can begin step i + 1 before the top
    layer has ended step i: on several GPUs, each has a layer. The residual
    connections let the gradient pass 8 layers.

    Deviations: the first weights. In the paper, all are drawn evenly between
    -0.04 and 0.04. A gate of an LSTM is then about 1/2, and each layer passes
    on a fourth of a small input. Behind two stacks of them, little is left of a
    word of the source, and with little data the decoder learns to do without
    it. So embeddings have a standard deviation of 1 at first. The kernels of
    inputs are four times as wide as Glorot and Bengio 2010 draw them, and that
    of the softmax half as wide, so that the first guess is blind. Dropout on
    embeddings and before the softmax, beside that between the layers (the
    decoder's has one mask for a whole sentence). The paper's quantized
    arithmetic, and its training on BLEU as a reward, are left out. The
    penalties of length and coverage (section 7) are those of every beam search
    here.

    Args:
        vocabulary_size: target (or joint) vocabulary.
        source_vocabulary_size: that of the source; by default the same
            size. The two embeddings are always two matrices.
        embedding_dim: width of the embeddings.
        units: width of every LSTM, also of each direction of the bottom one.
        num_layers: layers of the encoder, and of the decoder.
        dropout: rate.

    Raises:
        ValueError: If there is no layer.

    Reference: https://arxiv.org/abs/1609.08144
    """

    sizes = {
        # Three layers, so that one is residual: for a small vocabulary and data
        # without noise.
        "mini": {
            "embedding_dim": 128,
            "units": 128,
            "num_layers": 3,
            "dropout": 0.1,
        },
        # Four layers, 256 wide: for small data and two cores.
        "tiny": {
            "embedding_dim": 256,
            "units": 256,
            "num_layers": 4,
            "dropout": 0.3,
        },
        # The paper's size (Wu et al. 2016, sections 3 and 8.3).
        "base": {},
    }
    maps = {"cross": ("target", "source")}

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        embedding_dim=1024,
        units=1024,
        num_layers=8,
        dropout=0.2,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._check_layers(num_layers)
        self.supports_jit = seq2seq.LOOPS_COMPILE
        self.config = {
            "vocabulary_size": vocabulary_size,
            "source_vocabulary_size": source_vocabulary_size,
            "embedding_dim": embedding_dim,
            "units": units,
            "num_layers": num_layers,
            "dropout": dropout,
        }
        policy = {"dtype": self.dtype_policy}
        self.source_embedding, self.target_embedding = self._two_embeddings(
            vocabulary_size,
            source_vocabulary_size,
            embedding_dim,
            embeddings_initializer=EMBEDDINGS,
            **policy,
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        # Undoes what two half-open gates take.
        wide = {"kernel_initializer": _kernel(4.0), **policy}

        def lstm(name):
            return keras.layers.LSTM(
                units, return_sequences=True, name=name, **wide
            )

        self.encoder = [
            keras.layers.Bidirectional(lstm("lstm"), name="encoder_0", **policy)
        ] + [lstm(f"encoder_{index}") for index in range(1, num_layers)]
        self.decoder = [
            keras.layers.LSTMCell(units, name=f"decoder_{index}", **wide)
            for index in range(num_layers)
        ]
        self.attention = layers.AdditiveAttention(
            units, name="attention", **policy
        )
        self.output_projection = keras.layers.Dense(
            vocabulary_size,
            kernel_initializer=_kernel(0.5),
            name="output_projection",
            **policy,
        )
        # Before `unroll` traces a step: JAX loses weights made in a trace.
        value_dim = 2 * units if num_layers == 1 else units
        self.attention.build((None, None, units), (None, None, value_dim))
        for index, cell in enumerate(self.decoder):
            cell.build((None, (units if index else embedding_dim) + value_dim))

    def encode(self, source_ids, training=None):
        """The top layer's outputs, and their projections for the score."""
        mask = layers.padding_mask(source_ids, PAD)  # [B, S]
        x = self.source_embedding(source_ids)
        for index, layer in enumerate(self.encoder):
            x = self.dropout(x, training=training)
            outputs = layer(x, mask=mask)
            x = outputs + x if index >= 2 else outputs
        return {
            "values": x,  # [B, S, units]
            "keys": self.attention.project(x),  # [B, S, units]
            "mask": mask,
        }

    def initial_state(self, memory, max_length=None):
        """All zeros: what the decoder knows of the source, it asks for."""
        zeros = ops.zeros_like(memory["keys"][:, 0])  # [B, units]
        return {
            "layers": [(zeros, zeros) for _ in self.decoder],
            "query": zeros,
            "output": zeros,
        }

    def _advance(self, embedded, memory, state, dropout_masks=None):
        context, attention_weights = self.attention.attend(
            query=state["query"][:, None],
            projected_key=memory["keys"],
            value=memory["values"],
            padding_mask=memory["mask"],
        )  # [B, 1, units], [B, 1, S]
        context, x, cell_states = context[:, 0], embedded, []
        for index, cell in enumerate(self.decoder):
            if index > 0 and dropout_masks:
                x = x * dropout_masks[index - 1]
            outputs, cell_state = cell(
                ops.concatenate([x, context], axis=-1),
                list(state["layers"][index]),
            )
            cell_states.append(tuple(cell_state))
            x = outputs + x if index >= 2 else outputs
        next_state = {
            "layers": cell_states,
            "query": cell_states[0][0],  # The bottom layer's output.
            "output": x,
        }
        return next_state, attention_weights[:, 0]

    def _logits(self, output, training=None):
        x = self.dropout(output, training=training)
        return layers.logits(self.output_projection, x)

    def step(self, token_ids, memory, state):
        """Attention for the bottom layer, then all layers, then the logits."""
        embedded = self.target_embedding(token_ids)  # [B, E]
        state, attention_weights = self._advance(embedded, memory, state)
        return self._logits(state["output"]), state, attention_weights

    def _begin(self, inputs, training):
        """What an unrolled decoder needs: its step, its state, its inputs.

        Returns:
            `(advance, state, embedded, mask)`: a function of ([B, E], state),
            the first state, [B, T, E] and the source's mask.
        """
        memory = self.encode(inputs["source_ids"], training)
        embedded = self.dropout(
            self.target_embedding(inputs["target_ids"]), training=training
        )  # [B, T, E]
        state = self.initial_state(memory)
        # The same units are dropped at every step of a sentence: masks drawn
        # before the loop, 1 where nothing is dropped.
        ones = ops.ones_like(state["output"])
        dropout_masks = [
            self.dropout(ones, training=training) for _ in self.decoder[1:]
        ]

        def advance(x, state):
            return self._advance(x, memory, state, dropout_masks)

        return advance, state, embedded, memory["mask"]

    def call(self, inputs, training=None):
        advance, state, embedded, _ = self._begin(inputs, training)
        states = layers.unroll(
            lambda x, state: advance(x, state)[0], state, embedded
        )
        return self._logits(states["output"], training)  # [B, T, V]

    def call_with_attention(self, inputs, training=None):
        """See `Seq2Seq`."""
        states, attention_weights = layers.unroll_with_attention(
            *self._begin(inputs, training)
        )
        return self._logits(states["output"], training), attention_weights

    def get_config(self):
        return {**super().get_config(), **self.config}


def _kernel(times):
    """An initializer: even, in so many times Glorot and Bengio's range."""
    config = {"scale": times**2, "mode": "fan_avg", "distribution": "uniform"}
    return {"class_name": "VarianceScaling", "config": config}
