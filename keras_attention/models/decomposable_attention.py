"""Decomposable attention: two texts compared word by word."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import classifier
from keras_attention.tokens import PAD


@keras.saving.register_keras_serializable(package="keras_attention")
class DecomposableAttention(classifier.Classifier):
    """Attend, compare, aggregate (Parikh et al. 2016, section 3).

    ```
    e_ij    = F(a_i)^T F(b_j)                                    equation 1
    beta_i  = sum_j softmax_j(e_ij) b_j
    alpha_j = sum_i softmax_i(e_ij) a_i                          equation 2
    v_1,i   = G([a_i; beta_i]),  v_2,j = G([b_j; alpha_j])       equation 3
    v_1     = sum_i v_1,i,  v_2 = sum_j v_2,j               equations 4, 5
    y       = H([v_1; v_2])
    ```

    No position enters: the order of the words changes nothing. With F = 0 all
    weights are equal, and beta is the bag of vectors of b.

    | paper | here |
    |---|---|
    | a, the premise; b, the hypothesis | `source_ids`, `pair_ids` |
    | F, G, H | `attend_layers`, `compare_layers`, `aggregate_layers` |
    | the projection of the embeddings to d = 200 | `projection`, without bias |
    | NULL, which a word without a partner is aligned to | END |

    Deviations: the embeddings are trained from the start, where the paper has
    fixed ones of length 1. The paper's optional intra-sentence attention (3.4)
    is left out.

    Args:
        vocabulary_size: words, or other tokens.
        num_classes: labels.
        embedding_dim: width of the embeddings.
        units: d, the width of everything else.
        dropout: rate on the input of each layer of F, G and H.

    Reference: https://arxiv.org/abs/1606.01933 (Parikh et al. 2016)
    """

    sizes = {
        # 64 wide, without dropout: for the embedded corpus `multisets`.
        "mini": {"embedding_dim": 64, "units": 64, "dropout": 0.0},
        # 100 wide: for a few thousand pairs.
        "tiny": {"embedding_dim": 100, "units": 100},
        # The paper's size, which has 381,803 parameters beside the embeddings.
        # The paper writes 382K (Parikh et al. 2016, table 1).
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
        units=200,
        dropout=0.2,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.config = {
            "vocabulary_size": vocabulary_size,
            "num_classes": num_classes,
            "embedding_dim": embedding_dim,
            "units": units,
            "dropout": dropout,
        }
        policy = {"dtype": self.dtype_policy}
        self.embedding = keras.layers.Embedding(
            vocabulary_size, embedding_dim, name="embedding", **policy
        )
        self.projection = keras.layers.Dense(
            units, use_bias=False, name="projection", **policy
        )
        self.dropout = keras.layers.Dropout(dropout, name="dropout", **policy)

        def two_layers(name):
            return [
                keras.layers.Dense(
                    units, activation="relu", name=f"{name}_{index}", **policy
                )
                for index in range(2)
            ]

        self.attend_layers = two_layers("attend")
        self.compare_layers = two_layers("compare")
        self.aggregate_layers = two_layers("aggregate")
        self.output_projection = keras.layers.Dense(
            num_classes, name="output_projection", **policy
        )

    def _through(self, two_layers, x, training):
        for layer in two_layers:
            x = layer(self.dropout(x, training=training))
        return x

    def _compare(self, x, context, mask, training):
        """v = sum_i G([x_i; context_i]) over the real words: [B, D]."""
        x = ops.concatenate([x, context], axis=-1)
        x = self._through(self.compare_layers, x, training)
        return ops.sum(x * ops.cast(mask, x.dtype)[:, :, None], axis=1)

    def attend(self, inputs, training=None):
        """Logits [B, C], and the weights of b ([B, S, T]) and a ([B, T, S])."""
        a_mask = layers.padding_mask(inputs["source_ids"], PAD)  # [B, S]
        b_mask = layers.padding_mask(inputs["pair_ids"], PAD)  # [B, T]
        a = self.projection(self.embedding(inputs["source_ids"]))
        b = self.projection(self.embedding(inputs["pair_ids"]))
        scores = ops.matmul(
            self._through(self.attend_layers, a, training),
            ops.swapaxes(self._through(self.attend_layers, b, training), 1, 2),
        )  # [B, S, T]
        of_b = layers.masked_softmax(scores, b_mask[:, None])
        of_a = layers.masked_softmax(
            ops.swapaxes(scores, 1, 2), a_mask[:, None]
        )
        beta, alpha = layers.weighted_sum(of_b, b), layers.weighted_sum(of_a, a)
        v_1 = self._compare(a, beta, a_mask, training)
        v_2 = self._compare(b, alpha, b_mask, training)
        v = ops.concatenate([v_1, v_2], axis=-1)
        y = self._through(self.aggregate_layers, v, training)
        return ops.cast(self.output_projection(y), "float32"), (of_b, of_a)

    def get_config(self):
        return {**super().get_config(), **self.config}
