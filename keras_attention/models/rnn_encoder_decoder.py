"""The RNN encoder-decoder: a sentence crammed into one vector."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import seq2seq
from keras_attention.tokens import PAD


@keras.saving.register_keras_serializable(package="keras_attention")
class RNNEncoderDecoder(seq2seq.Seq2Seq):
    """Cho's encoder-decoder: the decoder sees one summary at every step.

    Cho et al. 2014, section 2.2 and appendix A:

    ```
    c    = tanh(V h_T)               the summary of the source
    h'_0 = tanh(V' c)
    h'_t = GRU(h'_{t-1}, [E y_{t-1}; c])
    s'_t = maxout(O [h'_t; E y_{t-1}; c])
    p(y_t) = softmax(G s'_t)
    ```

    | paper | here |
    |---|---|
    | word embedding size | `embedding_dim` |
    | number of hidden units | `units` |
    | maxout units | `readout_dim` |

    Attention is the fixed answer "the last word read": the weights that
    `step` returns are 1 there, which is what c sees of the source.

    Deviations: the decoder's reset gate acts on h' alone and before U', as
    the encoder's does (in the paper it multiplies U' h' + C c); G has full
    rank; dropout (none in the paper) on embeddings and on s'_t.

    Args:
        vocabulary_size: target (or joint) vocabulary.
        source_vocabulary_size: that of the source; by default the same
            size. The two embeddings are always two matrices.
        embedding_dim: width of the embeddings.
        units: width of encoder, summary and decoder.
        readout_dim: maxout outputs before the softmax.
        dropout: rate.

    Reference: https://arxiv.org/abs/1406.1078
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
        # The paper's size (Cho et al. 2014, section 4.1).
        "base": {},
    }

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        embedding_dim=100,
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
        self.encoder = keras.layers.RNN(
            layers.GRUCell(units, name="gru_cell", **policy),
            name="encoder",
            **policy,
        )
        self.summary_projection = keras.layers.Dense(
            units, activation="tanh", name="summary", **policy
        )
        self.bridge = keras.layers.Dense(
            units, activation="tanh", name="bridge", **policy
        )
        self.decoder = layers.GRUCell(units, name="decoder", **policy)
        self.maxout = layers.Maxout(readout_dim, name="maxout", **policy)
        self.output_projection = keras.layers.Dense(
            vocabulary_size, name="output_projection", **policy
        )
        # Before `unroll` traces a step: JAX loses weights made in a trace.
        self.decoder.build((None, embedding_dim + units))

    def encode(self, source_ids, training=None):
        """The summary c, and where it was taken."""
        mask = layers.padding_mask(source_ids, PAD)  # [B, S]
        x = self.dropout(self.source_embedding(source_ids), training=training)
        last_state = self.encoder(x, mask=mask)
        last_place = ops.sum(ops.cast(mask, "int32"), axis=1) - 1
        return {
            "summary": self.summary_projection(last_state),  # [B, U]
            "attention_weights": ops.one_hot(last_place, ops.shape(mask)[1]),
        }

    def initial_state(self, memory, max_length=None):
        """h'_0."""
        return {"hidden": self.bridge(memory["summary"])}

    def _advance(self, embedded, memory, state):
        inputs = ops.concatenate([embedded, memory["summary"]], axis=-1)
        hidden, _ = self.decoder(inputs, [state["hidden"]])
        return {"hidden": hidden}

    def _logits(self, embedded, hidden, summary, training=None):
        features = ops.concatenate([hidden, embedded, summary], axis=-1)
        s = self.dropout(self.maxout(features), training=training)
        return layers.logits(self.output_projection, s)

    def step(self, token_ids, memory, state):
        """The next state from the last token and the summary."""
        embedded = self.target_embedding(token_ids)  # [B, E]
        state = self._advance(embedded, memory, state)
        logits = self._logits(embedded, state["hidden"], memory["summary"])
        return logits, state, memory["attention_weights"]

    def call(self, inputs, training=None):
        memory = self.encode(inputs["source_ids"], training)
        embedded = self.dropout(
            self.target_embedding(inputs["target_ids"]), training=training
        )  # [B, T, E]
        states = layers.unroll(
            lambda x, state: self._advance(x, memory, state),
            self.initial_state(memory),
            embedded,
        )
        hidden = states["hidden"]  # [B, T, units]
        summary = ops.broadcast_to(
            memory["summary"][:, None], ops.shape(hidden)
        )
        return self._logits(embedded, hidden, summary, training)

    def get_config(self):
        return {**super().get_config(), **self.config}
