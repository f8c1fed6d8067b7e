"""Pictures of how models are built, for the chapters.

Each function returns a figure that keeps its nodes and edges as `diagram`.
"""

from diagrams.cursors import (
    chain_of_choices,
    hard_look,
    hidden_markov,
    stop_or_go_on,
    transducer,
    window,
)
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
    "chain_of_choices",
    "encoder_decoder",
    "hard_look",
    "hidden_markov",
    "memory_hops",
    "soft_search",
    "stop_or_go_on",
    "summarizer",
    "transducer",
    "transformer",
    "transformer_layer",
    "translator",
    "unrolled_rnn",
    "window",
]
