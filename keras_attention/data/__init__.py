"""Text to batches: vocabularies, tokenizers and the stages of a pipeline.

Corpora are in `data.corpora`, which is imported at first use.
"""

import typing

from keras_attention import on_demand
from keras_attention.data.batches import (
    POOL_SIZE,
    batch_by_tokens,
    join,
    shuffle,
    to_examples,
    tokenize,
)
from keras_attention.data.columns import filter_by_length
from keras_attention.data.plans import plan_batches
from keras_attention.data.reports import Report, count_blank, report
from keras_attention.data.vocabularies.published import (
    PublishedTokenizer,
    published_tokenizer,
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
    "PublishedTokenizer",
    "Report",
    "Tokenizer",
    "batch_by_tokens",
    "corpora",
    "count_blank",
    "filter_by_length",
    "join",
    "plan_batches",
    "published_tokenizer",
    "report",
    "shuffle",
    "to_examples",
    "tokenize",
    "train_vocabulary",
    "valid_utf8",
]

if typing.TYPE_CHECKING:
    from keras_attention.data import corpora
else:
    __getattr__, __dir__ = on_demand.modules(__name__, ["corpora"])
