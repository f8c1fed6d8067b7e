"""What a layer of positions may change in an attention."""

import math

import keras
from keras import ops

from keras_attention.layers import attention


class Positions(keras.layers.Layer):
    """Positions inside of an attention: abstract.

    ```
    e_ts = R_t(q_t) . R_s(k_s) / sqrt(d_k) + bias_ts
    a_ts = softmax_s(e_ts)
    c_t  = sum_s a_ts v_s + added_t
    ```

    A subclass overrides what it changes. `rotate` is R, `bias` the term of
    the scores, and `added_context` that of the context. `MultiHeadAttention`
    builds the layer and calls its methods, for a whole sequence and for one
    step with a cache. The cache holds keys that are rotated already. Each
    attention needs a layer of its own.

    A subclass that overrides `rotate` alone sets `only_rotates`.
    """

    only_rotates = False

    def build(self, heads_shape):
        """`heads_shape` is [B, H, T, key_dim], only H and key_dim known."""

    def rotate(self, heads, positions):
        """Queries or keys [B, H, T, key_dim] at their positions, int [T]."""
        return heads

    def bias(self, query, query_positions, key_positions):
        """What is added to the scores, or None.

        Args:
            query: [B, H, T, key_dim], rotated and divided by sqrt(key_dim).
            query_positions, key_positions: int [T], [S].

        Returns:
            A tensor that broadcasts over [B, H, T, S].
        """
        return None

    def added_context(self, attention_weights, query_positions, key_positions):
        """What is added to the context, or None.

        Args:
            attention_weights: [B, H, T, S].
            query_positions, key_positions: int [T], [S].

        Returns:
            A tensor [B, H, T, key_dim].

        """
        return None

    def attend(
        self,
        query,
        key,
        value,
        query_positions,
        key_positions,
        mask=None,
        dropout=None,
    ):
        """`dot_product_attention` of rotated queries and keys, with bias.

        Args:
            query: [B, H, T, key_dim].
            key, value: [B, H, S, key_dim], or fewer heads that are shared.
            query_positions, key_positions: int [T], [S].
            mask: bool that broadcasts over [B, H, T, S], True = attend.
            dropout: optional function of the weights.

        Returns:
            `(context, attention_weights)`: [B, H, T, key_dim], float32
            [B, H, T, S].
        """
        query = query * (1.0 / math.sqrt(query.shape[-1]))
        scores = attention.matmul_of_heads(query, ops.swapaxes(key, -1, -2))
        bias = self.bias(query, query_positions, key_positions)
        if bias is not None:
            # In float32: half precision would round far distances together.
            scores = ops.cast(scores, "float32") + ops.cast(bias, "float32")
        attention_weights = attention.masked_softmax(scores, mask)
        used_weights = attention_weights
        if dropout is not None:
            used_weights = dropout(attention_weights)
        context = attention.weighted_sum(used_weights, value)
        added = self.added_context(used_weights, query_positions, key_positions)
        if added is not None:
            context = context + ops.cast(added, context.dtype)
        return context, attention_weights


def distances(query_positions, key_positions):
    """`s - t` for each query t and key s: int [T, S]."""
    return key_positions[None, :] - query_positions[:, None]


def serialize(positions):
    """A layer of positions, or None, for a config."""
    if positions is None:
        return None
    return keras.saving.serialize_keras_object(positions)


def deserialize(config):
    """A layer's config with the layer of positions in it made again."""
    positions = config.get("positions")
    if not isinstance(positions, dict):
        return config
    layer = keras.saving.deserialize_keras_object(positions)
    return {**config, "positions": layer}
