"""Monotonic RNNsearch: look up by a cursor that never goes back."""

import keras
from keras import ops

from keras_attention import layers
from keras_attention.layers.monotonic_attention import SURE
from keras_attention.models import rnnsearch


@keras.saving.register_keras_serializable(package="keras_attention")
class MonotonicRNNSearch(rnnsearch.RNNSearch):
    """RNNsearch that reads on as it writes (Raffel et al. 2017).

    For each token, the cursor goes on from the annotation where it stopped for
    the token before. At each annotation it stops with probability p, or moves
    on (section 2; see `MonotonicAttention` for e):

    ```
    p_ij = sigmoid(e_ij + noise),  p_ij = 1 at END
    q_ij = (1 - p_{i,j-1}) q_{i,j-1} + a_{i-1,j}
    a_ij = p_ij q_ij
    c_i  = sum_j a_ij h_j
    ```

    Training sums over all ways of the cursor, with noise that makes it decide.
    Everything else takes p = 1 where e > 0, and p = 0 elsewhere: the search,
    scores, and the loss on validation data. Then c_i is one annotation. All
    else is as in `RNNSearch`: the other arguments, the sizes and the
    deviations.

    Deviation: the cursor always stops at END, so that the weights sum to one.
    In the paper it may pass the last annotation, and the context is 0. The
    encoder reads in both directions, as RNNsearch's does. So the decoder cannot
    write before it has the whole source.

    Args:
        vocabulary_size, source_vocabulary_size: see `RNNSearch`.
        embedding_dim, units, readout_dim, dropout: see `RNNSearch`.
        noise: standard deviation of the noise on e in training.
        offset: r of `MonotonicAttention` before training.

    Raises:
        ValueError: If `noise` is below 0.

    Reference: https://arxiv.org/abs/1704.00784
    """

    def __init__(self, *arguments, noise=1.0, offset=-1.0, **kwargs):
        self.noise = noise
        self.offset = offset
        super().__init__(*arguments, **kwargs)
        self.config |= {"noise": noise, "offset": offset}

    def _make_attention(self, units, policy):
        return layers.MonotonicAttention(
            units, self.noise, self.offset, name="attention", **policy
        )

    def encode(self, source_ids, training=None):
        """As `RNNSearch`, and which annotation is that of END."""
        memory = super().encode(source_ids, training)
        mask = memory["mask"]  # [B, S]
        lengths = ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True)
        is_last = ops.equal(ops.arange(ops.shape(mask)[1]) + 1, lengths)
        return {**memory, "is_last": is_last}

    def initial_state(self, memory, max_length=None):
        """s_0, and the cursor at the first annotation."""
        mask = memory["mask"]
        is_first = ops.equal(ops.arange(ops.shape(mask)[1]), 0)
        return {
            **super().initial_state(memory),
            "stopped": ops.zeros_like(mask, dtype="float32")
            + ops.cast(is_first, "float32"),  # [B, S]
        }

    def _advance(self, embedded, memory, state, noise=None):
        """With noise [B, S] for all ways of the cursor, without for one."""
        scores = self.attention.score(
            query=state["hidden"][:, None], projected_key=memory["keys"]
        )[:, 0]  # [B, S]
        if noise is None:
            scores = ops.where(scores > 0, SURE, -SURE)
        else:
            scores += ops.cast(noise, "float32")
        scores = ops.where(memory["is_last"], SURE, scores)
        scores = ops.where(memory["mask"], scores, -SURE)
        stopped = self.attention.stop(state["stopped"], scores)
        context = layers.weighted_sum(stopped[:, None], memory["annotations"])
        state = self._read(embedded, context[:, 0], state)
        return {**state, "stopped": stopped}, stopped

    def _unroll(self, embedded, memory, training):
        if not training:
            return super()._unroll(embedded, memory, training)
        width, length = embedded.shape[-1], ops.shape(memory["mask"])[1]
        # Drawn before the loop: on JAX, what a loop draws has no seed.
        noise = self.noise * keras.random.normal(
            (*ops.shape(embedded)[:2], length),
            dtype="float32",
            seed=self.attention.seed_generator,
        )
        # One tensor: of several of unknown length, TensorFlow makes no scan.
        inputs = ops.concatenate(
            [embedded, ops.cast(noise, embedded.dtype)], axis=-1
        )
        return layers.unroll(
            lambda x, state: self._advance(
                x[:, :width], memory, state, x[:, width:]
            )[0],
            self.initial_state(memory),
            inputs,
        )

    def _unroll_with_attention(self, embedded, memory, training):
        """In training, the weights are the chances of each place."""
        states = self._unroll(embedded, memory, training)
        return states, states["stopped"]
