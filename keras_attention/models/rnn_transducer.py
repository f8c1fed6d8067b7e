"""The RNN transducer: a cursor reads the source, and writes as it goes."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import seq2seq
from keras_attention.tokens import END, PAD

# The log-probability of what cannot be. Gradients stay finite, unlike -inf's.
IMPOSSIBLE = -1e9


def posterior(log_weights):
    """Log-probabilities of the steps of the source, [..., S], from weights."""
    return ops.log_softmax(log_weights, axis=-1)


def reach(written, log_blank):
    """Where the cursor may be, from where the last token was written.

    ```
    alpha(s, u) = alpha(s-1, u) blank(s-1, u) + written(s, u)
    ```

    Graves 2012, equation 16, with written(s, u) = alpha(s, u-1) y(s, u-1). The
    sum has a term for each step s' <= s at which the token may have been
    written; from there, the cursor passes the steps in between by blanks.

    Args:
        written: log-probabilities float32 [B, S]: the last token, written at s.
        log_blank: float32 [B, S], of a blank at each step.

    Returns:
        log alpha, float32 [B, S].
    """
    passed = ops.cumsum(log_blank, axis=-1) - log_blank  # Before s.
    paths = (written - passed)[:, None, :] + passed[:, :, None]  # [B, S, S']
    steps = ops.arange(ops.shape(written)[1])
    is_before = steps[None, :] <= steps[:, None]
    return ops.logsumexp(ops.where(is_before, paths, IMPOSSIBLE), axis=-1)


@keras.saving.register_keras_serializable(package="keras_attention")
class RNNTransducer(seq2seq.Seq2Seq):
    """Graves's transducer: the sum over all monotone alignments.

    Graves 2012, sections 2.1 to 2.4. A cursor stands at one step s of the
    source. It writes a token and stays, or it writes a blank and moves on. The
    blank at the last step ends the text:

    ```
    f_s            = bidirectional LSTM(x)_s          transcription network
    g_u            = LSTM(E y_u, g_{u-1})             prediction network
    p(k | s, u)    = softmax_k(W tanh(f_s + g_u))     output network
    alpha(s, u)    = alpha(s-1, u) p(blank | s-1, u)
                     + alpha(s, u-1) p(y_u | s, u-1)  equation 16
    p(y | x)       = alpha(S, U) p(blank | S, U)
    ```

    alpha(s, u) is the probability that y_1 ... y_u are written and step s is
    reached. So each next token has an exact probability, the sum over all
    steps at which it may be written:

    ```
    p(y_{u+1} = k, y_<=u | x)   = sum_s alpha(s, u) p(k | s, u)
    p(y_{u+1} = END, y_<=u | x) = alpha(S, u) p(blank | S, u)
    ```

    Divided by their sum, which is the probability of all texts that begin with
    y_<=u, these are the logits of `call` and `step`: log-probabilities of the
    next token. Their cross-entropy is -log p(y | x) of the paper, and a search
    over `step` sums over all alignments, too.

    The blank has the id END in the output network, which so has V outputs: END
    is written nowhere else.

    `call` holds p(k | s, u) of a whole batch, [B, T, S, V]: this is for
    vocabularies of letters or sounds, or for small batches.

    The attention weights of a step are the probabilities that the next token
    is written at s, whatever it is, given the tokens before.

    | paper | here |
    |---|---|
    | t, T | s, S: steps of the source, its END included |
    | K + 1 outputs | V, with the blank as END |
    | f_t, g_u | `features`, `prediction` |
    | alpha(t, u) Pr(k, t, u), divided by the sum of all | exp(`written`) |

    Deviations: the output network is that of Graves et al. 2013
    (https://arxiv.org/abs/1303.5778), which adds inside of a tanh. With
    `joint_dim=None` it is the paper's, which adds logits (equation 12): then
    p(k | s, u) = softmax_k(f_s + g_u). Tokens and START are embedded, where the
    paper feeds a one-hot vector, and a vector of zeros at first. Search is the
    package's, over sums of alignments: no other beam search is needed. Dropout
    (none in the paper) on embeddings, between layers and on the
    outputs of both networks.

    Args:
        vocabulary_size: target (or joint) vocabulary.
        source_vocabulary_size: that of the source; by default the same
            size. The two embeddings are always two matrices.
        embedding_dim: width of the embeddings.
        units: width of each encoder direction and of the prediction network.
        num_layers: bidirectional LSTMs in the encoder. Without any, a step
            knows its own token alone.
        joint_dim: width of the tanh; None adds logits.
        dropout: rate.

    Raises:
        ValueError: If `num_layers` is negative.

    Reference: https://arxiv.org/abs/1211.3711
    """

    sizes = {
        # One layer: for `pronunciations` on two cores.
        "mini": {
            "embedding_dim": 64,
            "units": 128,
            "num_layers": 1,
            "joint_dim": 128,
            "dropout": 0.1,
        },
        # Two layers, 256 wide: for small data and two cores.
        "tiny": {
            "embedding_dim": 256,
            "units": 256,
            "num_layers": 2,
            "joint_dim": 256,
            "dropout": 0.3,
        },
        # Three layers, 250 wide: the default.
        "base": {},
    }
    maps = {"cross": ("target", "source"), "lattice": ("target", "source")}

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        embedding_dim=250,
        units=250,
        num_layers=3,
        joint_dim=250,
        dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_layers < 0:
            raise ValueError(
                "`num_layers` must be 0 or more. "
                f"Received: num_layers={num_layers}"
            )
        self.supports_jit = seq2seq.LOOPS_COMPILE
        self.config = {
            "vocabulary_size": vocabulary_size,
            "source_vocabulary_size": source_vocabulary_size,
            "embedding_dim": embedding_dim,
            "units": units,
            "num_layers": num_layers,
            "joint_dim": joint_dim,
            "dropout": dropout,
        }
        policy = {"dtype": self.dtype_policy}
        self.source_embedding, self.target_embedding = self._two_embeddings(
            vocabulary_size, source_vocabulary_size, embedding_dim, **policy
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.encoder = [
            _encoder_layer(units, f"encoder_{index}", policy)
            for index in range(num_layers)
        ]
        self.prediction = keras.layers.LSTM(
            units,
            return_sequences=True,
            return_state=True,
            name="prediction",
            **policy,
        )
        width = joint_dim or vocabulary_size
        self.source_projection = keras.layers.Dense(
            width, name="source_projection", **policy
        )
        # One bias is enough for the sum of both.
        self.prediction_projection = keras.layers.Dense(
            width, use_bias=False, name="prediction_projection", **policy
        )
        self.output_projection = None
        if joint_dim:
            self.output_projection = keras.layers.Dense(
                vocabulary_size, name="output_projection", **policy
            )

    def encode(self, source_ids, training=None):
        """The features of each step, and which is the last one."""
        mask = layers.padding_mask(source_ids, PAD)  # [B, S]
        x = self.dropout(self.source_embedding(source_ids), training=training)
        for layer in self.encoder:
            x = self.dropout(layer(x, mask=mask), training=training)
        lengths = ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)
        steps = ops.arange(ops.shape(mask)[1])[None]
        # The cursor stands somewhere, also where all is padding.
        last = ops.maximum(lengths, 1) - 1
        return {
            "features": self.source_projection(x),  # [B, S, J]
            "is_step": steps <= last,
            "is_last": ops.equal(steps, last),
        }

    def initial_state(self, memory, max_length=None):
        """The cursor at the first step: START is written there."""
        is_last, features = memory["is_last"], memory["features"]
        batch_size, length = ops.shape(is_last)
        is_first = ops.equal(ops.arange(length), 0)[None, :, None]
        size = (batch_size, length, self.config["vocabulary_size"])
        written = ops.broadcast_to(ops.where(is_first, 0.0, IMPOSSIBLE), size)
        zeros = ops.zeros((batch_size, self.config["units"]), features.dtype)
        return {"written": written, "prediction": [zeros, zeros]}

    def _predict(self, target_ids, state, training=None):
        """g_u after each token: [B, T] -> [B, T, J], and the last state."""
        x = self.target_embedding(target_ids)  # [B, T, E]
        x, *state = self.prediction(
            self.dropout(x, training=training), initial_state=state
        )
        x = self.dropout(x, training=training)
        return self.prediction_projection(x), state

    def _log_probabilities(self, features, prediction):
        """log p(k | s, u), float32 [B, T, S, V], the blank as END."""
        x = features[:, None] + prediction[:, :, None]  # [B, T, S, J]
        if self.output_projection is not None:
            x = self.output_projection(ops.tanh(x))
        return ops.log_softmax(ops.cast(x, "float32"), axis=-1)

    def _written(self, log_alpha, log_p, memory):
        """The next token is k, and is written at s: [B, T, S, V]."""
        is_end = ops.equal(ops.arange(self.config["vocabulary_size"]), END)
        is_possible = ops.where(
            is_end, memory["is_last"][..., None], memory["is_step"][..., None]
        )  # [B, S, V]
        return ops.where(
            is_possible[:, None], log_alpha[..., None] + log_p, IMPOSSIBLE
        )

    def step(self, token_ids, memory, state):
        """Where the token may have been written, and then what comes next."""
        prediction, hidden = self._predict(
            token_ids[:, None], state["prediction"]
        )
        log_p = self._log_probabilities(memory["features"], prediction)
        written = ops.take_along_axis(
            state["written"], token_ids[:, None, None], axis=2
        )[..., 0]  # [B, S]
        log_alpha = reach(posterior(written), log_p[:, 0, :, END])
        written = self._written(log_alpha[:, None], log_p, memory)[:, 0]
        attention_weights = ops.exp(posterior(ops.logsumexp(written, axis=2)))
        state = {"written": written, "prediction": hidden}
        return ops.logsumexp(written, axis=1), state, attention_weights

    def call(self, inputs, training=None):
        written, _ = self._read_and_write(inputs, training)
        return ops.logsumexp(written, axis=2)  # [B, T, V]

    def call_with_maps(self, inputs, training=None):
        """See `PaperModel`: "lattice" is alpha, given the tokens before.

        It is the probability that the cursor comes by a step of the source
        before the next token is written. A row is at most 1 and does not sum
        to 1.
        """
        written, log_alpha = self._read_and_write(inputs, training)
        places = ops.exp(posterior(ops.logsumexp(written, axis=3)))
        mask = layers.padding_mask(inputs["source_ids"], PAD)
        lattice = ops.where(mask[:, None], ops.exp(log_alpha), 0.0)
        logits = ops.logsumexp(written, axis=2)
        return logits, self.as_maps(places, lattice)

    def _read_and_write(self, inputs, training):
        """The whole lattice.

        Returns:
            `(written, log_alpha)`: the next token is k, and is written at s,
            float32 [B, T, S, V]; step s is reached, [B, T, S].
        """
        memory = self.encode(inputs["source_ids"], training)
        target_ids = inputs["target_ids"]
        state = self.initial_state(memory)
        prediction, _ = self._predict(target_ids, state["prediction"], training)
        log_p = self._log_probabilities(memory["features"], prediction)
        # The token after each; after the last one nothing is asked.
        following = ops.pad(target_ids[:, 1:], ((0, 0), (0, 1)))
        log_token = ops.take_along_axis(
            log_p, following[:, :, None, None], axis=3
        )[..., 0]  # [B, T, S]

        def advance(written, place):
            log_alpha = reach(written, place[..., 0])  # [B, S]
            written = log_alpha + place[..., 1]
            written = ops.where(memory["is_step"], written, IMPOSSIBLE)
            return posterior(written), log_alpha

        # One tensor: of several of unknown length, TensorFlow makes no scan.
        places = ops.stack([log_p[..., END], log_token], axis=-1)
        _, log_alpha = ops.scan(
            advance, state["written"][..., 0], ops.swapaxes(places, 0, 1)
        )
        log_alpha = ops.swapaxes(log_alpha, 0, 1)  # [B, T, S]
        return self._written(log_alpha, log_p, memory), log_alpha

    def get_config(self):
        return {**super().get_config(), **self.config}


def _encoder_layer(units, name, policy):
    lstm = keras.layers.LSTM(
        units, return_sequences=True, name="lstm", **policy
    )
    return keras.layers.Bidirectional(lstm, name=name, **policy)
