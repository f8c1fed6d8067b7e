"""Texts in, label out: a classifier with its labels."""

import typing
from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np

from keras_attention.serving import kinds, text_model

if typing.TYPE_CHECKING:
    import keras

    from keras_attention import data


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
        model: "keras.Model",
        tokenizer: "data.Tokenizer",
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
        # A live model needs Keras, a SavedModel does not.
        from keras_attention.serving import labelling_graph

        graph = labelling_graph.LabellingGraph(
            model, tokenizer, classes, max_length, kind, stored_precision
        )
        super().__init__(graph.kind, graph.signatures, graph)

    @classmethod
    def of_images(
        cls,
        model: "keras.Model",
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
        from keras_attention.serving import labelling_graph

        graph = labelling_graph.ImageGraph(
            model, classes, shape, stored_precision
        )
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
