"""Pictures of how models are built, for the chapters.

Each function returns a figure with an `alt` text. Diagrams of boxes and arrows
keep their nodes and edges as `diagram`.
"""

from diagrams.convolutions import (
    bytenet_block,
    conv_layer,
    convolutional_gru,
    highway,
)
from diagrams.cursors import (
    chain_of_choices,
    hard_look,
    hidden_markov,
    stop_or_go_on,
    transducer,
    window,
)
from diagrams.matrices import cache, distances, masks, numbers, windows
from diagrams.networks import (
    encoder_decoder,
    memory_hops,
    soft_search,
    summarizer,
    unrolled_rnn,
)
from diagrams.overview import attention_steps, translator
from diagrams.sentences import decomposable, looking_back
from diagrams.sources import picture_patches, three_sources
from diagrams.transformer import heads, stream, transformer, transformer_layer

__all__ = [
    "attention_steps",
    "bytenet_block",
    "cache",
    "chain_of_choices",
    "conv_layer",
    "convolutional_gru",
    "decomposable",
    "distances",
    "encoder_decoder",
    "hard_look",
    "heads",
    "hidden_markov",
    "highway",
    "looking_back",
    "masks",
    "memory_hops",
    "numbers",
    "picture_patches",
    "soft_search",
    "stop_or_go_on",
    "stream",
    "summarizer",
    "three_sources",
    "transducer",
    "transformer",
    "transformer_layer",
    "translator",
    "unrolled_rnn",
    "window",
    "windows",
]
