"""The neural Turing machine: a controller that writes and reads a memory."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import seq2seq
from keras_attention.tokens import PAD


def _row(vector, matrix):
    """[B, N], [B, N, M] -> [B, M]. By a column, oneDNN corrupts TensorFlow."""
    return ops.matmul(vector[:, None], matrix)[:, 0]


@keras.saving.register_keras_serializable(package="keras_attention")
class MemoryHead(keras.layers.Layer):
    """Where a head of a neural Turing machine stands.

    Graves et al. 2014, section 3.3. The controller's output gives k, beta, g, s
    and gamma:

    ```
    w^c(i) = softmax_i(beta K[k, M(i)])        content, equation 5
    K[u, v] = u . v / (|u| |v|)                equation 6
    w^g    = g w^c + (1 - g) w_{t-1}           interpolation, equation 7
    w~(i)  = sum_j w^g(j) s(i - j)             shift, equation 8
    w(i)   = w~(i)^gamma / sum_j w~(j)^gamma   sharpening, equation 9
    ```

    The first slot follows the last one. beta is the softplus of an output, g a
    sigmoid, s a softmax, and gamma 1 plus a softplus.

    Args:
        slot_dim: M, the width of a slot.
        max_shift: how many slots a head moves at most in a step.

    Call arguments:
        controller: [B, D], the controller's output.
        memory: [B, N, M].
        weights: [B, N], where the head stood a step before.

    Returns:
        float32 [B, N], which sums to 1.

    Reference: https://arxiv.org/abs/1410.5401
    """

    def __init__(self, slot_dim, max_shift=1, **kwargs):
        # Half precision would move a head a little at each step.
        super().__init__(autocast=False, **kwargs)
        self.slot_dim = slot_dim
        self.max_shift = max_shift
        # k, beta, g, s, gamma.
        self.sizes = (slot_dim, 1, 1, 2 * max_shift + 1, 1)
        self.projection = keras.layers.Dense(
            sum(self.sizes), name="parameters", dtype=self.dtype_policy
        )

    def build(self, controller_shape, memory_shape=None, weights_shape=None):
        self.projection.build(controller_shape)

    def call(self, controller, memory, weights):
        parameters = ops.cast(self.projection(controller), "float32")
        places = [sum(self.sizes[:n]) for n in range(1, len(self.sizes))]
        key, beta, gate, shifts, gamma = ops.split(parameters, places, axis=-1)
        key = ops.normalize(key, axis=-1, epsilon=1e-8)
        slots = ops.normalize(memory, axis=-1, epsilon=1e-8)
        similarity = _row(key, ops.swapaxes(slots, 1, 2))
        by_content = ops.softmax(ops.softplus(beta) * similarity)
        gate = ops.sigmoid(gate)
        weights = gate * by_content + (1 - gate) * weights
        moved = 0.0
        shifts = ops.softmax(shifts)
        for index in range(2 * self.max_shift + 1):
            shift = index - self.max_shift
            moved += shifts[:, index, None] * ops.roll(weights, shift, axis=1)
        # Never the logarithm of 0.
        power = (1 + ops.softplus(gamma)) * ops.log(moved + 1e-12)
        return ops.softmax(power)

    def compute_output_shape(
        self, controller_shape, memory_shape, weights_shape
    ):
        return weights_shape

    def get_config(self):
        return {
            **super().get_config(),
            "slot_dim": self.slot_dim,
            "max_shift": self.max_shift,
        }


@keras.saving.register_keras_serializable(package="keras_attention")
class NeuralTuringMachine(seq2seq.Seq2Seq):
    """Graves's memory that a network addresses by content and by place.

    Graves et al. 2014, section 3. At each step, the controller reads a token
    and what the read head saw. Then it writes, then it reads:

    ```
    h_t    = LSTM([E x_t; r_{t-1}], h_{t-1})              "lstm", or
    h_t    = tanh(W [E x_t; r_{t-1}])                     "feed_forward"
    M~(i)  = M_{t-1}(i) (1 - w^w_t(i) e_t)                erase, equation 3
    M_t(i) = M~(i) + w^w_t(i) a_t                         add, equation 4
    r_t    = sum_i w^r_t(i) M_t(i)                        read, equation 2
    p(y_t) = softmax(W_o [h_t; r_t])
    ```

    The weights w of the two heads are those of `MemoryHead`. The source is read
    first, token by token. Then the same controller reads START and the target.

    | paper | here |
    |---|---|
    | N, M, slots and their width | `num_slots`, `slot_dim` |
    | e_t, a_t, erase and add vectors | sigmoid and tanh of `erase`, `add` |
    | read head, write head | `read_head`, `write_head` |
    | LSTM and feed-forward controller (3.4) | `controller` |

    A feed-forward controller remembers nothing but what it has written. So it
    must use the memory, and what it learns on short texts goes on in long ones.
    An LSTM can keep a short text to itself.

    Attention is where the read head stands. The share of source position s is
    sum_i w^r_t(i) w^w_s(i), divided by the sum over all s, where w^w_s is the
    place that s was written to.

    Deviations: both heads begin at the first slot, of which the paper says
    nothing; the add vector is a tanh; the decoder sees the last token, whereas
    the paper's copies get no input; dropout (none in the paper) on embeddings
    and before the softmax.

    Args:
        vocabulary_size: target (or joint) vocabulary.
        source_vocabulary_size: that of the source; by default the same
            size. The two embeddings are always two matrices.
        embedding_dim: width of the embeddings.
        units: width of the controller.
        num_slots: N.
        slot_dim: M.
        max_shift: how many slots a head moves at most in a step.
        controller: "lstm" or "feed_forward".
        dropout: rate.

    Raises:
        ValueError: If there is no such `controller`.

    Reference: https://arxiv.org/abs/1410.5401
    """

    sizes = {
        # For a small vocabulary and texts of up to 40 tokens.
        "mini": {
            "embedding_dim": 32,
            "num_slots": 48,
            "controller": "feed_forward",
        },
        # The paper's memory, with a wider controller.
        "tiny": {"embedding_dim": 128, "units": 256},
        # The paper's controller and memory (Graves et al. 2014, table 2).
        "base": {},
    }
    maps = {
        "cross": ("target", "source"),
        "source_writes": ("source", "slots"),
        "target_writes": ("target", "slots"),
        "reads": ("target", "slots"),
    }

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        embedding_dim=64,
        units=100,
        num_slots=128,
        slot_dim=20,
        max_shift=1,
        controller="lstm",
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
            "num_slots": num_slots,
            "slot_dim": slot_dim,
            "max_shift": max_shift,
            "controller": controller,
            "dropout": dropout,
        }
        self.num_slots, self.slot_dim = num_slots, slot_dim
        policy = {"dtype": self.dtype_policy}
        self.source_embedding, self.target_embedding = self._two_embeddings(
            vocabulary_size, source_vocabulary_size, embedding_dim, **policy
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.controller = _controller(controller, units, policy)
        self.read_head, self.write_head = (
            MemoryHead(slot_dim, max_shift, name=name, **policy)
            for name in ("read_head", "write_head")
        )
        self.erase, self.add = (
            keras.layers.Dense(
                slot_dim, activation=activation, name=name, **policy
            )
            for name, activation in (("erase", "sigmoid"), ("add", "tanh"))
        )
        self.output_projection = keras.layers.Dense(
            vocabulary_size, name="output_projection", **policy
        )
        # Before `unroll` traces a step: JAX loses weights made in a trace.
        self.controller.build((None, embedding_dim + slot_dim))
        places = (None, num_slots)
        for part in (self.read_head, self.write_head):
            part.build((None, units), (*places, slot_dim), places)
        for part in (self.erase, self.add):
            part.build((None, units))

    def _start(self, source_ids):
        """Nothing is written, and both heads stand at the first slot."""
        # Zeros of the batch's size, which may be unknown.
        zero = ops.zeros_like(source_ids[:, :1], dtype="float32")  # [B, 1]
        units = ops.zeros((1, self.controller.units), self.compute_dtype)
        units = units + ops.cast(zero, self.compute_dtype)
        has_cell = isinstance(self.controller, keras.layers.LSTMCell)
        first = zero + ops.one_hot([0], self.num_slots, dtype="float32")
        return {
            "controller": (units, units) if has_cell else (units,),
            # Small, so that a slot has a direction and content a gradient.
            "memory": zero[..., None]
            + ops.full((1, self.num_slots, self.slot_dim), 1e-6),
            "read": zero + ops.zeros((1, self.slot_dim)),
            "read_weights": first,
            "write_weights": first,
        }

    def _control(self, x, states):
        """The controller's output, and the cell of an LSTM behind it."""
        if len(states) == 1:
            return (self.controller(x),)
        _, states = self.controller(x, list(states))
        return tuple(states)

    def _advance(self, embedded, state):
        read = ops.cast(state["read"], embedded.dtype)
        controller = self._control(
            ops.concatenate([embedded, read], axis=-1), state["controller"]
        )
        hidden = controller[0]
        memory = state["memory"]  # [B, N, M]
        writes = self.write_head(hidden, memory, state["write_weights"])
        erased = ops.cast(self.erase(hidden), "float32")[:, None]
        added = ops.cast(self.add(hidden), "float32")[:, None]
        memory = memory * (1 - writes[..., None] * erased)
        memory = memory + writes[..., None] * added
        reads = self.read_head(hidden, memory, state["read_weights"])
        return {
            "controller": controller,
            "memory": memory,
            "read": _row(reads, memory),
            "read_weights": reads,
            "write_weights": writes,
        }

    def encode(self, source_ids, training=None):
        """Reads the source: the state behind it, and where each token went."""
        mask = layers.padding_mask(source_ids, PAD)  # [B, S]
        x = self.dropout(self.source_embedding(source_ids), training=training)
        # The mask as one more number of each token, for the loop.
        x = ops.concatenate([x, ops.cast(mask, x.dtype)[..., None]], axis=-1)

        def advance(x, state):
            after = self._advance(x[:, :-1], state)
            real = x[:, -1] > 0

            def chosen(new, old):
                is_real = ops.reshape(real, (-1, *[1] * (len(new.shape) - 1)))
                return ops.where(is_real, new, old)

            return keras.tree.map_structure(chosen, after, state)

        states = layers.unroll(advance, self._start(source_ids), x)
        return {
            "state": keras.tree.map_structure(lambda x: x[:, -1], states),
            "writes": states["write_weights"],  # [B, S, N]
            "mask": mask,
        }

    def initial_state(self, memory, max_length=None):
        """The state behind the source."""
        return memory["state"]

    def _logits(self, state, training=None):
        hidden = state["controller"][0]
        read = ops.cast(state["read"], hidden.dtype)
        x = self.dropout(
            ops.concatenate([hidden, read], axis=-1), training=training
        )
        return layers.logits(self.output_projection, x)

    def step(self, token_ids, memory, state):
        """The controller's step, then the logits of what it read."""
        state = self._advance(self.target_embedding(token_ids), state)
        shares = _row(
            state["read_weights"], ops.swapaxes(memory["writes"], 1, 2)
        )
        # Not 0 / 0: nothing may be read, and a source may be padding alone.
        shares = ops.where(memory["mask"], shares + 1e-12, 0.0)
        total = ops.sum(shares, axis=-1, keepdims=True)
        shares = shares / ops.maximum(total, 1e-12)
        return self._logits(state), state, shares

    def call(self, inputs, training=None):
        memory = self.encode(inputs["source_ids"], training)
        embedded = self.dropout(
            self.target_embedding(inputs["target_ids"]), training=training
        )  # [B, T, E]
        states = layers.unroll(self._advance, memory["state"], embedded)
        return self._logits(states, training)  # [B, T, V]

    def call_with_maps(self, inputs, training=None):
        """See `PaperModel`: where both heads stand, in source and target."""
        memory = self.encode(inputs["source_ids"], training)
        embedded = self.dropout(
            self.target_embedding(inputs["target_ids"]), training=training
        )
        states = layers.unroll(self._advance, memory["state"], embedded)
        reads, writes = states["read_weights"], memory["writes"]
        shares = ops.matmul(reads, ops.swapaxes(writes, 1, 2))  # [B, T, S]
        shares = ops.where(memory["mask"][:, None], shares + 1e-12, 0.0)
        total = ops.sum(shares, axis=-1, keepdims=True)
        shares = shares / ops.maximum(total, 1e-12)
        maps = self.as_maps(shares, writes, states["write_weights"], reads)
        return self._logits(states, training), maps

    def get_config(self):
        return {**super().get_config(), **self.config}


def _controller(name, units, policy):
    if name == "lstm":
        return keras.layers.LSTMCell(units, name="controller", **policy)
    if name == "feed_forward":
        return keras.layers.Dense(
            units, activation="tanh", name="controller", **policy
        )
    raise ValueError(
        '`controller` must be "lstm" or "feed_forward". '
        f"Received: controller={name!r}"
    )
