"""Layers: tensors in, tensors out, on every Keras backend."""

from keras_attention.layers.additive_attention import AdditiveAttention
from keras_attention.layers.attention import (
    Attention,
    dot_product_attention,
    masked_softmax,
    weighted_sum,
)
from keras_attention.layers.bucketed_bias import BucketedBias
from keras_attention.layers.causal_convolution import (
    CausalConvolution,
    centered,
)
from keras_attention.layers.diagonal_attention import DiagonalAttention
from keras_attention.layers.factorized_lstm_cell import FactorizedLSTMCell
from keras_attention.layers.feed_forward import FeedForward, tanh_gelu
from keras_attention.layers.gaussian_window import GaussianWindow
from keras_attention.layers.group_lstm_cell import GroupLSTMCell
from keras_attention.layers.gru_cell import GRUCell
from keras_attention.layers.learned_positions import LearnedPositions
from keras_attention.layers.linear_bias import LinearBias, alibi_slopes
from keras_attention.layers.local_attention import LocalAttention
from keras_attention.layers.logit_factors import (
    LogitFactors,
    left_in_factors,
    logits,
)
from keras_attention.layers.masks import (
    causal_mask,
    combine_masks,
    padding_mask,
)
from keras_attention.layers.maxout import Maxout
from keras_attention.layers.mixture_of_experts import MixtureOfExperts
from keras_attention.layers.monotonic_attention import MonotonicAttention
from keras_attention.layers.multi_head_attention import MultiHeadAttention
from keras_attention.layers.multiplicative_attention import (
    MultiplicativeAttention,
)
from keras_attention.layers.online_softmax import online_softmax_attention
from keras_attention.layers.outputs_only import OutputsOnly
from keras_attention.layers.position_encoding import (
    PositionEncoding,
    sinusoidal_positions,
)
from keras_attention.layers.positions import Positions
from keras_attention.layers.projected_lstm_cell import ProjectedLSTMCell
from keras_attention.layers.recurrence import (
    reverse_sequences,
    unroll,
    unroll_with_attention,
)
from keras_attention.layers.relative_positions import RelativePositions
from keras_attention.layers.residual import Residual
from keras_attention.layers.rotary_positions import RotaryPositions
from keras_attention.layers.self_attention_layer import SelfAttentionLayer
from keras_attention.layers.sentences import (
    same_sentence,
    sentence_ends,
    sentence_numbers,
)
from keras_attention.layers.structured_attention import (
    StructuredAttention,
    chain_marginals,
)
from keras_attention.layers.transformer_layers import (
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)

__all__ = [
    "AdditiveAttention",
    "Attention",
    "BucketedBias",
    "CausalConvolution",
    "DiagonalAttention",
    "FactorizedLSTMCell",
    "FeedForward",
    "GRUCell",
    "GaussianWindow",
    "GroupLSTMCell",
    "LearnedPositions",
    "LinearBias",
    "LocalAttention",
    "LogitFactors",
    "Maxout",
    "MixtureOfExperts",
    "MonotonicAttention",
    "MultiHeadAttention",
    "MultiplicativeAttention",
    "OutputsOnly",
    "PositionEncoding",
    "Positions",
    "ProjectedLSTMCell",
    "RelativePositions",
    "Residual",
    "RotaryPositions",
    "SelfAttentionLayer",
    "StructuredAttention",
    "TransformerDecoderLayer",
    "TransformerEncoderLayer",
    "alibi_slopes",
    "causal_mask",
    "centered",
    "chain_marginals",
    "combine_masks",
    "dot_product_attention",
    "left_in_factors",
    "logits",
    "masked_softmax",
    "online_softmax_attention",
    "padding_mask",
    "reverse_sequences",
    "same_sentence",
    "sentence_ends",
    "sentence_numbers",
    "sinusoidal_positions",
    "tanh_gelu",
    "unroll",
    "unroll_with_attention",
    "weighted_sum",
]
