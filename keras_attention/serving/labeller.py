"""Texts in, label out: a classifier with its labels."""

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Self

import keras
import numpy as np
import tensorflow as tf

from keras_attention import data
from keras_attention.data import columns
from keras_attention.serving import (
    inspection,
    inspection_graph,
    kinds,
    text_model,
    token_rows,
)
from keras_attention.serving.graph import Graph
from keras_attention.tokens import END

# The names by which a model without `text_names` knows its texts. Others are
# `NAME_ids`.
_IDS = {"text": "source_ids", "text_pair": "pair_ids"}
_TOKENS = ("source_tokens", "pair_tokens")
_ATTENTION = ("attention", "attention_pair")


class Labeller(text_model.TextModel):
    """Labels texts: a live model, or one that `ka.load` has loaded.

    A call gives the most probable label of each row. A row is a text, or the
    two texts of a pair: `labeller([("one", "two")])`. With `truncate`, a text
    over the limit loses its end, and a story its beginning.

    `with_attention` gives the tokens of a text and the weights of the model's
    hops, [R, S], or of its layers and heads, [L, H, S, S]. For a pair it
    gives the weights of each text's tokens for the other's, [S, T] and
    [T, S].

    Args:
        model: a built `models.Classifier`.
        tokenizer: a `data.Tokenizer`.
        classes: the labels, in the order of the model's logits.
        max_length: limit of a text in tokens, END included. The functions
            read the first tokens of a longer one, or the last of a story;
            Python refuses it.
        kind: what is labelled: `kinds.CLASSIFICATION` of one text,
            `kinds.ENTAILMENT` of two, or `kinds.QUESTION_ANSWERING` of a story
            and a question.
        stored_precision: in which weights of float32 are kept, see
            `Translator`.

    `Labeller.of_images(model, classes, shape)` labels pictures.

    Raises:
        ValueError: If the model is not built, if no text can keep the limit,
            if there is no label, if the precision is another one, or if the
            weights are too large for it. When it is asked, as `TextModel`.
    """

    def __init__(
        self,
        model: keras.Model,
        tokenizer: data.Tokenizer,
        classes: Sequence[str],
        max_length: int = 128,
        kind: kinds.Kind = kinds.CLASSIFICATION,
        stored_precision: str = "float32",
    ):
        if max_length < 2 or not classes:
            raise ValueError(
                "Expected max_length >= 2 and one label or more. Received: "
                f"max_length={max_length}, classes={classes}"
            )
        graph = _LabellingGraph(
            model, tokenizer, classes, max_length, kind, stored_precision
        )
        super().__init__(graph.kind, graph.signatures, graph)

    @classmethod
    def of_images(
        cls,
        model: keras.Model,
        classes: Sequence[str],
        shape: Sequence[int],
        stored_precision: str = "float32",
    ) -> Self:
        """Labels pictures with a live model.

        A row is an array or nested lists. `with_attention` gives the weights
        of the model's layers and heads, [L, H, P, P].

        Args:
            model: a built `models.VisionTransformer`.
            classes: the labels, in the order of the model's logits.
            shape: of a picture.
            stored_precision: see above.
        """
        graph = _ImageGraph(model, classes, shape, stored_precision)
        labels = cls.__new__(cls)
        text_model.TextModel.__init__(
            labels, graph.kind, graph.signatures, graph
        )
        return labels

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the probabilities.

        Raises:
            ValueError: If an older version of the package exported the model.
        """
        if not self.kind.labels:
            raise ValueError(
                f"{self.path} does not say the names of its labels: export "
                "the run again"
            )
        return self.kind.labels

    def probabilities(
        self,
        rows: Iterable[text_model.Row],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> np.ndarray:
        """The probabilities of all labels: float32 [N, C].

        Args:
            rows, batch_size, truncate: as for a call.
        """
        names = ("probabilities",)
        return np.array(
            self._ask(kinds.DEFAULT, rows, batch_size, truncate, names)
        )


class _LabellingGraph(Graph):
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


class _ImageGraph(Graph):
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
