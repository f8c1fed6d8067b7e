"""The Transformer's encoder as a classifier: words ask each other."""

import math

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import classifier
from keras_attention.tokens import PAD


@keras.saving.register_keras_serializable(package="keras_attention")
class EncoderClassifier(classifier.Classifier):
    """Layers of self-attention, then one linear layer (Vaswani et al. 2017).

    ```
    x^0 = sqrt(D) E w + position          Vaswani 3.4, 3.5
    x^l = layer(x^{l-1})                  Vaswani 3.1, l = 1 ... N
    y   = W LayerNorm(x^N)[answer] + b
    ```

    The output at one position gives the label, as at [CLS] in Devlin et al.
    2019. By default the position is that of END, behind the text. Without
    layers, a position knows nothing of the other words.

    | paper | here |
    |---|---|
    | N | `num_layers`; 0 for none |
    | d_model, d_ff | `hidden_dim`, `intermediate_dim` |
    | h | `num_heads` |
    | P_drop | `dropout` |

    Deviations: each sublayer is normalised first, and the stack once at the
    end, as in our `Transformer`. Embeddings start at half of 1/sqrt(d_model).
    Nothing is pre-trained.

    Args:
        vocabulary_size: words, or other tokens.
        num_classes: labels.
        num_layers: encoder layers.
        hidden_dim: width.
        intermediate_dim: width of the feed-forward networks.
        num_heads: heads; must divide `hidden_dim`.
        dropout: rate.
        answer_position: which position answers, counted from the end: -1 is
            END, -2 the last word. None takes the mean of all positions.

    Raises:
        ValueError: If `answer_position` is not negative.

    References: https://arxiv.org/abs/1706.03762 (Vaswani et al. 2017),
    https://arxiv.org/abs/1810.04805 (Devlin et al. 2019)
    """

    sizes = {
        # Two layers of one head, 64 wide: for the embedded `referents`.
        "mini": {
            "num_layers": 2,
            "hidden_dim": 64,
            "intermediate_dim": 128,
            "num_heads": 1,
            "dropout": 0.0,
        },
        # Two layers, 128 wide, their mean answers: for a few thousand texts.
        "tiny": {
            "num_layers": 2,
            "hidden_dim": 128,
            "intermediate_dim": 256,
            "num_heads": 4,
            "dropout": 0.3,
            "answer_position": None,
        },
        # The encoder of the paper's base model (Vaswani et al. 2017, table 3).
        "base": {},
    }
    maps = {"encoder": ("source", "source")}

    def __init__(
        self,
        vocabulary_size,
        num_classes=2,
        num_layers=6,
        hidden_dim=512,
        intermediate_dim=2048,
        num_heads=8,
        dropout=0.1,
        answer_position=-1,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if answer_position is not None and answer_position >= 0:
            raise ValueError(
                "`answer_position` must be negative, as it is counted from the "
                f"end, or None for the mean. Received: {answer_position}"
            )
        self.config = {
            "vocabulary_size": vocabulary_size,
            "num_classes": num_classes,
            "num_layers": num_layers,
            "hidden_dim": hidden_dim,
            "intermediate_dim": intermediate_dim,
            "num_heads": num_heads,
            "dropout": dropout,
            "answer_position": answer_position,
        }
        self.answer_position = answer_position
        self.num_heads = num_heads
        self.embedding_scale = math.sqrt(hidden_dim)
        policy = {"dtype": self.dtype_policy}
        initializer = keras.initializers.RandomNormal(
            stddev=0.5 * hidden_dim**-0.5
        )
        self.embedding = keras.layers.Embedding(
            vocabulary_size, hidden_dim, initializer, name="embedding", **policy
        )
        self.position_encoding = layers.PositionEncoding(
            name="position_encoding", **policy
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.encoder_layers = [
            layers.TransformerEncoderLayer(
                num_heads,
                intermediate_dim,
                dropout,
                norm_first=True,
                name=f"encoder_{index}",
                **policy,
            )
            for index in range(num_layers)
        ]
        self.norm = keras.layers.LayerNormalization(
            epsilon=1e-6, name="norm", **policy
        )
        self.output_projection = keras.layers.Dense(
            num_classes, name="output_projection", **policy
        )

    def _answer_weights(self, mask):
        """Which positions answer: float32 [B, S], whose rows sum to 1."""
        real = ops.cast(mask, "float32")
        lengths = ops.sum(real, axis=1, keepdims=True)
        if self.answer_position is None:
            return real / ops.maximum(lengths, 1)
        # A text that is too short answers at its first position.
        answer = ops.maximum(lengths + self.answer_position, 0)
        positions = ops.arange(mask.shape[1] or ops.shape(mask)[1])
        positions = ops.cast(positions, "float32")[None]
        return ops.cast(ops.equal(positions, answer), "float32")

    def attend(self, inputs, training=None):
        """Logits [B, C], and the weights of each layer [B, N, H, S, S]."""
        token_ids = inputs["source_ids"]
        mask = layers.padding_mask(token_ids, PAD)  # [B, S]
        x = self.embedding(token_ids) * self.embedding_scale
        x = self.dropout(self.position_encoding(x), training=training)
        of_layers = []
        for layer in self.encoder_layers:
            x, weights = layer(x, padding_mask=mask, training=training)
            of_layers.append(weights)  # [B, H, S, S]
        answer = layers.weighted_sum(
            self._answer_weights(mask)[:, None], self.norm(x)
        )[:, 0]
        logits = ops.cast(self.output_projection(answer), "float32")
        if of_layers:
            return logits, ops.stack(of_layers, axis=1)
        batch_size, length = ops.shape(token_ids)
        shape = (batch_size, 0, self.num_heads, length, length)
        return logits, ops.zeros(shape)

    def get_config(self):
        return {**super().get_config(), **self.config}
