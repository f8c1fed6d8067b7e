"""What a model's answers are worth."""

import typing

from keras_attention import on_demand
from keras_attention.evaluation.comet import comet_score
from keras_attention.evaluation.minimum_risk import minimum_bayes_risk
from keras_attention.evaluation.more_scores import more_scores
from keras_attention.evaluation.rouge import rouge_scores
from keras_attention.evaluation.scores import (
    bleu_by_length,
    bleu_tokenizer,
    corpus_scores,
    paired_bootstrap,
)
from keras_attention.evaluation.validation import (
    print_samples,
    validation_logs,
)

__all__ = [
    "alignment",
    "attribution",
    "bleu_by_length",
    "bleu_tokenizer",
    "comet_score",
    "corpus_scores",
    "hmm_alignment",
    "minimum_bayes_risk",
    "more_scores",
    "paired_bootstrap",
    "print_samples",
    "rouge_scores",
    "validation_logs",
]

if typing.TYPE_CHECKING:
    from keras_attention.evaluation import alignment, attribution, hmm_alignment
else:
    __getattr__, __dir__ = on_demand.modules(
        __name__, ["alignment", "attribution", "hmm_alignment"]
    )
