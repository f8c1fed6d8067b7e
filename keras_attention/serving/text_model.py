"""What every model of texts offers, live or loaded: lists of any length."""

import dataclasses
import types
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf


@dataclasses.dataclass
class Batch:
    """Some of the texts, and what a signature answers to them.

    Attributes:
        places: int [B], where the texts stand in the list.
        inputs: name -> string tensor [B].
        outputs: name -> tensor whose axis 0 is the batch.
    """

    places: np.ndarray
    inputs: dict
    outputs: dict = dataclasses.field(default_factory=dict)


class TextModel:
    """A model that answers lists of texts through signatures: abstract.

    A subclass gives `signatures`: name -> function of tensors by keyword,
    which returns a dict of tensors. Axis 0 of each tensor is the batch. Texts
    are sorted by length into batches. Results come in the order given.

    Attributes:
        inputs: the names of the inputs of `serving_default`.
    """

    signatures: Mapping = types.MappingProxyType({})
    inputs: tuple[str, ...] = ("text",)

    def num_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, END included; of those over the limit too."""
        return self._counted(self._columns(texts))[0].tolist()

    def too_long(self, texts: Sequence[str]) -> dict[int, tuple[int, int]]:
        """The texts over the limit, which a call refuses or `truncate` cuts.

        Args:
            texts: what is to be answered.

        Returns:
            Line, from 1 -> `(num_tokens, limit)`, of each text over the
            limit.
        """
        return _too_long(*self._counted(self._columns(texts)))

    def num_truncated(self, texts: Sequence[str]) -> int:
        """How many texts are over the limit. `truncate` cuts them."""
        return len(self.too_long(texts))

    def _function(self, name):
        """A signature's function.

        Raises:
            ValueError: If an older version of the package exported the model
                without it.
        """
        if name not in self.signatures:
            raise ValueError(
                f"Expected a model with the signature {name!r}: export it "
                f"again. Received: one with {sorted(self.signatures)}"
            )
        return self.signatures[name]

    def _batches(
        self, texts, batch_size, truncate, references=None
    ) -> list[Batch]:
        """Texts and, to each, its reference, in batches of like lengths."""
        if batch_size < 1:
            raise ValueError(
                "Expected batch_size of at least 1. "
                f"Received: batch_size={batch_size}"
            )
        columns = self._columns(texts)
        lengths, limits = self._counted(columns)
        if references is not None:
            columns["reference"] = encoded(references)
        sizes = [len(column) for column in columns.values()]
        if min(sizes) < max(sizes):
            raise ValueError(
                "Expected one reference for each text. Received: "
                f"{sizes[0]} texts, {sizes[1]} references"
            )
        long_texts = _too_long(lengths, limits)
        if long_texts and not truncate:
            line, (num_tokens, limit) = next(iter(long_texts.items()))
            raise ValueError(
                f"Expected texts of at most {limit} tokens: split the text "
                "into sentences, or let it be cut (truncate=True, --truncate). "
                f"Received: {num_tokens} tokens in line {line}"
            )
        order = np.argsort(lengths, kind="stable")
        batches = []
        for start in range(0, len(order), batch_size):
            places = order[start : start + batch_size]
            inputs = {
                name: tf.constant([column[place] for place in places])
                for name, column in columns.items()
            }
            batches.append(Batch(places, inputs))
        return batches

    def _columns(self, texts) -> dict[str, list[bytes]]:
        """The inputs by their names, each with a text for each row."""
        return {"text": encoded(texts)}

    def _counted(self, columns) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of each text, and the most that there may be."""
        counted = self.signatures["num_tokens"](
            **{
                name: tf.constant(texts, tf.string, shape=[len(texts)])
                for name, texts in columns.items()
            }
        )
        return counted["num_tokens"].numpy(), counted["limit"].numpy()


def _too_long(lengths, limits) -> dict[int, tuple[int, int]]:
    return {
        int(place) + 1: (int(lengths[place]), int(limits[place]))
        for place in np.flatnonzero(lengths > limits)
    }


def rows_in_order(batches: Iterable[Batch]) -> list[dict]:
    """The answer to each text, in the order of the texts.

    Args:
        batches: batches with outputs.

    Returns:
        For each text a dict: name -> its row of that output.
    """
    rows = {}
    for batch in batches:
        columns = {name: one.numpy() for name, one in batch.outputs.items()}
        for row, place in enumerate(batch.places):
            rows[place] = {name: one[row] for name, one in columns.items()}
    return [rows[place] for place in sorted(rows)]


def encoded(texts: Sequence[str]) -> list[bytes]:
    """UTF-8 of texts; half a surrogate pair, which has none, becomes "?".

    Raises:
        ValueError: If `texts` is one text, or holds something else.
    """
    if isinstance(texts, (str, bytes)):
        raise ValueError(
            "Expected a list of texts; put a single text in a list. "
            f"Received: {texts!r}"
        )
    texts = list(texts)
    for line, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise ValueError(
                f"Expected strings. Received: {text!r} in line {line}"
            )
    return [text.encode("utf-8", "replace") for text in texts]
