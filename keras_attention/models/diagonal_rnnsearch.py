"""Diagonal RNNsearch: look along a line that nobody learned."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.models import rnnsearch


@keras.saving.register_keras_serializable(package="keras_attention")
class DiagonalRNNSearch(rnnsearch.RNNSearch):
    """RNNsearch that does not search: a cursor moves at one speed.

    What Bahdanau tried in 2014 before RNNsearch, by his own account (it is not
    in the paper). The context of token i is one annotation:

    ```
    c_i = h_j  with  j = min(floor(ratio i + 1/2), S - 1)
    ```

    It is the baseline of every attention that is learned. Each annotation has
    seen the whole source, so that a neighbour's can do, too. All else is as in
    `RNNSearch`: the other arguments, the sizes and the deviations.

    Args:
        vocabulary_size, source_vocabulary_size: see `RNNSearch`.
        embedding_dim, units, readout_dim, dropout: see `RNNSearch`.
        ratio: how many source tokens the cursor passes for each token.

    Raises:
        ValueError: If `ratio` is not positive.

    Reference: https://arxiv.org/abs/1409.0473
    """

    def __init__(self, *arguments, ratio=1.0, **kwargs):
        self.ratio = ratio
        super().__init__(*arguments, **kwargs)
        self.config["ratio"] = ratio

    def _make_attention(self, units, policy):
        return layers.DiagonalAttention(self.ratio, name="attention", **policy)

    def initial_state(self, memory, max_length=None):
        """s_0, and the cursor at the first place."""
        state = super().initial_state(memory)
        position = ops.zeros_like(memory["mask"][:, 0], dtype="int32")
        return {**state, "position": position}

    def _advance(self, embedded, memory, state):
        context, attention_weights = self.attention.attend(
            query=state["hidden"][:, None],
            projected_key=memory["keys"],
            value=memory["annotations"],
            padding_mask=memory["mask"],
            # All rows are at one position; the sum lets a batch be empty.
            start=ops.sum(state["position"][:1]),
        )  # [B, 1, 2 units], [B, 1, S]
        position = state["position"] + 1
        state = self._read(embedded, context[:, 0], state)
        return {**state, "position": position}, attention_weights[:, 0]
