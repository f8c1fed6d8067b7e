"""Text to batches: vocabularies, tokenizers and the stages of a pipeline.

Corpora, which are read through TensorFlow Datasets, are in `data.corpora`.
"""

import typing

from keras_attention import on_demand
from keras_attention.data.batches import (
    POOL_SIZE,
    Report,
    batch_by_tokens,
    count_blank,
    filter_by_length,
    join,
    plan_batches,
    report,
    shuffle,
    to_examples,
    tokenize,
    tokenize_by_sampling,
)
from keras_attention.data.vocabularies.tokenizer import Tokenizer, valid_utf8
from keras_attention.data.vocabularies.vocabulary import (
    MODEL_TYPES,
    NORMALIZATIONS,
    train_vocabulary,
)

__all__ = [
    "MODEL_TYPES",
    "NORMALIZATIONS",
    "POOL_SIZE",
    "Report",
    "Tokenizer",
    "batch_by_tokens",
    "corpora",
    "count_blank",
    "filter_by_length",
    "join",
    "plan_batches",
    "report",
    "shuffle",
    "to_examples",
    "tokenize",
    "tokenize_by_sampling",
    "train_vocabulary",
    "valid_utf8",
]

if typing.TYPE_CHECKING:
    from keras_attention.data import corpora
else:
    __getattr__, __dir__ = on_demand.modules(__name__, ["corpora"])
