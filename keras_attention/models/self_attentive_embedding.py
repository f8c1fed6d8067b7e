"""The structured self-attentive embedding: a text as a matrix."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import classifier
from keras_attention.tokens import PAD


@keras.saving.register_keras_serializable(package="keras_attention")
class SelfAttentiveEmbedding(classifier.Classifier):
    """A sentence embedding of several hops (Lin et al. 2017, section 2).

    ```
    H = (h_1, ..., h_n)                  h_t of an LSTM of each direction
    A = softmax(W_s2 tanh(W_s1 H^T))     equation 6, softmax over the words
    M = A H                              equation 7
    P = ||A A^T - I||_F^2                equation 8, the penalty
    y = W_2 relu(W_1 vec(M) + b_1) + b_2
    ```

    In training, the model adds a loss of its own (`add_loss`): the mean of P
    over the batch, times `penalty`. It drives the hops apart.

    | paper | here |
    |---|---|
    | u, units of an LSTM | `units` |
    | d_a | `attention_units` |
    | r, hops | `num_hops` |
    | W_s1, W_s2 | `attention_hidden`, `attention_scores`, without bias |
    | coefficient of P | `penalty`; 1 in sections 4.1 and 4.2, 0.3 in 4.3 |

    Deviations: the embeddings are trained from the start, where the paper
    begins with those of word2vec (4.2). Dropout acts on the embeddings too,
    where the paper has it on the layers above M alone (4.1). There is no L2
    penalty. The paper's option to prune W_1 is left out.

    Args:
        vocabulary_size: words, or other tokens.
        num_classes: labels.
        embedding_dim: width of the embeddings.
        units: of the LSTM of each direction.
        attention_units: width of the hidden layer behind A.
        num_hops: rows of A.
        hidden_dim: width of the layer above M.
        penalty: coefficient of P.
        dropout: rate.

    Reference: https://arxiv.org/abs/1703.03130 (Lin et al. 2017)
    """

    sizes = {
        # Two hops, 32 wide, without dropout: for the embedded `colours`.
        "mini": {
            "embedding_dim": 32,
            "units": 32,
            "attention_units": 32,
            "num_hops": 2,
            "hidden_dim": 64,
            "dropout": 0.0,
        },
        # Four hops, 64 wide: for a few thousand texts.
        "tiny": {
            "units": 64,
            "attention_units": 64,
            "num_hops": 4,
            "hidden_dim": 128,
        },
        # The paper's size for reviews (Lin et al. 2017, sections 4.1 and 4.2).
        "base": {},
    }
    maps = {"hops": ("hops", "source")}

    def __init__(
        self,
        vocabulary_size,
        num_classes=2,
        embedding_dim=100,
        units=300,
        attention_units=350,
        num_hops=30,
        hidden_dim=3000,
        penalty=1.0,
        dropout=0.5,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.config = {
            "vocabulary_size": vocabulary_size,
            "num_classes": num_classes,
            "embedding_dim": embedding_dim,
            "units": units,
            "attention_units": attention_units,
            "num_hops": num_hops,
            "hidden_dim": hidden_dim,
            "penalty": penalty,
            "dropout": dropout,
        }
        self.num_hops, self.penalty = num_hops, penalty
        policy = {"dtype": self.dtype_policy}
        self.embedding = keras.layers.Embedding(
            vocabulary_size, embedding_dim, name="embedding", **policy
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.recurrence = keras.layers.Bidirectional(
            keras.layers.LSTM(
                units, return_sequences=True, name="lstm", **policy
            ),
            name="recurrence",
            **policy,
        )
        self.attention_hidden = keras.layers.Dense(
            attention_units,
            activation="tanh",
            use_bias=False,
            name="attention_hidden",
            **policy,
        )
        self.attention_scores = keras.layers.Dense(
            num_hops, use_bias=False, name="attention_scores", **policy
        )
        self.hidden = keras.layers.Dense(
            hidden_dim, activation="relu", name="hidden", **policy
        )
        self.output_projection = keras.layers.Dense(
            num_classes, name="output_projection", **policy
        )

    def attend(self, inputs, training=None):
        """Logits [B, C], and A [B, R, S], a row for each hop."""
        token_ids = inputs["source_ids"]
        mask = layers.padding_mask(token_ids, PAD)  # [B, S]
        x = self.dropout(self.embedding(token_ids), training=training)
        h = self.recurrence(x, mask=mask)  # [B, S, 2U]
        scores = self.attention_scores(self.attention_hidden(h))  # [B, S, R]
        weights = layers.masked_softmax(
            ops.swapaxes(scores, 1, 2), mask[:, None]
        )
        m = layers.weighted_sum(weights, h)  # [B, R, 2U]
        x = ops.reshape(m, (-1, m.shape[1] * m.shape[2]))
        x = self.hidden(self.dropout(x, training=training))
        x = self.output_projection(self.dropout(x, training=training))
        return ops.cast(x, "float32"), weights

    def call(self, inputs, training=None):
        logits, weights = self.attend(inputs, training=training)
        if training and self.penalty:
            self.add_loss(self.penalty * ops.mean(redundancy(weights)))
        return logits

    def get_config(self):
        return {**super().get_config(), **self.config}


def redundancy(weights):
    """P = ||A A^T - I||_F^2 of each text (Lin et al. 2017, equation 8).

    It is 0 where each hop puts all its weight on a token of its own.

    Args:
        weights: A [B, R, S].

    Returns:
        [B].
    """
    products = ops.matmul(weights, ops.swapaxes(weights, 1, 2))
    difference = products - ops.eye(weights.shape[1], dtype=weights.dtype)
    return ops.sum(ops.square(difference), axis=(1, 2))
