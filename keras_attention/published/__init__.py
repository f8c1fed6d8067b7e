"""Weights that others publish, by the names of our own models.

A folder as the package `transformers` writes it holds `config.json` and
`model.safetensors`. One file for each family says which of our models it is,
and which tensor is which of our weights. No model is made here:
`models.from_pretrained` does that, and `train --init` gives a training the
weights.
"""

from keras_attention.published.families import (
    FAMILIES,
    LEFT_TO_A_TRAINING,
    Weights,
    belongs_to_data,
    choices,
    few,
    is_published,
    read,
)
from keras_attention.published.files import Tensors

__all__ = [
    "FAMILIES",
    "LEFT_TO_A_TRAINING",
    "Tensors",
    "Weights",
    "belongs_to_data",
    "choices",
    "few",
    "is_published",
    "read",
]
