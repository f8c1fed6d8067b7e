"""The character-aware language model: words are read by their letters."""

import keras
import numpy as np
from keras import ops

from keras_attention import layers
from keras_attention.models import language_model

# Characters are the bytes of UTF-8, after these three.
PADDING, WORD_START, WORD_END = range(3)
NUM_CHARACTERS = 3 + 256


def spell(piece, max_word_length):
    """The character ids of one piece of a vocabulary.

    Args:
        piece: str; SentencePiece's sign for a space is read as a space.
        max_word_length: the most bytes; the others are left out.

    Returns:
        List of `max_word_length + 2` ints: a sign that the word begins, its
        bytes, a sign that it ends, padding.
    """
    letters = piece.replace("\u2581", " ").encode()[:max_word_length]
    ids = [WORD_START, *(3 + letter for letter in letters), WORD_END]
    return ids + [PADDING] * (max_word_length + 2 - len(ids))


@keras.saving.register_keras_serializable(package="keras_attention")
class Highway(keras.layers.Layer):
    """`z = t * relu(W_H y + b_H) + (1 - t) * y`, `t = sigm(W_T y + b_T)`.

    (Kim et al. 2016, equation 8, after Srivastava et al. 2015.) b_T starts at
    -2, as in the authors' code, so that at first most of y passes as it is.

    Call arguments:
        inputs: y [..., D].

    Returns:
        [..., D].
    """

    def build(self, inputs_shape):
        options = {"dtype": self.dtype_policy}
        self.transform = keras.layers.Dense(
            inputs_shape[-1], "relu", name="transform", **options
        )
        self.gate = keras.layers.Dense(
            inputs_shape[-1],
            "sigmoid",
            bias_initializer=keras.initializers.Constant(-2.0),
            name="gate",
            **options,
        )
        self.transform.build(inputs_shape)
        self.gate.build(inputs_shape)

    def call(self, inputs):
        gate = self.gate(inputs)
        return gate * self.transform(inputs) + (1 - gate) * inputs

    def compute_output_shape(self, inputs_shape):
        return inputs_shape


