"""The functions of tensors of a classifier: texts or a picture to a label."""

import dataclasses
import functools
from collections.abc import Sequence

import keras
import tensorflow as tf

from keras_attention import data
from keras_attention.data import columns
from keras_attention.serving import (
    inspection,
    inspection_graph,
    kinds,
    token_rows,
)
from keras_attention.serving.graph import Graph
from keras_attention.tokens import END

# The names by which a model without `text_names` knows its texts. Others are
# `NAME_ids`.
_IDS = {"text": "source_ids", "text_pair": "pair_ids"}
_TOKENS = ("source_tokens", "pair_tokens")
_ATTENTION = ("attention", "attention_pair")


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
        self._ids = getattr(
            model,
            "text_names",
            [_IDS.get(name, f"{name}_ids") for name in kind.inputs],
        )
        # A model of one text reads a story and its question in one row.
        self._joins = len(self._ids) < len(kind.inputs)
        # How many axes its weights have, the model alone knows.
        ids = tf.ones([1, 2], tf.int32)
        _, weights = model.attend({name: ids for name in self._ids})
        if not isinstance(weights, tuple):
            kind = kinds.with_attention_axes(kind, len(weights.shape))
        kind = dataclasses.replace(
            kind, labels=tuple(classes), limit=max_length
        )
        names = (kinds.DEFAULT, "with_attention")
        functions = {
            name: functools.partial(self._label, kind.signatures[name].outputs)
            for name in names
        }
        if getattr(model, "maps", None):
            shown = kind.signatures["with_attention"].outputs
            outputs = {
                name: axes
                for name, axes in shown.items()
                if name not in _ATTENTION
            }
            kind = inspection.declared(kind, kind.inputs, outputs, model.maps)
            functions[inspection.NAME] = self._inspect
        self.define(kind, functions)

    def _inspect(self, *texts):
        """What `with_attention` gives, its weights as maps."""
        return _with_maps(self, texts)

    def _label(self, names, *texts):
        """The outputs of these names for the texts of each row."""
        rows = [self.tokenizer.tokenize(text) for text in texts]
        lengths = [ids.row_lengths() for ids in rows]
        cut = [
            self._cut(name, ids)
            for name, ids in zip(self.kind.inputs, rows, strict=True)
        ]
        if self._joins:
            story, question = cut
            ends = tf.fill([story.nrows(), 1], END)
            cut = [tf.concat([story, ends, question], axis=1)]
        ids = [token_rows.ended(one) for one in cut]
        with self.weights.in_use():
            logits, weights = self.model.attend(
                dict(zip(self._ids, ids, strict=True)), training=False
            )
        weights = weights if isinstance(weights, tuple) else (weights,)
        outputs = {
            **_labelled(self.kind, logits),
            "truncated": tf.reduce_max(lengths, 0) >= self.max_length,
            **dict(zip(_ATTENTION, weights, strict=False)),
        }
        for name, row in zip(_TOKENS, ids, strict=False):
            outputs[name] = token_rows.pieces(self.tokenizer, row)
        return {name: outputs[name] for name in names}

    def _cut(self, name, ids):
        """What fits, with room for END: of a story the end, as it is newer."""
        if name != "story":
            return ids[:, : self.max_length - 1]
        ended = tf.concat([ids, tf.fill([ids.nrows(), 1], END)], axis=1)
        return columns.cut(ended, self.max_length, "end")[:, :-1]


class ImageGraph(Graph):
    """A classifier of pictures as functions in graph.

    Args: as the arguments of `Labeller.of_images`.
    """

    def __init__(
        self,
        model: keras.Model,
        classes: Sequence[str],
        shape: Sequence[int],
        stored_precision: str,
    ):
        super().__init__(model, [], stored_precision)
        self.facts = f"- Labels: {len(classes)}\n"
        kind = dataclasses.replace(
            kinds.IMAGE_CLASSIFICATION,
            labels=tuple(classes),
            numbers={"image": tuple(shape)},
        )
        functions = {
            name: functools.partial(self._label, signature.outputs)
            for name, signature in kind.signatures.items()
        }
        if getattr(model, "maps", None):
            outputs = kind.signatures[kinds.DEFAULT].outputs
            kind = inspection.declared(kind, kind.inputs, outputs, model.maps)
            functions[inspection.NAME] = self._inspect
        self.define(kind, functions)

    def _inspect(self, image):
        """What `with_attention` gives, its weights as maps."""
        return _with_maps(self, [image])

    def _label(self, names, image):
        """The outputs of these names for each picture."""
        # A SavedModel's signature does not check the shape by itself.
        image = tf.ensure_shape(image, [None, *self.kind.numbers["image"]])
        with self.weights.in_use():
            logits, weights = self.model.attend(
                {"image": image}, training=False
            )
        outputs = {**_labelled(self.kind, logits), "attention": weights}
        return {name: outputs[name] for name in names}


def _with_maps(graph, inputs) -> dict:
    """The outputs of `with_attention`, its weights as the model's maps."""
    outputs = dict(graph.signatures["with_attention"](*inputs))
    weights = [outputs.pop(name) for name in _ATTENTION if name in outputs]
    words = zip(("source", "pair"), _TOKENS, strict=True)
    is_real = {
        word: outputs[name] != "" for word, name in words if name in outputs
    }
    maps = inspection_graph.without_padding(
        graph.model.as_maps(*weights), graph.model.maps, is_real
    )
    return {**outputs, **maps}


def _labelled(kind, logits) -> dict:
    """The label of each row, and the probabilities of all labels."""
    labels = tf.constant(kind.labels)
    return {
        kind.output: tf.gather(labels, tf.argmax(logits, -1)),
        "probabilities": tf.nn.softmax(logits),
        "labels": tf.tile(labels[tf.newaxis], [tf.shape(logits)[0], 1]),
    }
