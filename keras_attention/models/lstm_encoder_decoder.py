"""Sequence to sequence learning with stacked LSTMs."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import seq2seq
from keras_attention.tokens import PAD


@keras.saving.register_keras_serializable(package="keras_attention")
class LSTMEncoderDecoder(seq2seq.Seq2Seq):
    """Sutskever's encoder-decoder: the last states are handed over.

    Sutskever et al. 2014, sections 2 and 3:

    ```
    (h, c)_T = stacked LSTM over the reversed source       3.3
    h_t      = stacked LSTM(E y_{t-1}, h_{t-1}), from h_T
    p(y_t)   = softmax(W h_t)
    ```

    Attention is the fixed answer "the last word read", the first of the
    sentence (END if `reverse_source` is False): the weights that `step`
    returns are 1 there.

    Deviations: END is read first rather than not at all; dropout (none in
    the paper) on embeddings, between the layers and before the softmax.

    Args:
        vocabulary_size: target (or joint) vocabulary.
        source_vocabulary_size: that of the source; by default the same
            size. The two embeddings are always two matrices.
        embedding_dim: width of the embeddings.
        units: width of every LSTM.
        num_layers: LSTMs in encoder and decoder.
        reverse_source: whether the source is read backwards (3.3).
        dropout: rate.

    Raises:
        ValueError: If there is no layer.

    Reference: https://arxiv.org/abs/1409.3215
    """

    sizes = {
        # Like `tiny`, for a small vocabulary and data without noise.
        "mini": {
            "embedding_dim": 128,
            "units": 256,
            "num_layers": 2,
            "dropout": 0.1,
        },
        # Two layers, 256 wide: for small data and two cores.
        "tiny": {
            "embedding_dim": 256,
            "units": 256,
            "num_layers": 2,
            "dropout": 0.3,
        },
        # The paper's size (Sutskever et al. 2014, section 3.4).
        "base": {},
    }
    # Those of a `RNNLanguageModel` of LSTMs.
    language_model_names = {
        "embedding/": "target_embedding/",
        "lstm_": "decoder_",
    }

    def __init__(
        self,
        vocabulary_size,
        source_vocabulary_size=None,
        embedding_dim=1000,
        units=1000,
        num_layers=4,
        reverse_source=True,
        dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._check_layers(num_layers)
        self.config = {
            "vocabulary_size": vocabulary_size,
            "source_vocabulary_size": source_vocabulary_size,
            "embedding_dim": embedding_dim,
            "units": units,
            "num_layers": num_layers,
            "reverse_source": reverse_source,
            "dropout": dropout,
        }
        self.reverse_source = reverse_source
        policy = {"dtype": self.dtype_policy}
        self.source_embedding, self.target_embedding = self._two_embeddings(
            vocabulary_size, source_vocabulary_size, embedding_dim, **policy
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)

        def stack(name):
            return [
                keras.layers.LSTM(
                    units,
                    return_sequences=True,
                    return_state=True,
                    name=f"{name}_{index}",
                    **policy,
                )
                for index in range(num_layers)
            ]

        self.encoder = stack("encoder")
        self.decoder = stack("decoder")
        self.output_projection = keras.layers.Dense(
            vocabulary_size, name="output_projection", **policy
        )

    def encode(self, source_ids, training=None):
        """The last states of all layers, and the word read last."""
        mask = layers.padding_mask(source_ids, PAD)  # [B, S]
        # A step says where it looks. Without attention it is the word whose
        # state the decoder got: the one that the encoder has read last.
        last = ops.sum(ops.cast(mask, "int32"), axis=1) - 1
        x = self.source_embedding(source_ids)
        if self.reverse_source:
            x = layers.reverse_sequences(x, mask)
            last = ops.zeros_like(last)
        last_states = []
        for layer in self.encoder:
            x = self.dropout(x, training=training)
            x, hidden, cell = layer(x, mask=mask)
            last_states.append((hidden, cell))
        return {
            "last_states": last_states,
            "attention_weights": ops.one_hot(last, ops.shape(mask)[1]),
        }

    def initial_state(self, memory, max_length=None):
        """The encoder's last states."""
        return {"layers": memory["last_states"]}

    def _decode(self, target_ids, states, training=None):
        x = self.target_embedding(target_ids)  # [B, T, E]
        next_states = []
        for layer, state in zip(self.decoder, states, strict=True):
            x = self.dropout(x, training=training)
            x, hidden, cell = layer(x, initial_state=list(state))
            next_states.append((hidden, cell))
        x = self.dropout(x, training=training)
        return layers.logits(self.output_projection, x), next_states

    def step(self, token_ids, memory, state):
        """One token through the stacked LSTM."""
        logits, states = self._decode(token_ids[:, None], state["layers"])
        return logits[:, 0], {"layers": states}, memory["attention_weights"]

    def call(self, inputs, training=None):
        memory = self.encode(inputs["source_ids"], training)
        logits, _ = self._decode(
            inputs["target_ids"], memory["last_states"], training
        )
        return logits  # [B, T, V]

    def get_config(self):
        return {**super().get_config(), **self.config}
