"""The recurrent language model: one state says what comes next."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import language_model

# The name of a recurrent cell -> the Keras layer that runs it over a text.
CELLS = {
    "rnn": keras.layers.SimpleRNN,
    "gru": keras.layers.GRU,
    "lstm": keras.layers.LSTM,
}
# Cells whose name ends in a number, such as the rank in "factorized_lstm_64".
NUMBERED_CELLS = {
    "factorized_lstm": layers.FactorizedLSTMCell,
    "group_lstm": layers.GroupLSTMCell,
}


@keras.saving.register_keras_serializable(package="keras_attention")
class RNNLanguageModel(language_model.LanguageModel):
    """A language model of stacked recurrent layers.

    Mikolov et al. 2010 introduced it with one simple layer. Zaremba et al.
    2014 stack LSTMs. Their dropout (D) acts on what passes between layers, and
    never on what passes in time:

    ```
    h^0_t    = E x_t                            embedding
    h^l_t    = cell(D(h^{l-1}_t), h^l_{t-1})    Zaremba 3.2, l = 1 ... L
    p(x_t+1) = softmax(W D(h^L_t) + b)

    "rnn"    h_t = tanh(W x_t + U h_{t-1} + b)  Mikolov 2010, section 2
    "lstm"   i, f, g, o = W x_t + U h_{t-1} + b Zaremba 3.1
             c_t = sigm(f) * c_{t-1} + sigm(i) * tanh(g)
             h_t = sigm(o) * tanh(c_t)
    "gru"    z, r = sigm(W x_t + b + U h_{t-1} + d)     Cho et al. 2014
             n_t = tanh(W_n x_t + b_n + r * (U_n h_{t-1} + d_n))
             h_t = z * h_{t-1} + (1 - z) * n_t
    ```

    Two kinds of LSTM have fewer weights (Kuchaiev & Ginsburg 2017):
    "factorized_lstm_64" is a `layers.FactorizedLSTMCell` of rank 64, and
    "group_lstm_4" a `layers.GroupLSTMCell` of four groups. Neither has a
    projection here.

    | paper | here |
    |---|---|
    | L, layers | `num_layers` |
    | n, units of a layer; Mikolov: size of the hidden layer | `units` |
    | D, its rate | `dropout` |

    Deviations: `call` starts from a state of zeros, where the papers go on
    from the text before it. `advance` goes on from any state. The initial
    weights are Keras's, where the papers' are uniform, and the bias of the
    forget gates is 1 at first. The simple cell has tanh, where Mikolov has the
    logistic function. Each word has its own output, where Mikolov has one class
    for all rare words. In the GRU, r multiplies U_n h_{t-1} + d_n, as cuDNN has
    it, and not h_{t-1}.

    Args:
        vocabulary_size: words, or other tokens.
        embedding_dim: width of the embeddings.
        units: width of every recurrent layer.
        num_layers: recurrent layers.
        cell: "lstm", "gru", "rnn", "factorized_lstm_RANK" or
            "group_lstm_GROUPS", with a number at the end.
        dropout: rate.
        embedding_dropout: rate on the words h^0 alone; by default `dropout`.
            With 0, dropout acts on the outputs of layers only, as in the
            LSTM-Word-Small of Kim et al. 2016.
        tied: whether W is the matrix of the embeddings, turned round, and b
            is missing (Press & Wolf 2017, https://arxiv.org/abs/1608.05859).
            `embedding_dim` is then equal to `units`.

    Raises:
        ValueError: If `cell` is another one, if there is no
            layer, if `tied` meets two widths, or if groups do not divide
            `units` and `embedding_dim`.

    References: Mikolov et al. 2010, Recurrent neural network based language
    model, Interspeech; https://arxiv.org/abs/1409.2329 (Zaremba et al. 2014);
    https://arxiv.org/abs/1703.10722 (Kuchaiev & Ginsburg 2017);
    https://arxiv.org/abs/1508.06615 (Kim et al. 2016)
    """

    sizes = {
        # One GRU, 128 wide: learns `sentences` in a minute or two on two cores.
        "mini": {
            "embedding_dim": 64,
            "units": 128,
            "num_layers": 1,
            "cell": "gru",
            "dropout": 0.1,
        },
        # Two LSTMs, 256 wide, with dropout: for small data.
        "tiny": {"embedding_dim": 256, "units": 256, "dropout": 0.3},
        # The paper's model without dropout (Zaremba et al. 2014, section 4.1).
        "small": {"embedding_dim": 200, "units": 200, "dropout": 0.0},
        # The paper's medium model (Zaremba et al. 2014, section 4.1).
        "medium": {},
        # The paper's large model (Zaremba et al. 2014, section 4.1).
        "large": {"embedding_dim": 1500, "units": 1500, "dropout": 0.65},
    }

    def __init__(
        self,
        vocabulary_size,
        embedding_dim=650,
        units=650,
        num_layers=2,
        cell="lstm",
        dropout=0.5,
        tied=False,
        embedding_dropout=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        _check(embedding_dim, units, num_layers, cell, tied)
        self.config = {
            "vocabulary_size": vocabulary_size,
            "embedding_dim": embedding_dim,
            "units": units,
            "num_layers": num_layers,
            "cell": cell,
            "dropout": dropout,
            "tied": tied,
            "embedding_dropout": embedding_dropout,
        }
        policy = {"dtype": self.dtype_policy}
        self.embedding = keras.layers.ReversibleEmbedding(
            vocabulary_size, embedding_dim, name="embedding", **policy
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.embedding_dropout = None
        if embedding_dropout is not None:
            self.embedding_dropout = keras.layers.Dropout(
                embedding_dropout, name="embedding_dropout", **policy
            )
        self.recurrent_layers = [
            _recurrent_layer(
                cell,
                units,
                return_sequences=True,
                return_state=True,
                name=f"{cell}_{index}",
                **policy,
            )
            for index in range(num_layers)
        ]
        self.output_projection = None
        if not tied:
            self.output_projection = keras.layers.Dense(
                vocabulary_size, name="output_projection", **policy
            )

    def initial_state(self, batch_size, max_length=None):
        """Zeros for each layer: h, and c of an LSTM."""
        tensors = 2 if "lstm" in self.config["cell"] else 1
        shape = (batch_size, self.config["units"])
        return [
            tuple(ops.zeros(shape, self.compute_dtype) for _ in range(tensors))
            for _ in self.recurrent_layers
        ]

    def advance(self, token_ids, state, training=None):
        x = self.embedding(token_ids)  # [B, T, E]
        next_state = []
        dropout = self.embedding_dropout or self.dropout
        for layer, layer_state in zip(
            self.recurrent_layers, state, strict=True
        ):
            x = dropout(x, training=training)
            x, *layer_state = layer(x, initial_state=list(layer_state))
            next_state.append(tuple(layer_state))
            dropout = self.dropout
        x = self.dropout(x, training=training)
        output = self.output_projection
        if output is None:
            output = self.embedding
        return layers.logits(output, x), next_state

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


def _recurrent_layer(cell, units, **options):
    """The layer that runs a cell over a text, by the cell's name."""
    if cell in CELLS:
        return CELLS[cell](units, **options)
    kind, number = cell.rsplit("_", 1)
    cell_class = NUMBERED_CELLS[kind]
    return keras.layers.RNN(
        cell_class(units, int(number), dtype=options["dtype"]), **options
    )


def _check(embedding_dim, units, num_layers, cell, tied):
    kind, _, number = cell.rpartition("_")
    if cell not in CELLS and not (
        kind in NUMBERED_CELLS and number.isdecimal()
    ):
        raise ValueError(
            f"`cell` must be one of {', '.join(CELLS)}, factorized_lstm_RANK, "
            "group_lstm_GROUPS, with a number at the end of these two, such "
            f"as group_lstm_4. Received: cell={cell!r}"
        )
    if num_layers < 1:
        raise ValueError(
            "`num_layers` must be at least 1. "
            f"Received: num_layers={num_layers}"
        )
    if tied and embedding_dim != units:
        raise ValueError(
            "`tied=True` needs embedding_dim equal to units: the last layer's "
            "output meets the embeddings. Received: "
            f"embedding_dim={embedding_dim}, units={units}"
        )
