"""What a model's answers are worth."""

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
    "bleu_by_length",
    "bleu_tokenizer",
    "corpus_scores",
    "paired_bootstrap",
    "print_samples",
    "validation_logs",
]
