"""The embedded text: sentences whose true probabilities are known.

A language model may be measured against the truth here: no model has a lower
cross-entropy than the source's own, `entropy_rate()`.
"""

from keras_attention.data.embedded.sentences.source import (
    entropy,
    entropy_rate,
    generate,
    log_probability,
    mean_length,
    vocabulary,
)

__all__ = [
    "entropy",
    "entropy_rate",
    "generate",
    "log_probability",
    "mean_length",
    "vocabulary",
]
