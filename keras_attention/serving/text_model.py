"""A model of texts, live or loaded: it answers lists of any length."""

import os
import pathlib
import reprlib
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import tensorflow as tf

from keras_attention.data.readers import lines
from keras_attention.serving import inspection, kinds, quick_search

if typing.TYPE_CHECKING:
    # A SavedModel is answered without Keras.
    import keras

    from keras_attention.serving.graph import Graph

# A text (or numbers), or those of a model with several inputs: in the order of
# these, or by their names.
Row = str | Sequence | np.ndarray | Mapping[str, Any]


class TextModel:
    """A model that answers rows of texts, as its `kind` declares.

    A row is a text, or an array where the kind's input is numbers. Where the
    kind has several inputs, a row is a tuple in their order, or a dict. Rows
    are sorted by length into batches.
    Answers come in the order given. A subclass adds what one kind has beside
    a call and `with_attention`.

    Args:
        kind: `kinds.Kind`.
        signatures: name -> function of string tensors [B] by keyword, which
            returns a dict of tensors whose axis 0 is the batch.
        graph: the live model that has the signatures.

    Attributes:
        kind, signatures: as given.
        path: the version's folder of a SavedModel, or None.

    Raises:
        ValueError: If a text is longer than the model's limit (the message
            names the line, its length and the limit), or is no string, or if
            an older version of the package exported the model without what is
            asked for.
    """

    def __init__(
        self,
        kind: kinds.Kind,
        signatures: Mapping[str, Callable],
        graph: "Graph | None" = None,
    ):
        self.kind = kind
        self.signatures = signatures
        self.path: pathlib.Path | None = None
        self._graph = graph
        self._loaded: Any = None

    @classmethod
    def of_savedmodel(
        cls, kind: kinds.Kind, path: pathlib.Path, loaded
    ) -> Self:
        """The model in a SavedModel.

        Args:
            kind: what it declares.
            path: the version's folder.
            loaded: what `tf.saved_model.load` returned.
        """
        model = cls.__new__(cls)
        signatures = quick_search.signatures(loaded, path, kind.num_beams)
        TextModel.__init__(model, kind, signatures)
        model.path = path
        model._loaded = loaded  # Its functions do not keep its variables.
        return model

    def __repr__(self) -> str:
        kind = self.kind
        facts = [
            kind.name,
            self._graph and self._graph.model_text,
            self.path and str(self.path),
            kind.labels and f"labels {reprlib.repr(list(kind.labels))}",
            kind.num_beams > 1 and f"{kind.num_beams} beams",
            kind.limit and f"at most {kind.limit} tokens",
        ]
        return f"<{type(self).__name__}: {', '.join(filter(None, facts))}>"

    @property
    def task(self) -> str:
        """What the model does, by its name in the catalogue of models."""
        return self.kind.name

    @property
    def num_beams(self) -> int:
        """Beams of the search, the N of `n_best`; 1 without a search."""
        return self.kind.num_beams

    @property
    def graph(self) -> "Graph":
        """The live model and its functions of tensors.

        Raises:
            ValueError: If this is a SavedModel.
        """
        if self._graph is None:
            raise ValueError(
                f"{self.path} is a SavedModel, which has no Keras model. Load "
                "the folder of the run."
            )
        return self._graph

    @property
    def model(self) -> "keras.Model":
        """The Keras model of a live model."""
        return self.graph.model

    def export(self, folder: str | os.PathLike, card: str = "") -> pathlib.Path:
        """Writes the next version of a SavedModel.

        Args:
            folder: `savedmodels/NAME`; the version is `NAME/1`, or one more
                than the greatest there is.
            card: text of `NAME/README.md`; by default the one there stays,
                or `cards.plain` is written.

        Returns:
            Path of the version.
        """
        return self.graph.export(folder, card)

    def __call__(
        self,
        rows: Iterable[Row],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list:
        """The answer to each row.

        Args:
            rows: what to answer.
            batch_size: rows in a batch, at most.
            truncate: whether a text over the limit is cut; it is refused
                otherwise.
        """
        return self._ask(kinds.DEFAULT, rows, batch_size, truncate)

    def with_attention(
        self,
        rows: Iterable[Row],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list[dict]:
        """Answers with their tokens and attention. Arguments as for a call.

        Returns:
            For each row a dict of the signature's outputs, without padding:
            texts are strings, tokens lists of strings, the others numbers
            and arrays. `kind` names the axes of each.
        """
        return self._ask("with_attention", rows, batch_size, truncate)

    def inspect(
        self, row: Row, answer: str | None = None, k: int = 5
    ) -> inspection.Inspection:
        """Looks inside: all layers and heads, each step's choices, the beam.

        Args:
            row: a text, or what a row of this model is.
            answer: what the model has to write; by default its own answer. A
                language model reads it after the text.
            k: best tokens of each step, or labels, at most 10.

        Raises:
            ValueError: As the class says; for another k, or for an answer
                that is too long or of a model that writes none.
        """
        self._function(inspection.NAME)
        others = inspection.question(self.kind, answer, k)
        (found,) = self._ask(inspection.NAME, [row], 1, False, **others)
        # The text fits: only an answer can have been cut.
        if found.get("truncated") and answer:
            raise ValueError("The answer is longer than any of this model's.")
        return inspection.of_row(self.kind, found, k)

    def num_tokens(self, rows: Iterable[Row]) -> list[int]:
        """Tokens of each row's longest text, END included, over a limit too."""
        return self._counted(self._columns(rows))[0].tolist()

    def too_long(self, rows: Iterable[Row]) -> dict[int, tuple[int, int]]:
        """The rows over the limit, which a call refuses or `truncate` cuts.

        Returns:
            Line, from 1 -> `(num_tokens, limit)`, of each row over the limit.
        """
        return _too_long(*self._counted(self._columns(rows)))

    def num_truncated(self, rows: Iterable[Row]) -> int:
        """How many rows are over the limit. `truncate` cuts them."""
        return len(self.too_long(rows))

    def _ask(self, name, rows, batch_size, truncate, decode=None, **others):
        """What a signature answers to each row, see `_decoded`."""
        function = self._function(name)
        batches = self._batches(rows, batch_size, truncate, **others)
        answers = [(places, function(**inputs)) for places, inputs in batches]
        return self._decoded(name, answers, decode)

    def _function(self, name: str) -> Callable:
        """A signature's function, or a ValueError: there may be none."""
        if name not in self.signatures:
            remedy = "Export the model again."
            if name in self.kind.signatures:  # Other names were asked for.
                remedy = "Load all signatures, by ka.load."
            raise ValueError(
                f"{self.path} answers by {', '.join(sorted(self.signatures))}, "
                f"and not by {name!r}. {remedy}"
            )
        return self.signatures[name]

    def _batches(self, rows, batch_size, truncate, **others) -> list[tuple]:
        """Rows and other texts, one for each, in batches of like lengths.

        Returns:
            For each batch the places of its rows in the list, int [B], and
            name -> string tensor [B].
        """
        if batch_size < 1:
            raise ValueError(
                "Expected batch_size of at least 1. "
                f"Received: batch_size={batch_size}"
            )
        columns = self._columns(rows)
        lengths, limits = self._counted(columns)
        for name, texts in others.items():
            columns[name] = encoded(texts)
            if len(columns[name]) != len(lengths):
                raise ValueError(
                    f"Each text needs one {name}. There are {len(lengths)} "
                    f"texts and {len(columns[name])} {name}s."
                )
        long_texts = _too_long(lengths, limits)
        if long_texts and not truncate:
            line, (num_tokens, limit) = next(iter(long_texts.items()))
            raise ValueError(
                f"The text in line {line} has {num_tokens} tokens, and the "
                f"model takes at most {limit}. Split it into sentences, or let "
                "it be cut (truncate=True, --truncate)."
            )
        # Texts of like lengths need little padding.
        order = np.argsort(lengths, kind="stable")
        batches = []
        for start in range(0, len(order), batch_size):
            places = order[start : start + batch_size]
            inputs = {
                name: tf.constant([column[place] for place in places])
                for name, column in columns.items()
            }
            batches.append((places, inputs))
        return batches

    def _columns(self, rows) -> dict[str, list]:
        """The inputs by their names, each with a value for each row."""
        names = self.kind.inputs
        if len(names) == 1:
            return {names[0]: self._column(names[0], rows)}
        values = [
            _values_of(row, names, line) for line, row in enumerate(rows, 1)
        ]
        return {
            name: self._column(name, [row[place] for row in values])
            for place, name in enumerate(names)
        }

    def _column(self, name, values) -> list:
        """The texts of an input in UTF-8, or its numbers as arrays."""
        if name not in self.kind.numbers:
            return encoded(values)
        return _arrays(values, name, self.kind.numbers[name])

    def _counted(self, columns) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of each row, and the most that there may be."""
        if not self.kind.texts:  # Numbers have no tokens.
            none = np.zeros(len(columns[self.kind.inputs[0]]), "int32")
            return none, none
        counted = self.signatures["num_tokens"](
            **{
                name: tf.constant(columns[name], tf.string, shape=[len(rows)])
                for name, rows in columns.items()
                if name in self.kind.texts
            }
        )
        return counted["num_tokens"].numpy(), counted["limit"].numpy()

    def _decoded(self, name, answers, decode=None) -> list:
        """The answers to all rows, in their order, as Python has them.

        Args:
            name: of the signature.
            answers: the places of each batch, and name -> tensor whose axis 0
                is the batch.
            decode: if not the declaration's own `Signature.decode`.
        """
        signature = self.kind.signatures[name]
        decode = signature.decode if decode is None else decode
        names = decode or tuple(signature.outputs)
        padded = {} if decode else signature.padded
        values_of = {}
        for places, outputs in answers:
            outputs = {name: outputs[name].numpy() for name in names}
            for row, place in enumerate(places):
                own = {k: array[row : row + 1] for k, array in outputs.items()}
                values = {
                    name: _value(array[0])
                    for name, array in kinds.cut(own, padded).items()
                }
                if decode:
                    values = tuple(values[name] for name in decode)
                values_of[place] = values[0] if len(decode) == 1 else values
        return [values_of[place] for place in sorted(values_of)]


def _value(array):
    """A string, lists of strings, a number or an array of numbers."""
    if isinstance(array, bytes):
        return array.decode("utf-8", "replace")
    if array.dtype == object:
        return [_value(one) for one in array]
    return array if array.ndim else array.item()


def _too_long(lengths, limits) -> dict[int, tuple[int, int]]:
    return {
        int(place) + 1: (int(lengths[place]), int(limits[place]))
        for place in np.flatnonzero(lengths > limits)
    }


def _values_of(row, names, line: int) -> Sequence:
    """The texts and numbers of a row, in the order of a model's inputs."""
    if isinstance(row, Mapping) and {*row} == {*names}:
        return [row[name] for name in names]
    if isinstance(row, (tuple, list)) and len(row) == len(names):
        return row
    raise ValueError(
        f"Give each row as a tuple of texts, ({', '.join(names)}). Line {line} "
        f"is {reprlib.repr(row)}"
    )


def encoded(texts: Iterable[str]) -> list[bytes]:
    """UTF-8 of texts without NUL.

    Half a surrogate pair, which has no UTF-8, becomes "?".

    Raises:
        ValueError: If `texts` is one text, or holds something else.
    """
    if isinstance(texts, (str, bytes)):
        raise ValueError(
            f"Put a single text in a list. Received: {reprlib.repr(texts)}"
        )
    texts = list(texts)
    for line, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise ValueError(
                f"Each row is a text. Line {line} is {reprlib.repr(text)}"
            )
    # The graphs of older SavedModels read NUL as a byte that no model knows.
    return [text.replace("\0", "").encode("utf-8", "replace") for text in texts]


def _arrays(
    rows: Iterable, name: str, shape: Sequence[int]
) -> list[np.ndarray]:
    """Rows of numbers as arrays.

    Args:
        rows: arrays or nested lists.
        name: of the input, for the error.
        shape: of a row.

    Raises:
        ValueError: If a row has another shape, or holds something else.
    """
    found = [lines.numbers_of(row, shape) for row in rows]
    for line, row in enumerate(found, 1):
        if row is None:
            raise ValueError(
                f"Each {name} is {' x '.join(map(str, shape))} finite numbers. "
                f"That of line {line} is something else."
            )
    return found
