"""Luong's model: attention after the decoder's step, fed back as input."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import seq2seq
from keras_attention.tokens import PAD


@keras.saving.register_keras_serializable(package="keras_attention")
class Luong(seq2seq.Seq2Seq):
    """Stacked LSTMs with global or local attention and input feeding.

    Luong et al. 2015, section 3:

    ```
    h_s   = stacked LSTM over the source                  (with a bar)
    h_t   = stacked LSTM([E y_{t-1}; ha_{t-1}], h_{t-1})  input feeding, 3.3
    a_t   = softmax_s(score(h_t, h_s))                    equation 7
    c_t   = sum_s a_t(s) h_s
    ha_t  = tanh(W_c [c_t; h_t])                          equation 5
    p(y_t) = softmax(W_s ha_t)                            equation 6
    ```

    | paper | here |
    |---|---|
    | ha_t (h with a tilde) | `attention_vector` |
    | cells per layer | `units` |
    | score | `scoring`: "dot", "general" or "concat" |
    | global, local-m, local-p (3.2) | `attention`; see `LocalAttention` |
    | D | `half_width` |
    | W_a of "general" | `attention.key_kernel` transposed / `units` |
    | v_p of local-p | `attention.place_vector` / `units` |

    The decoder starts from the encoder's last states. Deviations: the source
    is not reversed; dropout on embeddings, between the layers (the decoder's
    has one mask for a whole sentence) and on the attention vector's way to the
    softmax; on request an encoder that reads in both directions, as that of
    Bahdanau et al. 2014 does, but with half the width for each direction; the
    decoder then starts from the last states of both. W_a is divided for Adam,
    which the paper does not use: a step moves each entry of a kernel by about
    the learning rate, so that a score, a sum of units^2 products, may soon be
    too large for the softmax to have a gradient (Yang et al. 2022,
    https://arxiv.org/abs/2203.03466, divide the scores of a Transformer by the
    width of a head instead of its root). The scores of "dot" and "concat" are
    the paper's. v_p of local-p is divided, too: see `LocalAttention`.

    Args:
        vocabulary_size: target (or joint) vocabulary.
        source_vocabulary_size: that of the source; by default the same
            size. The two embeddings are always two matrices.
        embedding_dim: width of the embeddings.
        units: width of every layer of LSTMs, even if `bidirectional`.
        num_layers: layers of LSTMs, in encoder and in decoder.
        scoring: the score, see `MultiplicativeAttention`.
        input_feeding: whether the decoder sees the last attention vector.
        bidirectional: whether each layer of the encoder is two LSTMs of
            half the width, one for each direction, side by side.
        dropout: rate.
        attention: "global", "local-m" or "local-p".
        half_width: how far from its place a local attention looks.

    Raises:
        ValueError: If `scoring` or `attention` is another one, if there is
            no layer, or if `units` are odd and `bidirectional`.

    Reference: https://arxiv.org/abs/1508.04025
    """

    sizes = {
        # Like `tiny`, for a small vocabulary and data without noise.
        "mini": {
            "embedding_dim": 128,
            "units": 256,
            "num_layers": 1,
            "dropout": 0.1,
        },
        # One layer, 256 wide: for small data and two cores.
        "tiny": {
            "embedding_dim": 256,
            "units": 256,
            "num_layers": 1,
            "dropout": 0.3,
        },
        # The paper's size (Luong et al. 2015, section 4.1).
        "base": {},
    }
    maps = {"cross": ("target", "source")}

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        embedding_dim=1000,
        units=1000,
        num_layers=4,
        scoring="general",
        input_feeding=True,
        bidirectional=False,
        dropout=0.2,
        attention="global",
        half_width=10,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_jit = seq2seq.LOOPS_COMPILE
        self.config = {
            "vocabulary_size": vocabulary_size,
            "source_vocabulary_size": source_vocabulary_size,
            "embedding_dim": embedding_dim,
            "units": units,
            "num_layers": num_layers,
            "scoring": scoring,
            "input_feeding": input_feeding,
            "bidirectional": bidirectional,
            "dropout": dropout,
            "attention": attention,
            "half_width": half_width,
        }
        self.input_feeding = input_feeding
        policy = {"dtype": self.dtype_policy}
        self.source_embedding, self.target_embedding = self._two_embeddings(
            vocabulary_size, source_vocabulary_size, embedding_dim, **policy
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.encoder = [
            _encoder_layer(units, bidirectional, f"encoder_{i}", policy)
            for i in range(num_layers)
        ]
        self.decoder = [
            keras.layers.LSTMCell(units, name=f"decoder_{i}", **policy)
            for i in range(num_layers)
        ]
        self.attention = _attention(attention, scoring, half_width, policy)
        self.has_positions = attention == "local-m"
        self.attention_projection = keras.layers.Dense(
            units,
            activation="tanh",
            use_bias=False,
            name="attention_projection",
            **policy,
        )
        self.output_projection = keras.layers.Dense(
            vocabulary_size, name="output_projection", **policy
        )
        self._build_decoder(embedding_dim, units)

    def _build_decoder(self, embedding_dim, units):
        """Before `unroll` traces a step: JAX loses weights made in a trace."""
        self._check_layers(len(self.decoder))
        self.attention.build((None, None, units), (None, None, units))
        self.attention_projection.build((None, 2 * units))
        input_dim = embedding_dim + (units if self.input_feeding else 0)
        for cell in self.decoder:
            cell.build((None, input_dim))
            input_dim = units

    def encode(self, source_ids, training=None):
        """All top states, projected for the score, and the last states."""
        mask = layers.padding_mask(source_ids, PAD)  # [B, S]
        x = self.source_embedding(source_ids)
        last_states = []
        for layer in self.encoder:
            x = self.dropout(x, training=training)
            x, *states = layer(x, mask=mask)
            # Of two directions: [h, c] of the one, then of the other.
            hidden, cell = states[::2], states[1::2]
            last_states.append(
                (ops.concatenate(hidden, -1), ops.concatenate(cell, -1))
            )
        return {
            "values": x,  # [B, S, units]
            "keys": self._keys(x),  # [B, S, units]
            "mask": mask,
            "last_states": last_states,
        }

    def _keys(self, x):
        keys = self.attention.project(x)
        if self.attention.scoring == "general":
            keys = keys / self.config["units"]  # W_a: key_kernel / units
        return keys

    def initial_state(self, memory, max_length=None):
        """The encoder's last states; an attention vector of zeros."""
        zeros = ops.zeros_like(memory["last_states"][0][0])  # [B, units]
        state = {"layers": memory["last_states"], "attention_vector": zeros}
        if self.has_positions:
            state["position"] = ops.cast(zeros[:, 0], "int32")
        return state

    def _advance(self, embedded, memory, state, dropout_masks=None):
        x = embedded
        if self.input_feeding:
            x = ops.concatenate([x, state["attention_vector"]], axis=-1)
        cell_states = []
        for index, cell in enumerate(self.decoder):
            if index > 0 and dropout_masks:
                x = x * dropout_masks[index - 1]
            x, cell_state = cell(x, list(state["layers"][index]))
            cell_states.append(tuple(cell_state))
        options = {}
        if self.has_positions:
            # All rows are at one position; the sum lets a batch be empty.
            options = {"start": ops.sum(state["position"][:1])}
        context, attention_weights = self.attention.attend(
            query=x[:, None],
            projected_key=memory["keys"],
            value=memory["values"],
            padding_mask=memory["mask"],
            **options,
        )  # [B, 1, units], [B, 1, S]
        attention_vector = self.attention_projection(
            ops.concatenate([context[:, 0], x], axis=-1)
        )
        next_state = {
            "layers": cell_states,
            "attention_vector": attention_vector,
        }
        if self.has_positions:
            next_state["position"] = state["position"] + 1
        return next_state, attention_weights[:, 0]

    def _logits(self, attention_vector, training=None):
        x = self.dropout(attention_vector, training=training)
        return layers.logits(self.output_projection, x)

    def step(self, token_ids, memory, state):
        """The stacked LSTM's step, then attention, then the logits."""
        embedded = self.target_embedding(token_ids)  # [B, E]
        state, attention_weights = self._advance(embedded, memory, state)
        return self._logits(state["attention_vector"]), state, attention_weights

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
        # The same units are dropped at every step of a sentence: masks
        # drawn before the loop, 1 where nothing is dropped.
        ones = ops.ones_like(state["attention_vector"])
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
        return self._logits(states["attention_vector"], training)

    def call_with_attention(self, inputs, training=None):
        """See `Seq2Seq`."""
        states, attention_weights = layers.unroll_with_attention(
            *self._begin(inputs, training)
        )
        logits = self._logits(states["attention_vector"], training)
        return logits, attention_weights

    def get_config(self):
        return {**super().get_config(), **self.config}


# The paper's name of a local attention -> where it looks.
LOCAL = {"local-m": "monotonic", "local-p": "predictive"}


def _attention(name, scoring, half_width, policy):
    if name == "global":
        return layers.MultiplicativeAttention(
            scoring, name="attention", **policy
        )
    if name not in LOCAL:
        raise ValueError(
            f"`attention` must be one of {('global', *LOCAL)}. "
            f"Received: attention={name!r}"
        )
    return layers.LocalAttention(
        scoring, half_width, LOCAL[name], name="attention", **policy
    )


def _encoder_layer(units, bidirectional, name, policy):
    if bidirectional and units % 2:
        raise ValueError(
            "`units` must be even: each of the encoder's two directions has "
            f"half of them. Received: units={units}"
        )
    lstm = keras.layers.LSTM(
        units // 2 if bidirectional else units,
        return_sequences=True,
        return_state=True,
        name="lstm" if bidirectional else name,
        **policy,
    )
    if bidirectional:
        return keras.layers.Bidirectional(lstm, name=name, **policy)
    return lstm
