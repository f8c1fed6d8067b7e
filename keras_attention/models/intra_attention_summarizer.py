"""A summariser that does not look, or write, twice at the same place."""

import functools
import math

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import self_critical, seq2seq
from keras_attention.tokens import PAD

# Below any sum of scores: nothing has been looked at so far.
NOTHING = -1e9
# What no word of the source has of the copies. Its logarithm is finite.
SMALLEST = 1e-30


def past_scores(scores):
    """The sums of equation 3, as logarithms: what earlier steps looked at.

    Args:
        scores: e_ti, float32 [B, T, S].

    Returns:
        `(before, after)`: log sum_{j<t} exp(e_ji), float32 [B, T, S], and the
        sum of all steps, [B, S]. At the first step it is `NOTHING`.
    """

    def add(total, step_scores):
        return ops.logaddexp(total, step_scores), total

    nothing = ops.full_like(ops.sum(scores, axis=1), NOTHING)
    after, before = ops.scan(add, nothing, ops.swapaxes(scores, 0, 1))
    return ops.swapaxes(before, 0, 1), after


def temporal_weights(scores, before, mask):
    """Attention that has less for what earlier steps looked at.

    ```
    e'_ti   = exp(e_ti)                           t = 1
            = exp(e_ti) / sum_{j<t} exp(e_ji)     t > 1, equation 3
    alpha_ti = e'_ti / sum_j e'_tj                equation 4
    ```

    Args:
        scores: e_ti, float32 [B, T, S].
        before: log sum_{j<t} exp(e_ji), or `NOTHING`, [B, T, S].
        mask: bool [B, S], True at real tokens.

    Returns:
        float32 [B, T, S].
    """
    # What is the same for all i cancels, such as `NOTHING`.
    before = ops.where(before < NOTHING / 2, 0.0, before)
    return layers.masked_softmax(scores - before, mask[:, None])


