"""Texts alone: what comes next, scored by perplexity."""

import math
import time

import tensorflow as tf

from keras_attention.data import corpora, sentences, texts
from keras_attention.data import pipeline as batches
from keras_attention.serving import continuer
from keras_attention.tasks import models, run_cards, vocabularies
from keras_attention.tasks.task import Evaluation, Task, TestSet
from keras_attention.training import losses

# Of a sample: the words that the model is given, to continue them.
PROMPT_WORDS = 2


class _TextPipeline:
    """The batches of a pipeline of pairs, without their sources."""

    def __init__(self, pairs):
        self._pairs = pairs
        self.report = pairs.report
        self.checksums = pairs.checksums

    def training(self, epoch, start=0, limit=None):
        return self._pairs.training(epoch, start, limit).map(_target)

    def validation(self):
        return self._pairs.validation().map(_target)


def _target(inputs, labels, weights):
    return inputs["target_ids"], labels, weights


class LanguageModelling(Task):
    """Says how probable a text is, and continues one."""

    name = "language_modelling"

    def load(self, choices):
        if choices.corpus == "sentences":
            splits = sentences.generate()
        else:
            splits = texts.load(choices.corpus)
        return corpora.Corpus(
            choices.corpus,
            choices.source,
            choices.source,
            {name: _pairs(lines) for name, lines in splits.items()},
            {name: len(lines) for name, lines in splits.items()},
        )
