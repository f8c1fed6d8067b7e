"""The long short-term memory-network: an LSTM that looks back at itself."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import language_model

# XLA in TensorFlow cannot differentiate a loop of unknown length.
LOOPS_COMPILE = keras.backend.backend() != "tensorflow"


@keras.saving.register_keras_serializable(package="keras_attention")
class LSTMN(language_model.LanguageModel):
    """A language model by intra-attention (Cheng et al. 2016, section 3.2).

    An LSTM has one memory. This model has a tape: a hidden vector and a memory
    vector of each token so far. At each token it looks at the whole tape, and
    goes on from the weighted sums:

    ```
    a^t_i    = v . tanh(W_h h_i + W_x x_t + W_h~ h~_{t-1})  equation 4
    s^t_i    = softmax_i(a^t_i)                             equation 5
    h~_t, c~_t = sum_i s^t_i (h_i, c_i),  i < t             equation 6
    i, f, o, g = W [h~_t; x_t] + b                          equation 7
    c_t      = sigm(f) * c~_t + sigm(i) * tanh(g)           equation 8
    h_t      = sigm(o) * tanh(c_t)                          equation 9
    p(x_t+1) = softmax(W_o D(h_t) + b_o)
    ```

    | paper | here |
    |---|---|
    | W_h; W_x and W_h~ side by side; v | the kernels of `attention` |
    | W, b | the kernels of `cell` |
    | h~_t | "summary" in the state |
    | H, C (hidden and memory tape) | "tape" in the state, side by side |
    | dimension of the word embeddings | `embedding_dim` |
    | hidden unit size | `units`, also the width of the score |

    The state has room for `max_length` tokens and knows its position. W_h h_i
    is computed once for each token ("keys").

    Deviations: there is one layer, where the paper also stacks several. At the
    first token there is nothing to look at, and h~ and c~ are 0: the paper
    does not say it. Dropout (D) acts on embeddings and outputs.

    Args:
        vocabulary_size: words, or other tokens.
        embedding_dim: width of the embeddings.
        units: width of hidden and memory vectors, and of the score.
        dropout: rate.

    Reference: https://arxiv.org/abs/1601.06733
    """

    sizes = {
        # 128 wide: for the embedded `sentences`.
        "mini": {"embedding_dim": 64, "units": 128, "dropout": 0.1},
        # The paper's width with dropout: for small data.
        "tiny": {"embedding_dim": 150, "units": 300, "dropout": 0.3},
        # The paper's model of one layer (Cheng et al. 2016, section 5.1). Its
        # widths are those of the first author's code for the Penn Treebank:
        # https://github.com/cheng6076/mlm, train_baseline.lua.
        "base": {},
    }
    maps = {"decoder": ("target", "input")}

    def __init__(
        self,
        vocabulary_size,
        embedding_dim=150,
        units=300,
        dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_jit = LOOPS_COMPILE
        self.config = {
            "vocabulary_size": vocabulary_size,
            "embedding_dim": embedding_dim,
            "units": units,
            "dropout": dropout,
        }
        policy = {"dtype": self.dtype_policy}
        self.embedding = keras.layers.Embedding(
            vocabulary_size, embedding_dim, name="embedding", **policy
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.attention = layers.AdditiveAttention(
            units, name="attention", **policy
        )
        self.cell = keras.layers.LSTMCell(units, name="cell", **policy)
        self.output_projection = keras.layers.Dense(
            vocabulary_size, name="output_projection", **policy
        )
        # Before the loop traces a step: JAX loses weights made in a trace.
        self.attention.build(
            (None, None, embedding_dim + units),
            (None, None, 2 * units),
            (None, None, units),
        )
        self.cell.build((None, embedding_dim))

    def initial_state(self, batch_size, max_length):
        """An empty tape, and position 0."""
        units = self.config["units"]

        def zeros(*shape):
            return ops.zeros((batch_size, *shape), self.compute_dtype)

        return {
            "tape": zeros(max_length, 2 * units),  # h_i and c_i
            "keys": zeros(max_length, units),  # W_h h_i
            "summary": zeros(units),
            "position": ops.zeros((batch_size,), dtype="int32"),
        }

    def _advance(self, x, state):
        """One token x [B, E]: h_t, the next state, and s^t [B, L]."""
        places = ops.arange(ops.shape(state["tape"])[1])[None, :]
        position = state["position"][:, None]
        query = ops.concatenate([x, state["summary"]], axis=-1)
        sums, attention_weights = self.attention.attend(
            query=query[:, None],
            projected_key=state["keys"],
            value=state["tape"],
            padding_mask=places < position,
        )  # [B, 1, 2 units], [B, 1, L]
        summary, memory = ops.split(sums[:, 0], 2, axis=-1)  # h~_t, c~_t
        hidden, (_, memory) = self.cell(x, [summary, memory])
        entry = ops.concatenate([hidden, memory], axis=-1)
        is_here = ops.equal(places, position)[:, :, None]
        key = self.attention.project(hidden)
        state = {
            "tape": ops.where(is_here, entry[:, None], state["tape"]),
            "keys": ops.where(is_here, key[:, None], state["keys"]),
            "summary": summary,
            "position": state["position"] + 1,
        }
        return hidden, state, attention_weights[:, 0]  # [B, units], [B, L]

    def _logits(self, hidden, training=None):
        hidden = self.dropout(hidden, training=training)
        return layers.logits(self.output_projection, hidden)

    def step(self, token_ids, state):
        """One token, which looks at all those before it."""
        x = self.embedding(token_ids)  # [B, E]
        hidden, state, _ = self._advance(x, state)
        return self._logits(hidden), state

    def read(self, token_ids):
        """Where each token looks.

        Args:
            token_ids: int [B, T].

        Returns:
            float32 [B, T, T], whose first row and upper triangle are 0.
        """
        _, maps = self.call_with_maps(token_ids)
        return maps["decoder"][:, 0, 0]

    def call_with_maps(self, token_ids, training=None):
        """See `PaperModel`."""
        x = self.dropout(self.embedding(token_ids), training=training)
        batch_size, length = ops.shape(token_ids)

        def advance(t, state, rows):
            _, state, row = self._advance(x[:, t], state)
            is_here = ops.equal(ops.arange(length), t)[None, :, None]
            row = ops.cast(row, "float32")[:, None]
            return t + 1, state, ops.where(is_here, row, rows)

        _, state, rows = ops.while_loop(
            lambda t, *_: t < length,
            advance,
            (
                ops.convert_to_tensor(0, dtype="int32"),
                self.initial_state(batch_size, length),
                ops.zeros((batch_size, length, length)),
            ),
        )
        hidden = state["tape"][:, :, : self.config["units"]]
        return self._logits(hidden, training), self.as_maps(rows)

    def call(self, token_ids, training=None):
        x = self.dropout(self.embedding(token_ids), training=training)
        # Not `scan`, which would keep the tape of every step.
        state = ops.fori_loop(
            0,
            ops.shape(token_ids)[1],
            lambda t, state: self._advance(x[:, t], state)[1],
            self.initial_state(*ops.shape(token_ids)),
        )
        hidden = state["tape"][:, :, : self.config["units"]]
        return self._logits(hidden, training)  # [B, T, V]

    def get_config(self):
        return {**super().get_config(), **self.config}
