"""Two bags of vectors: two texts are compared, and no word sees another."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import classifier
from keras_attention.tokens import PAD


@keras.saving.register_keras_serializable(package="keras_attention")
class BagOfVectorPairs(classifier.Classifier):
    """The baseline of words without order (Bowman et al. 2015, section 3).

    ```
    a = mean_i tanh(P E a_i + p)    b = mean_j tanh(P E b_j + p)
    z_0 = [a; b],  z_k = tanh(W_k z_{k-1} + b_k)       k = 1 ... num_layers
    p(label | texts) = softmax(W_s z + b_s)
    ```

    Each text becomes one vector before the model sees the other text.
    Decomposable attention compares words instead. `attend` returns equal
    weights.

    Deviations: the mean stands in place of the sum, so that the length of a
    text does not matter. END counts as a word. The embeddings are trained from
    the start, where the paper begins with those of GloVe. Dropout on each z is
    our choice.

    Args:
        vocabulary_size: words, or other tokens.
        num_classes: labels.
        embedding_dim: width of the embeddings.
        projection_dim: width of a text's vector.
        units: width of the layers above both vectors.
        num_layers: how many of them.
        dropout: rate.

    Reference: https://arxiv.org/abs/1508.05326 (Bowman et al. 2015)
    """

    sizes = {
        # 64 wide, without dropout: for the embedded corpus `multisets`.
        "mini": {
            "embedding_dim": 64,
            "projection_dim": 64,
            "units": 128,
            "num_layers": 2,
            "dropout": 0.0,
        },
        # 100 wide, with more dropout: for a few thousand pairs.
        "tiny": {"embedding_dim": 100, "projection_dim": 100, "dropout": 0.2},
        # The paper's widths (Bowman et al. 2015, section 3).
        "base": {},
    }
    maps = {
        "attention": ("source", "pair"),
        "attention_pair": ("pair", "source"),
    }

    text_names = ("source_ids", "pair_ids")

    def __init__(
        self,
        vocabulary_size,
        num_classes=3,
        embedding_dim=300,
        projection_dim=100,
        units=200,
        num_layers=3,
        dropout=0.1,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.config = {
            "vocabulary_size": vocabulary_size,
            "num_classes": num_classes,
            "embedding_dim": embedding_dim,
            "projection_dim": projection_dim,
            "units": units,
            "num_layers": num_layers,
            "dropout": dropout,
        }
        policy = {"dtype": self.dtype_policy}
        self.embedding = keras.layers.Embedding(
            vocabulary_size, embedding_dim, name="embedding", **policy
        )
        self.projection = keras.layers.Dense(
            projection_dim, activation="tanh", name="projection", **policy
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.hidden_layers = [
            keras.layers.Dense(
                units, activation="tanh", name=f"hidden_{index}", **policy
            )
            for index in range(num_layers)
        ]
        self.output_projection = keras.layers.Dense(
            num_classes, name="output_projection", **policy
        )

    def _mean(self, token_ids, other_ids):
        """A text's vector [B, P], and its weights [B, T, S] for the other."""
        mask = layers.padding_mask(token_ids, PAD)
        real = ops.cast(mask, "float32")
        weights = real / ops.maximum(ops.sum(real, axis=1, keepdims=True), 1)
        x = self.projection(self.embedding(token_ids))
        mean = layers.weighted_sum(weights[:, None], x)[:, 0]
        rows = ops.ones_like(other_ids, dtype="float32")[:, :, None]
        return mean, rows * weights[:, None]

    def attend(self, inputs, training=None):
        """Logits [B, C], and equal weights ([B, S, T], [B, T, S])."""
        source_ids, pair_ids = inputs["source_ids"], inputs["pair_ids"]
        source, of_source = self._mean(source_ids, pair_ids)
        pair, of_pair = self._mean(pair_ids, source_ids)
        x = ops.concatenate([source, pair], axis=-1)
        for layer in self.hidden_layers:
            x = self.dropout(layer(x), training=training)
        logits = ops.cast(self.output_projection(x), "float32")
        return logits, (of_pair, of_source)

    def get_config(self):
        return {**super().get_config(), **self.config}
