"""Structured RNNsearch: look up segments, chosen together."""

import keras

from keras_attention import layers
from keras_attention.models import rnnsearch


@keras.saving.register_keras_serializable(package="keras_attention")
class StructuredRNNSearch(rnnsearch.RNNSearch):
    """RNNsearch whose annotations are chosen by a chain (Kim et al. 2017).

    A softmax chooses one annotation. Here each annotation is chosen or not, and
    its neighbours have a say in it, so that a word of several letters can be
    looked up as one (sections 3.1 and 4.2):

    ```
    p(z | x, s_{i-1}) = softmax_z(sum_j e_ij z_j + sum_j theta(z_j, z_{j+1}))
    c_i               = sum_j p(z_j = 1 | x, s_{i-1}) h_j / gamma_i
    gamma_i           = sum_j p(z_j = 1 | x, s_{i-1})
    ```

    e_ij is RNNsearch's score, the `concat` of `StructuredAttention`. theta is
    its `pairwise`. All else is as in `RNNSearch`: the arguments, the sizes and
    the deviations.

    Deviations: the weights are divided by their sum, as a `Seq2Seq`'s sum to
    one. The paper's encoder and decoder are LSTMs.

    Args: see `RNNSearch`.

    Reference: https://arxiv.org/abs/1702.00887
    """

    def _make_attention(self, units, policy):
        attention = layers.StructuredAttention(
            "concat", normalized=True, units=units, name="attention", **policy
        )
        attention.build((None, None, units), (None, None, 2 * units))
        return attention