@keras.saving.register_keras_serializable(package="keras_attention")
class CharCNNLanguageModel(language_model.LanguageModel):
    """An LSTM language model without a matrix of words in (Kim et al. 2016).

    ```
    C^k      = [Q c_1, ..., Q c_l]                  letters of a word
    f^k_w    = tanh(C^k * H_w + b)                  equation 6, width w
    y^k      = [max over places of f^k_w, all w]    equation 7
    z^k      = highway(... highway(y^k))            equation 8
    x_t      = W_e z^k                              if `embedding_dim`
    h_t      = LSTM(... LSTM(x_t))
    p(x_t+1) = softmax(W D(h_t) + b)
    ```

    Jozefowicz et al. 2016 project z^k, and each LSTM's output (Sak et al.
    2014, see `layers.ProjectedLSTMCell`).

    | paper | here |
    |---|---|
    | d, of Q; C, the set of characters | `character_dim`; the 256 bytes |
    | w, h: widths and numbers of the filters | `filters`, pairs of them |
    | l, highway layers | `num_highways` |
    | m, hidden units; layers | `units`, `num_layers` |
    | Jozefowicz 2016: LSTM-8192-1024 | `units`, `projection_dim` |

    The model must know how words are spelt: `read_vocabulary` takes the
    pieces in the order of their ids. The table of spellings is a weight that
    is saved and not trained. Without `read_vocabulary`, a word is spelt by its
    number.

    Deviations: characters are bytes of UTF-8, where Kim et al. take those of
    the data. The padding of a word has an embedding, where theirs is zero. The
    softmax is over all words, where Jozefowicz et al. sample. The filters end
    in tanh, where those of their published graph end in a ReLU. Dropout acts
    on the outputs of LSTMs, as in Kim et al., where Jozefowicz et al. have it
    on the words too. `call` starts from a state of zeros, where Kim et al. go
    on from the text before it. `advance` goes on from any state. They draw all
    weights within 0.05. Here, embeddings of characters are drawn within 0.5,
    and filters by `lecun_uniform`. So words differ from the beginning, and Adam
    learns faster: after two epochs of the Penn Treebank, the validation
    perplexity was 298, and with Keras's initial weights 346. The other weights
    are Keras's.

    Args:
        vocabulary_size: words.
        character_dim: width of the embeddings of characters.
        filters: pairs (width, number).
        num_highways: highway layers.
        embedding_dim: width of the projected words; None for no projection.
        units: width of every LSTM's memory.
        projection_dim: width of every LSTM's output; None for no projection.
        num_layers: LSTMs.
        dropout: rate, on the outputs of each LSTM.
        max_word_length: the most bytes of a word that are read.

    Raises:
        ValueError: If there is no filter or no LSTM, or if a filter is wider
            than a word.

    References: https://arxiv.org/abs/1508.06615 (Kim et al. 2016);
    https://arxiv.org/abs/1602.02410 (Jozefowicz et al. 2016)
    """

    sizes = {
        # One LSTM of 128 cells: for the embedded `sentences`.
        "mini": {
            "character_dim": 8,
            "filters": ((1, 16), (2, 32), (3, 48)),
            "embedding_dim": 64,
            "units": 128,
            "projection_dim": 64,
            "num_layers": 1,
            "dropout": 0.1,
        },
        # Two LSTMs of 400 cells, projected to 200: for small data.
        "tiny": {
            "filters": ((1, 25), (2, 50), (3, 75), (4, 100)),
            "embedding_dim": 200,
            "units": 400,
            "projection_dim": 200,
            "dropout": 0.3,
        },
        # The paper's LSTM-Char-Small (Kim et al. 2016, table 2).
        "small": {},
        # The paper's LSTM-Char-Large (Kim et al. 2016, table 2).
        "large": {
            "filters": (
                *((1, 50), (2, 100), (3, 150)),
                *((4, 200), (5, 200), (6, 200), (7, 200)),
            ),
            "num_highways": 2,
            "units": 650,
        },
        # BIG LSTM+CNN inputs of Jozefowicz et al. 2016, table 1. Its filters
        # and its highways are those of the graph that the authors have
        # published. https://github.com/tensorflow/models, research/lm_1b
        "big": {
            "character_dim": 16,
            "filters": (
                *((1, 32), (2, 32), (3, 64), (4, 128)),
                *((5, 256), (6, 512), (7, 1024), (7, 2048)),
            ),
            "num_highways": 2,
            "embedding_dim": 1024,
            "units": 8192,
            "projection_dim": 1024,
            "dropout": 0.25,
            "max_word_length": 48,
        },
    }

    def __init__(
        self,
        vocabulary_size,
        character_dim=15,
        filters=((1, 25), (2, 50), (3, 75), (4, 100), (5, 125), (6, 150)),
        num_highways=1,
        embedding_dim=None,
        units=300,
        projection_dim=None,
        num_layers=2,
        dropout=0.5,
        max_word_length=21,
        **kwargs,
    ):
        super().__init__(**kwargs)
        _check(filters, num_layers, max_word_length)
        self.config = {
            "vocabulary_size": vocabulary_size,
            "character_dim": character_dim,
            "filters": [list(pair) for pair in filters],
            "num_highways": num_highways,
            "embedding_dim": embedding_dim,
            "units": units,
            "projection_dim": projection_dim,
            "num_layers": num_layers,
            "dropout": dropout,
            "max_word_length": max_word_length,
        }
        policy = {"dtype": self.dtype_policy}
        self.spelling = self.add_weight(
            name="spelling",
            shape=(vocabulary_size, max_word_length + 2),
            dtype="int32",
            initializer=_spelt_numbers,
            trainable=False,
        )
        self.embedding = _embedding(character_dim, **policy)
        self.convolutions = [
            _convolution(i, *pair, **policy) for i, pair in enumerate(filters)
        ]
        self.highways = [
            Highway(name=f"highway_{index}", **policy)
            for index in range(num_highways)
        ]
        self.word_projection = None
        if embedding_dim is not None:
            self.word_projection = keras.layers.Dense(
                embedding_dim, use_bias=False, name="word_projection", **policy
            )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.recurrent_layers = [
            _lstm(units, projection_dim, name=f"lstm_{index}", **policy)
            for index in range(num_layers)
        ]
        self.output_projection = keras.layers.Dense(
            vocabulary_size, name="output_projection", **policy
        )

    def read_vocabulary(self, pieces):
        """Takes the spelling of each token, in the order of their ids.

        Raises:
            ValueError: If they are not as many as the vocabulary's.
        """
        length = self.config["max_word_length"]
        self.spelling.assign(
            np.array([spell(piece, length) for piece in pieces], "int32")
        )

    def words(self, token_ids):
        """x_t: what the letters of each word say.

        Args:
            token_ids: int [B, T].

        Returns:
            [B, T, E].
        """
        characters = ops.take(self.spelling, token_ids, axis=0)  # [B, T, L]
        batch, length, letters = ops.shape(characters)
        x = self.embedding(ops.reshape(characters, (-1, letters)))
        pooled = [
            # From the first place on that has the whole window before it.
            ops.max(
                ops.tanh(convolution(x)[:, convolution.buffer_length :]), axis=1
            )
            for convolution in self.convolutions
        ]
        x = ops.concatenate(pooled, axis=-1)  # [B * T, F]
        for highway in self.highways:
            x = highway(x)
        if self.word_projection is not None:
            x = self.word_projection(x)
        return ops.reshape(x, (batch, length, x.shape[-1]))

    def initial_state(self, batch_size, max_length=None):
        """Zeros for each layer: its output and its memory."""
        units = self.config["units"]
        widths = (self.config["projection_dim"] or units, units)
        return [
            tuple(
                ops.zeros((batch_size, width), self.compute_dtype)
                for width in widths
            )
            for _ in self.recurrent_layers
        ]

    def advance(self, token_ids, state, training=None):
        x = self.words(token_ids)
        next_state = []
        for layer, layer_state in zip(
            self.recurrent_layers, state, strict=True
        ):
            x, *layer_state = layer(x, initial_state=list(layer_state))
            next_state.append(tuple(layer_state))
            x = self.dropout(x, training=training)
        return layers.logits(self.output_projection, x), next_state

    def step(self, token_ids, state):
        """One token through all layers."""
        logits, state = self.advance(token_ids[:, None], state)
        return logits[:, 0], state

    def call(self, token_ids, training=None):
        state = self.initial_state(ops.shape(token_ids)[0])
        logits, _ = self.advance(token_ids, state, training)
        return logits  # [B, T, V]

    def get_config(self):
        return {**super().get_config(), **self.config}


