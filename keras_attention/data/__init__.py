"""Text to batches: vocabularies, tokenizers and the stages of a pipeline.

Corpora are in `data.corpora`, which is imported at first use. So are those
that the package makes, `data.embedded`, and what reads yours, `data.readers`.
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
    "carried",
    "columns",
    "corpora",
    "count_blank",
    "embedded",
    "filter_by_length",
    "join",
    "plan_batches",
    "published_tokenizer",
    "readers",
    "report",
    "shuffle",
    "to_examples",
    "tokenize",
    "train_vocabulary",
    "valid_utf8",
    "vocabularies",
]

# Modules, and packages of modules.
if typing.TYPE_CHECKING:
    from keras_attention.data import (
        carried,
        columns,
        corpora,
        embedded,
        readers,
        vocabularies,
    )
else:
    __getattr__, __dir__ = on_demand.modules(
        __name__,
        [
            "carried",
            "columns",
            "corpora",
            "embedded",
            "readers",
            "vocabularies",
        ],
    )