@keras.saving.register_keras_serializable(package="keras_attention")
class IntraAttentionSummarizer(seq2seq.Seq2Seq):
    """Paulus's summariser: intra-temporal attention, intra-decoder, pointer.

    Paulus et al. 2017, sections 2 and 3:

    ```
    h^e_i = bidirectional LSTM(x)_i
    h^d_t = LSTM(E y_{t-1}, h^d_{t-1})
    e_ti  = h^d_t . W_e h^e_i                             equations 1, 2
    alpha^e_ti from e_ti, see `temporal_weights`          equations 3, 4
    c^e_t = sum_i alpha^e_ti h^e_i                        equation 5
    e^d_tj = h^d_t . W_d h^d_j                            equation 6
    alpha^d_tj = softmax_{j<t}(e^d_tj)                    equation 7
    c^d_t = sum_{j<t} alpha^d_tj h^d_j, 0 at first        equation 8
    f_t   = [h^d_t; c^e_t; c^d_t]
    p(y_t | u_t = 0) = softmax(W_out f_t + b_out)         equation 9
    p(y_t = x_i | u_t = 1) = alpha^e_ti                   equation 10
    p(u_t = 1) = sigmoid(W_u f_t + b_u)                   equation 11
    p(y_t) = p(u_t = 1) p(y_t | u_t = 1)
             + p(u_t = 0) p(y_t | u_t = 0)                equation 12
    W_out = tanh(E W_proj)                                equation 13
    ```

    The logits of `call` and `step` are log p(y_t). A token that stands at
    several places of the source has the sum of their alpha^e.

    The loss is that of whole texts, `self_critical.mixed_objective`, which
    smooths no labels.

    A pointer copies ids, so source and target share one vocabulary. With a
    `source_vocabulary_size` there is nothing to copy: the model is then that of
    equation 9 alone.

    | paper | here |
    |---|---|
    | u_t = 1 | the next token is copied |
    | e_ti, alpha^e_ti | `scores`, `temporal_weights` |
    | sum_{j<t} exp(e_ji), as a logarithm | `past_scores` |
    | h^d_1 ... h^d_{t-1} | `written` |
    | gamma | `reward_weight`, see `self_critical.mixed_objective` |

    Deviations: the scores are divided by the root of the width, as Vaswani et
    al. 2017 divide them. The decoder begins with the last states of both
    directions, the paper's with h^e_n. Words that the vocabulary does not know
    are one token, also when copied. Whether a token is copied is never told:
    training sums over both (equation 12), and b_u begins at -2, so that few are
    copied at first. The decoder reads the right tokens in training, the paper's
    reads its own in a quarter of the steps. The embeddings begin at random.
    Dropout (none in the paper) on embeddings and on f_t.

    Args:
        vocabulary_size: of source and target.
        source_vocabulary_size: that of the source if it has its own; the model
            then has no pointer, and two matrices of embeddings.
        embedding_dim: width of the embeddings.
        units: width of each direction of the encoder; the decoder's is twice
            that.
        reward_weight: gamma of equation 16, from 0 (cross-entropy) to 1.
        dropout: rate.

    Raises:
        ValueError: If `reward_weight` is not from 0 to 1.

    Reference: https://arxiv.org/abs/1705.04304
    """

    sizes = {
        # 64 wide in each direction: for `mentions` on two cores.
        "mini": {"embedding_dim": 64, "units": 64, "dropout": 0.1},
        # 128 wide in each direction: for small data and two cores.
        "tiny": {"embedding_dim": 128, "units": 128, "dropout": 0.3},
        # The paper's size (Paulus et al. 2017, section 6).
        "base": {},
    }
    maps = {"cross": ("target", "source"), "decoder": ("target", "input")}

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        embedding_dim=100,
        units=200,
        reward_weight=0.0,
        dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        _check_share(reward_weight)
        self.supports_jit = seq2seq.LOOPS_COMPILE
        self.config = {
            "vocabulary_size": vocabulary_size,
            "source_vocabulary_size": source_vocabulary_size,
            "embedding_dim": embedding_dim,
            "units": units,
            "reward_weight": reward_weight,
            "dropout": dropout,
        }
        self.reward_weight = reward_weight
        self.copies = source_vocabulary_size is None
        self.seeds = keras.random.SeedGenerator()
        policy = {"dtype": self.dtype_policy}
        self.embedding = keras.layers.Embedding(
            vocabulary_size, embedding_dim, name="embedding", **policy
        )
        self.source_embedding = self.embedding
        if not self.copies:
            self.source_embedding = keras.layers.Embedding(
                source_vocabulary_size, embedding_dim, name="source", **policy
            )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.encoder = keras.layers.Bidirectional(
            _lstm(units, "lstm", policy), name="encoder", **policy
        )
        self.decoder = _lstm(2 * units, "decoder", policy)
        self.temporal_query, self.decoder_query = (
            keras.layers.Dense(2 * units, use_bias=False, name=name, **policy)
            for name in ("temporal_query", "decoder_query")
        )
        self.output_projection = keras.layers.Dense(
            6 * units,
            activation="tanh",
            use_bias=False,
            name="output_projection",
            **policy,
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(vocabulary_size,), initializer="zeros"
        )
        self.switch = None
        if self.copies:
            self.switch = keras.layers.Dense(
                1,
                bias_initializer=keras.initializers.Constant(-2),
                name="switch",
                **policy,
            )

    def encode(self, source_ids, training=None):
        """The encoder's states, and the ids that a pointer copies."""
        mask = layers.padding_mask(source_ids, PAD)  # [B, S]
        x = self.dropout(self.source_embedding(source_ids), training=training)
        states, *last = self.encoder(x, mask=mask)  # [B, S, 2 units]
        hidden, cell = (ops.concatenate(last[k::2], axis=-1) for k in (0, 1))
        return {
            "states": states,
            "hidden": hidden,
            "cell": cell,
            "source_ids": source_ids,
            "mask": mask,
        }

    def initial_state(self, memory, max_length):
        """The last states; nothing has been looked at or written yet."""
        hidden = memory["hidden"]
        batch_size, width = ops.shape(hidden)
        return {
            "decoder": [hidden, memory["cell"]],
            "past_scores": ops.full(ops.shape(memory["mask"]), NOTHING),
            "written": ops.zeros((batch_size, max_length, width), hidden.dtype),
            "position": ops.zeros((batch_size,), dtype="int32"),
        }

    def _decode(self, target_ids, state, training=None):
        """h^d after each token, [B, T, 2 units], and the last state."""
        x = self.dropout(self.embedding(target_ids), training=training)
        hidden, *state = self.decoder(x, initial_state=list(state))
        return hidden, state

    def _scores(self, query, hidden, key):
        """h . W k / sqrt(width), float32 [B, T, S]."""
        query = query(hidden) * (1.0 / math.sqrt(hidden.shape[-1]))
        scores = ops.matmul(query, ops.swapaxes(key, 1, 2))
        return ops.cast(scores, "float32")

    def _log_probabilities(self, f, weights, memory, kernel):
        """log p(y_t), float32 [B, T, V], by equations 9 to 12."""
        logits = ops.cast(ops.matmul(f, kernel), "float32")
        bias = ops.cast(self.output_bias, "float32")
        log_p = ops.log_softmax(logits + bias, axis=-1)
        if not self.copies:
            return log_p
        switch = ops.cast(self.switch(f), "float32")  # [B, T, 1]
        copied = _scatter(
            weights, memory["source_ids"], self.config["vocabulary_size"]
        )
        log_copied = ops.log(ops.maximum(copied, SMALLEST))
        return ops.logaddexp(
            ops.log_sigmoid(-switch) + log_p,
            ops.log_sigmoid(switch) + log_copied,
        )

    def _kernel(self):
        """Equation 13, turned round: [6 units, V]."""
        embedded = self.embedding(ops.arange(self.config["vocabulary_size"]))
        return ops.transpose(self.output_projection(embedded))

    def prepared_step(self):
        """`step`, with equation 13 computed before the loop."""
        return functools.partial(self._step, kernel=self._kernel())

    def step(self, token_ids, memory, state):
        """One token, which knows what was looked at and written before."""
        return self._step(token_ids, memory, state, self._kernel())

    def _step(self, token_ids, memory, state, kernel):
        hidden, decoder = self._decode(token_ids[:, None], state["decoder"])
        scores = self._scores(self.temporal_query, hidden, memory["states"])
        before = state["past_scores"]
        weights = temporal_weights(scores, before[:, None], memory["mask"])
        context = layers.weighted_sum(weights, memory["states"])
        places = ops.arange(ops.shape(state["written"])[1])[None]
        position = state["position"][:, None]
        own_weights = layers.masked_softmax(
            self._scores(self.decoder_query, hidden, state["written"]),
            (places < position)[:, None],
        )  # [B, 1, L]
        own_context = layers.weighted_sum(own_weights, state["written"])
        f = ops.concatenate([hidden, context, own_context], axis=-1)
        log_p = self._log_probabilities(f, weights, memory, kernel)
        is_here = ops.equal(places, position)[..., None]
        state = {
            "decoder": decoder,
            "past_scores": ops.logaddexp(before, scores[:, 0]),
            "written": ops.where(is_here, hidden, state["written"]),
            "position": state["position"] + 1,
        }
        return log_p[:, 0], state, weights[:, 0]

    def call(self, inputs, training=None):
        log_p, _, _ = self._write(inputs, training)
        return log_p  # [B, T, V]

    def call_with_maps(self, inputs, training=None):
        """See `PaperModel`: equations 4 and 7."""
        log_p, *attention_weights = self._write(inputs, training)
        return log_p, self.as_maps(*attention_weights)

    def _write(self, inputs, training):
        """log p(y_t), and where each step looks: [B, T, S], [B, T, T]."""
        memory = self.encode(inputs["source_ids"], training)
        states = memory["states"]
        hidden, _ = self._decode(
            inputs["target_ids"], [memory["hidden"], memory["cell"]], training
        )
        scores = self._scores(self.temporal_query, hidden, states)
        before, _ = past_scores(scores)
        weights = temporal_weights(scores, before, memory["mask"])
        context = layers.weighted_sum(weights, states)  # [B, T, 2 units]
        steps = ops.arange(ops.shape(hidden)[1])
        own_weights = layers.masked_softmax(
            self._scores(self.decoder_query, hidden, hidden),
            (steps[:, None] > steps[None])[None],
        )  # [B, T, T]
        own_context = layers.weighted_sum(own_weights, hidden)
        f = ops.concatenate([hidden, context, own_context], axis=-1)
        f = self.dropout(f, training=training)
        log_p = self._log_probabilities(f, weights, memory, self._kernel())
        return log_p, weights, own_weights

    def objective(self, batch, training):
        """Equation 16, with gamma = `reward_weight`."""
        return self_critical.mixed_objective(
            self, batch, training, self.reward_weight
        )

    def get_config(self):
        return {**super().get_config(), **self.config}


def _check_share(reward_weight):
    if not 0 <= reward_weight <= 1:
        raise ValueError(
            "`reward_weight` must be from 0 to 1. "
            f"Received: reward_weight={reward_weight}"
        )


def _lstm(units, name, policy):
    return keras.layers.LSTM(
        units, return_sequences=True, return_state=True, name=name, **policy
    )


def _scatter(weights, source_ids, vocabulary_size):
    """The weights of places as those of tokens, summed over equal ones.

    Args:
        weights: [B, T, S].
        source_ids: int [B, S].
        vocabulary_size: V.

    Returns:
        [B, T, V].
    """
    batch_size, length, source_length = ops.shape(weights)
    places = (batch_size, length, source_length)
    rows, steps = (
        ops.broadcast_to(ops.reshape(ops.arange(size), shape), places)
        for size, shape in ((batch_size, (-1, 1, 1)), (length, (1, -1, 1)))
    )
    ids = ops.broadcast_to(ops.cast(source_ids, "int32")[:, None], places)
    indices = [ops.cast(rows, "int32"), ops.cast(steps, "int32"), ids]
    return ops.scatter(
        ops.stack(indices, axis=-1),
        weights,
        (batch_size, length, vocabulary_size),
    )
