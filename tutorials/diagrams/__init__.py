"""Pictures of how models are built, for the chapters.

Each function returns a figure that keeps its nodes and edges as `diagram`.
"""

from diagrams.networks import (
    attention_steps,
    encoder_decoder,
    memory_hops,
    soft_search,
    summarizer,
    translator,
    unrolled_rnn,
)
from diagrams.transformer import transformer, transformer_layer

__all__ = [
    "attention_steps",
    "encoder_decoder",
    "memory_hops",
    "soft_search",
    "summarizer",
    "transformer",
    "transformer_layer",
    "translator",
    "unrolled_rnn",
]
