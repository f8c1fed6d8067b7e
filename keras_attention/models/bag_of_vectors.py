"""The bag of vectors: what a text says if its order does not count."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import classifier
from keras_attention.tokens import PAD


@keras.saving.register_keras_serializable(package="keras_attention")
class BagOfVectors(classifier.Classifier):
    """A deep averaging network (Iyyer et al. 2015, section 3).

    ```
    av = sum_w r_w E_w / sum_w r_w     r_w ~ Bernoulli(1 - p)   word dropout
    z_1 = f(W_1 av + b_1), z_i = f(W_i z_{i-1} + b_i)
    p(label | text) = softmax(W_s z_n + b_s)
    ```

    The mean is an attention whose weights are all equal: `attend` returns
    them.

    | paper | here |
    |---|---|
    | E_w | `embedding` |
    | n - 1 feed-forward layers | `num_layers`, each `units` wide |
    | f | the rectifier |
    | p | `word_dropout`; 0.3 in the paper |

    Deviations: END counts as a word, so that a blank text has a mean. A text
    that loses all its words has the mean 0, where the authors' code keeps them
    all. The embeddings are not pre-trained. Dropout acts on each z. There is no
    L2 penalty.

    Args:
        vocabulary_size: words, or other tokens.
        num_classes: labels.
        embedding_dim: width of the embeddings.
        units: width of the feed-forward layers.
        num_layers: feed-forward layers; without one the model is linear.
        word_dropout: rate of words that are left out of the mean.
        dropout: rate on the outputs of the feed-forward layers.

    Reference: Iyyer et al. 2015, Deep Unordered Composition Rivals Syntactic
    Methods for Text Classification, ACL, https://aclanthology.org/P15-1162
    """

    sizes = {
        # 64 wide, without dropout: for the embedded corpora.
        "mini": {
            "embedding_dim": 64,
            "units": 64,
            "num_layers": 1,
            "word_dropout": 0.0,
        },
        # 100 wide, with word dropout: for a few thousand texts.
        "tiny": {"embedding_dim": 100, "units": 100, "num_layers": 1},
        # Three layers, 300 wide: the defaults of the authors' code.
        # https://github.com/miyyer/dan
        "base": {},
    }
    maps = {"hops": ("hops", "source")}

    def __init__(
        self,
        vocabulary_size,
        num_classes=2,
        embedding_dim=300,
        units=300,
        num_layers=3,
        word_dropout=0.3,
        dropout=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.config = {
            "vocabulary_size": vocabulary_size,
            "num_classes": num_classes,
            "embedding_dim": embedding_dim,
            "units": units,
            "num_layers": num_layers,
            "word_dropout": word_dropout,
            "dropout": dropout,
        }
        policy = {"dtype": self.dtype_policy}
        self.embedding = keras.layers.Embedding(
            vocabulary_size, embedding_dim, name="embedding", **policy
        )
        self.word_dropout = keras.layers.Dropout(
            word_dropout, dtype="float32", name="word_dropout"
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)
        self.hidden_layers = [
            keras.layers.Dense(
                units, activation="relu", name=f"hidden_{index}", **policy
            )
            for index in range(num_layers)
        ]
        self.output_projection = keras.layers.Dense(
            num_classes, name="output_projection", **policy
        )

    def attend(self, inputs, training=None):
        """Logits [B, C], and equal weights of all words [B, 1, S]."""
        token_ids = inputs["source_ids"]
        mask = layers.padding_mask(token_ids, PAD)  # [B, S]
        words = self.word_dropout(ops.cast(mask, "float32"), training=training)
        num_words = ops.sum(words, axis=1, keepdims=True)
        weights = (words / ops.maximum(num_words, 1e-6))[:, None]  # [B, 1, S]
        x = layers.weighted_sum(weights, self.embedding(token_ids))[:, 0]
        for layer in self.hidden_layers:
            x = self.dropout(layer(x), training=training)
        return ops.cast(self.output_projection(x), "float32"), weights

    def get_config(self):
        return {**super().get_config(), **self.config}
