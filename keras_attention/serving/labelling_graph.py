"""The classifier's functions of tensors: texts, and their labels."""

import dataclasses
import functools
from collections.abc import Sequence

import keras
import tensorflow as tf

from keras_attention import data
from keras_attention.serving import kinds, token_rows
from keras_attention.serving.graph import Graph

_IDS = ("source_ids", "pair_ids")
_TOKENS = ("source_tokens", "pair_tokens")


class LabellingGraph(Graph):
    """A classifier of one text or two as functions in graph.

    Args, Attributes: as the arguments of `Labeller`.
    """

    def __init__(
        self,
        model: keras.Model,
        tokenizer: data.Tokenizer,
        classes: Sequence[str],
        max_length: int,
        kind: kinds.Kind,
        stored_precision: str,
    ):
        super().__init__(model, [tokenizer], stored_precision)
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.facts = f"- Labels: {len(classes)}\n"
        if len(kind.inputs) == 1:
            # How many axes its weights have, the model alone knows.
            _, weights = model.attend({"source_ids": tf.ones([1, 2], tf.int32)})
            kind = kinds.with_attention_axes(kind, len(weights.shape))
        kind = dataclasses.replace(
            kind, labels=tuple(classes), limit=max_length
        )
        names = (kinds.DEFAULT, "with_attention")
        functions = {
            name: functools.partial(self._label, kind.signatures[name].outputs)
            for name in names
        }
        self.define(kind, {**functions, "num_tokens": self._num_tokens})

    def _label(self, names, *texts):
        """The outputs of these names for one text of a row or two."""
        rows = [self.tokenizer.tokenize(text) for text in texts]
        lengths = [ids.row_lengths() for ids in rows]
        ids = [token_rows.ended(ids[:, : self.max_length - 1]) for ids in rows]
        with self.weights.in_use():
            logits, weights = self.model.attend(
                dict(zip(_IDS, ids, strict=False)), training=False
            )
        labels = tf.constant(self.kind.labels)
        shown = (weights,) if len(texts) == 1 else weights
        outputs = {
            "label": tf.gather(labels, tf.argmax(logits, -1)),
            "probabilities": tf.nn.softmax(logits),
            "labels": tf.tile(labels[tf.newaxis], [tf.shape(logits)[0], 1]),
            "truncated": tf.reduce_max(lengths, 0) >= self.max_length,
            **dict(zip(("attention", "attention_pair"), shown, strict=False)),
        }
        for name, row in zip(_TOKENS, ids, strict=False):
            outputs[name] = token_rows.pieces(self.tokenizer, row)
        return {name: outputs[name] for name in names}

    def _num_tokens(self, *texts):
        """Of the longest text of each row."""
        lengths = [
            self.tokenizer.tokenize(text).row_lengths() for text in texts
        ]
        longest = tf.cast(tf.reduce_max(tf.stack(lengths), axis=0), tf.int32)
        limit = tf.fill(tf.shape(longest), self.max_length)
        return {"num_tokens": longest + 1, "limit": limit}  # and END