def _spelt_numbers(shape, dtype=None):
    """The last digits of each number, between the signs of `spell`."""
    size, width = shape
    num_digits = min(len(str(size - 1)), width - 2)
    powers = [10**place for place in reversed(range(num_digits))]
    numbers = ops.arange(size, dtype="int32")[:, None]
    digits = numbers // ops.convert_to_tensor(powers, "int32") % 10
    sign = ops.ones_like(numbers)
    spelt = ops.concatenate(
        [WORD_START * sign, 3 + ord("0") + digits, WORD_END * sign], axis=1
    )
    rest = width - 2 - num_digits
    return ops.cast(
        ops.pad(spelt, ((0, 0), (0, rest)), constant_values=PADDING), dtype
    )


def _embedding(character_dim, **policy):
    initializer = keras.initializers.RandomUniform(-0.5, 0.5)
    return keras.layers.Embedding(
        NUM_CHARACTERS, character_dim, initializer, name="embedding", **policy
    )


def _convolution(index, width, number, **policy):
    name = f"filter_{index}"  # Two may have one width.
    return layers.CausalConvolution(
        number, width, kernel_initializer="lecun_uniform", name=name, **policy
    )


def _lstm(units, projection_dim, name, dtype):
    options = {"return_sequences": True, "return_state": True}
    options |= {"name": name, "dtype": dtype}
    if projection_dim is None:
        return keras.layers.LSTM(units, **options)
    cell = layers.ProjectedLSTMCell(
        units, projection_dim, name="cell", dtype=dtype
    )
    return keras.layers.RNN(cell, **options)


def _check(filters, num_layers, max_word_length):
    if num_layers < 1 or not filters:
        raise ValueError(
            "`num_layers` must be at least 1, and there must be a filter. "
            f"Received: num_layers={num_layers}, filters={filters}"
        )
    widest = max(width for width, _ in filters)
    if widest > max_word_length + 2:
        raise ValueError(
            "A filter may be at most max_word_length + 2 = "
            f"{max_word_length + 2} characters wide. Received: {widest}"
        )
