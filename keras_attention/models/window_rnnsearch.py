"""Window RNNsearch: look through a window that glides along the source."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import rnnsearch


@keras.saving.register_keras_serializable(package="keras_attention")
class WindowRNNSearch(rnnsearch.RNNSearch):
    """RNNsearch that reads through Graves's window (Graves 2013).

    The decoder's state says how far K Gaussians glide on, how high and how
    narrow they are (section 5.1; equations 46 to 51):

    ```
    (a_i, b_i, k_i) = W s_{i-1} + b
    kappa_i  = kappa_{i-1} + exp(k_i),  kappa_0 = -1
    phi(i, j) = sum_K exp(a_i) exp(-exp(b_i) (kappa_i - j)^2)
    c_i      = sum_j phi(i, j) h_j
    ```

    | paper | here |
    |---|---|
    | K | `num_components` |
    | h_t, c_u, w_t | s_{i-1}, h_j, c_i |
    | kappa_t | `places` in the state of `step` |

    No annotation has a say in where the window goes. The largest weight of one
    Gaussian never goes back, and that of several may. All else is as in
    `RNNSearch`: the other arguments, the sizes and the deviations.

    Deviations: the window reads annotations that have seen the whole source.
    The paper's reads bare characters, and three LSTMs write by hand. K is 1 by
    default; the paper has 10. Places count from 0. As in the paper, phi need
    not sum to one, and c_i is 0 behind the source. The weights that the model
    tells are phi(i, j) / sum_j phi(i, j), as a `Seq2Seq`'s sum to one.

    Args:
        vocabulary_size, source_vocabulary_size: see `RNNSearch`.
        embedding_dim, units, readout_dim, dropout: see `RNNSearch`.
        num_components: K, the Gaussians.
        step_size: how many source tokens an untrained window passes for each
            token, about.

    Raises:
        ValueError: If `num_components` or `step_size` is not positive.

    Reference: https://arxiv.org/abs/1308.0850
    """

    def __init__(self, *arguments, num_components=1, step_size=1.0, **kwargs):
        self.num_components = num_components
        self.step_size = step_size
        super().__init__(*arguments, **kwargs)
        self.config |= {
            "num_components": num_components,
            "step_size": step_size,
        }

    def _make_attention(self, units, policy):
        return layers.GaussianWindow(
            self.num_components, self.step_size, name="attention", **policy
        )

    def initial_state(self, memory, max_length=None):
        """s_0, and all Gaussians one place before the first annotation."""
        first = ops.zeros_like(memory["mask"][:, :1], dtype="float32")
        places = ops.repeat(first - 1.0, self.num_components, axis=1)
        return {**super().initial_state(memory), "places": places}  # [B, K]

    def _advance(self, embedded, memory, state):
        query = state["hidden"][:, None]
        places = self.attention.places(query, state["places"])  # [B, 1, K]
        looked_up = {"projected_key": memory["keys"], "places": places}
        context, _ = self.attention.attend(
            query=query,
            value=memory["annotations"],
            padding_mask=memory["mask"],
            **looked_up,
        )  # [B, 1, 2 units]
        # By logarithms: behind the source, all of phi may be 0.
        scores = self.attention.score(query=query, **looked_up)
        attention_weights = layers.masked_softmax(scores[:, 0], memory["mask"])
        state = self._read(embedded, context[:, 0], state)
        return {**state, "places": places[:, 0]}, attention_weights
