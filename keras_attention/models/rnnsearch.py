"""RNNsearch: translate while learning where to look."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import seq2seq
from keras_attention.tokens import PAD


@keras.saving.register_keras_serializable(package="keras_attention")
class RNNSearch(seq2seq.Seq2Seq):
    """Bahdanau's encoder-decoder with a soft search of the source.

    Bahdanau et al. 2014, section 3 and appendix A:

    ```
    h_j  = [forward GRU(x)_j; backward GRU(x)_j]           annotations
    s_0  = tanh(W_s h_1 (backward))                        A.2.2
    e_ij = v . tanh(W s_{i-1} + U h_j)                     score
    c_i  = sum_j softmax_j(e_ij) h_j                       context
    s_i  = GRU(s_{i-1}, [E y_{i-1}; c_i])                  state
    t_i  = maxout(W_t [s_i; E y_{i-1}; c_i])               deep output
    p(y_i) = softmax(W_o t_i)
    ```

    | paper | here |
    |---|---|
    | m | `embedding_dim` |
    | n | `units` |
    | l | `readout_dim`, maxout outputs |

    Deviations: t_i sees s_i, as equation 4 has it (the appendix prints
    s_{i-1}); dropout (none in the paper) on embeddings and on t_i.

    Args:
        vocabulary_size: target (or joint) vocabulary.
        source_vocabulary_size: that of the source; by default the same
            size. The two embeddings are always two matrices.
        embedding_dim: width of the embeddings.
        units: width of each encoder direction, of the decoder and of the
            score.
        readout_dim: maxout outputs before the softmax.
        dropout: rate.

    Reference: https://arxiv.org/abs/1409.0473
    """

    sizes = {
        # Like `tiny`, for a small vocabulary and data without noise.
        "mini": {
            "embedding_dim": 128,
            "units": 256,
            "readout_dim": 256,
            "dropout": 0.1,
        },
        # 256 wide: for small data and two cores.
        "tiny": {
            "embedding_dim": 256,
            "units": 256,
            "readout_dim": 256,
            "dropout": 0.3,
        },
        # The paper's RNNsearch-50 (Bahdanau et al. 2014, appendix A.2.3).
        "base": {},
    }
    maps = {"cross": ("target", "source")}

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        embedding_dim=620,
        units=1000,
        readout_dim=500,
        dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_jit = seq2seq.LOOPS_COMPILE
        self.config = {
            "vocabulary_size": vocabulary_size,
            "source_vocabulary_size": source_vocabulary_size,
            "embedding_dim": embedding_dim,
            "units": units,
            "readout_dim": readout_dim,
            "dropout": dropout,
        }
        policy = {"dtype": self.dtype_policy}
        self.source_embedding, self.target_embedding = self._two_embeddings(
            vocabulary_size, source_vocabulary_size, embedding_dim, **policy
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.encoder = keras.layers.Bidirectional(
            keras.layers.RNN(
                layers.GRUCell(units, name="gru_cell", **policy),
                return_sequences=True,
                return_state=True,
                name="gru",
                **policy,
            ),
            name="encoder",
            **policy,
        )
        self.bridge = keras.layers.Dense(
            units, activation="tanh", name="bridge", **policy
        )
        self.attention = self._make_attention(units, policy)
        self.decoder = layers.GRUCell(units, name="decoder", **policy)
        self.maxout = layers.Maxout(readout_dim, name="maxout", **policy)
        self.output_projection = keras.layers.Dense(
            vocabulary_size, name="output_projection", **policy
        )
        # Before `unroll` traces a step: JAX loses weights made in a trace.
        self.attention.build((None, None, units), (None, None, 2 * units))
        self.decoder.build((None, embedding_dim + 2 * units))

    def _make_attention(self, units, policy):
        return layers.AdditiveAttention(units, name="attention", **policy)

    def encode(self, source_ids, training=None):
        """Annotations, their projections, and the backward state at x_1."""
        mask = layers.padding_mask(source_ids, PAD)  # [B, S]
        x = self.dropout(self.source_embedding(source_ids), training=training)
        annotations, _, backward = self.encoder(x, mask=mask)
        return {
            "annotations": annotations,  # [B, S, 2 units]
            "keys": self.attention.project(annotations),  # [B, S, units]
            "backward": backward,  # [B, units]
            "mask": mask,
        }

    def initial_state(self, memory, max_length=None):
        """s_0 from the backward encoder; no context yet."""
        hidden = self.bridge(memory["backward"])
        return {
            "hidden": hidden,  # [B, units]
            "context": ops.zeros_like(memory["annotations"][:, 0]),
        }

    def _advance(self, embedded, memory, state):
        context, attention_weights = self.attention.attend(
            query=state["hidden"][:, None],
            projected_key=memory["keys"],
            value=memory["annotations"],
            padding_mask=memory["mask"],
        )  # [B, 1, 2 units], [B, 1, S]
        state = self._read(embedded, context[:, 0], state)
        return state, attention_weights[:, 0]

    def _read(self, embedded, context, state):
        """s_i, from the last token [B, E] and what was looked up."""
        inputs = ops.concatenate([embedded, context], axis=-1)
        hidden, _ = self.decoder(inputs, [state["hidden"]])
        return {"hidden": hidden, "context": context}

    def _logits(self, embedded, state, training=None):
        features = [state["hidden"], embedded, state["context"]]
        t = self.maxout(ops.concatenate(features, axis=-1))
        t = self.dropout(t, training=training)
        return layers.logits(self.output_projection, t)

    def step(self, token_ids, memory, state):
        """Search with s_{i-1}, then s_i, then the next token's logits."""
        embedded = self.target_embedding(token_ids)  # [B, E]
        state, attention_weights = self._advance(embedded, memory, state)
        return self._logits(embedded, state), state, attention_weights

    def _unroll(self, embedded, memory, training):
        """The states after each token [B, T, E]."""
        return layers.unroll(
            lambda x, state: self._advance(x, memory, state)[0],
            self.initial_state(memory),
            embedded,
        )

    def _unroll_with_attention(self, embedded, memory, training):
        """The states after each token, and where each step looked."""
        return layers.unroll_with_attention(
            lambda x, state: self._advance(x, memory, state),
            self.initial_state(memory),
            embedded,
            memory["mask"],
        )

    def call(self, inputs, training=None):
        memory, embedded = self._read_pair(inputs, training)
        states = self._unroll(embedded, memory, training)
        # Logits are no part of the recurrence: after the loop they are one
        # product for all positions.
        return self._logits(embedded, states, training)  # [B, T, V]

    def call_with_attention(self, inputs, training=None):
        """See `Seq2Seq`."""
        memory, embedded = self._read_pair(inputs, training)
        states, attention_weights = self._unroll_with_attention(
            embedded, memory, training
        )
        return self._logits(embedded, states, training), attention_weights

    def _read_pair(self, inputs, training):
        """The memory, and the target's embeddings [B, T, E]."""
        memory = self.encode(inputs["source_ids"], training)
        embedded = self.target_embedding(inputs["target_ids"])
        return memory, self.dropout(embedded, training=training)

    def get_config(self):
        return {**super().get_config(), **self.config}
