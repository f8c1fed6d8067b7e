"""Layers: tensors in, tensors out, on every Keras backend."""

from keras_attention.layers.additive_attention import AdditiveAttention
from keras_attention.layers.attention import (
    Attention,
    masked_softmax,
    weighted_sum,
)
from keras_attention.layers.feed_forward import FeedForward
from keras_attention.layers.gru_cell import GRUCell
from keras_attention.layers.masks import (
    causal_mask,
    combine_masks,
    padding_mask,
)
from keras_attention.layers.maxout import Maxout
from keras_attention.layers.multi_head_attention import (
    MultiHeadAttention,
    dot_product_attention,
)
from keras_attention.layers.multiplicative_attention import (
    MultiplicativeAttention,
)
from keras_attention.layers.position_encoding import (
    PositionEncoding,
    sinusoidal_positions,
)
from keras_attention.layers.recurrence import reverse_sequences, unroll
from keras_attention.layers.transformer_layers import (
    Residual,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)

__all__ = [
    "AdditiveAttention",
    "Attention",
    "FeedForward",
    "GRUCell",
    "Maxout",
    "MultiHeadAttention",
    "MultiplicativeAttention",
    "PositionEncoding",
    "Residual",
    "TransformerDecoderLayer",
    "TransformerEncoderLayer",
    "causal_mask",
    "combine_masks",
    "dot_product_attention",
    "masked_softmax",
    "padding_mask",
    "reverse_sequences",
    "sinusoidal_positions",
    "unroll",
    "weighted_sum",
]
