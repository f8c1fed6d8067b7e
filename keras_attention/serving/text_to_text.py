"""What every translator offers, live or loaded: lists of texts in and out."""

import types
from collections.abc import Sequence

import numpy as np
import tensorflow as tf


class TextToText:
    """Translates lists of texts through signatures: abstract.

    A subclass gives `signatures`: name -> function of string tensors by
    keyword, which returns a dict of tensors whose axis 0 is the batch. Texts
    are sorted by length into batches; results come in the order given.

    Errors: `ValueError` where a text is longer than the model's limit (it
    names the line, its length and the limit) or a reference longer than any
    translation, where texts are no strings, where `num_beams` is one that
    this translator does not have, or where an older version of the package
    exported it without what is asked for.
    """

    signatures: dict = types.MappingProxyType({})

    def __call__(
        self,
        texts: Sequence[str],
        num_beams: int | None = None,
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list[str]:
        """Translates each text.

        Args:
            texts: what to translate.
            num_beams: 1 for greedy search, or the number the translator
                was made with; that one by default.
            batch_size: texts in a batch, at most.
            truncate: translate what fits of a text over the limit, and do
                not refuse it.

        Returns:
            One translation for each text; "" for a blank one.
        """
        name = self._signature(num_beams)
        rows = self._run(name, texts, batch_size, truncate=truncate)
        return [row["translation"].decode() for row in rows]

    def _signature(self, num_beams: int | None) -> str:
        available = self.num_beams
        if num_beams is None or num_beams == available:
            return "serving_default"
        if num_beams == 1:
            return "greedy"
        raise ValueError(
            f"This translator searches with 1 or {available} beams; make "
            f"or export one with another number. Received: "
            f"num_beams={num_beams}"
        )

    @property
    def num_beams(self) -> int:
        """Beams of the search: the N of `n_best`."""
        raise NotImplementedError

    def with_attention(
        self,
        texts: Sequence[str],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list[dict]:
        """Translations with their tokens and attention.

        Args:
            texts, batch_size, truncate: as for a call.

        Returns:
            For each text: translation, score, truncated, source_tokens
            (S strings), target_tokens (T strings) and attention [T, S],
            without padding.
        """
        return [
            {
                "translation": row["translation"].decode(),
                "score": float(row["score"]),
                "truncated": bool(row["truncated"]),
                **_without_padding(row),
            }
            for row in self._run(
                "with_attention", texts, batch_size, truncate=truncate
            )
        ]

    def n_best(
        self,
        texts: Sequence[str],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list[list[tuple[str, float]]]:
        """The best hypotheses of each text with their scores, best first.

        Args:
            texts, batch_size, truncate: as for a call.
        """
        return [
            [
                (text.decode(), float(score))
                for text, score in zip(
                    row["translations"], row["scores"], strict=True
                )
                if np.isfinite(score)
            ]
            for row in self._run("n_best", texts, batch_size, truncate=truncate)
        ]

    def score(
        self,
        texts: Sequence[str],
        references: Sequence[str],
        batch_size: int = 64,
    ) -> list[tuple[float, int]]:
        """Log-probability of each reference, and its tokens (END counts)."""
        rows = self._run_pairs("score", texts, references, batch_size)
        return [
            (float(row["log_probability"]), int(row["num_tokens"]))
            for row in rows
        ]

    def align(
        self,
        texts: Sequence[str],
        references: Sequence[str],
        batch_size: int = 64,
    ) -> list[dict]:
        """Where the model looks while it writes given translations.

        Args:
            texts: sources.
            references: their translations, which it has to write.
            batch_size: pairs in a batch, at most.

        Returns:
            For each pair: source_tokens (S strings), target_tokens (T
            strings) and attention [T, S], without padding.
        """
        return [
            _without_padding(row)
            for row in self._run_pairs("align", texts, references, batch_size)
        ]

    def num_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, END included; of those over the limit too."""
        return self._counted(_encoded(texts))[0].tolist()

    def num_truncated(self, texts: Sequence[str]) -> int:
        """How many texts are over the limit: `truncate` cuts their ends."""
        lengths, limits = self._counted(_encoded(texts))
        return int(np.count_nonzero(lengths > limits))

    def _run_pairs(self, name, texts, references, batch_size) -> list[dict]:
        rows = self._run(name, texts, batch_size, references)
        for line, row in enumerate(rows, 1):
            if row["truncated"]:
                raise ValueError(
                    "Expected references that a translation can be as long "
                    "as: split the pair into sentences. Received: more than "
                    f"{row['num_tokens']} tokens in line {line}"
                )
        return rows

    def _run(
        self, name, texts, batch_size, references=None, truncate=False
    ) -> list[dict]:
        if batch_size < 1:
            raise ValueError(
                "Expected batch_size of at least 1. "
                f"Received: batch_size={batch_size}"
            )
        texts = _encoded(texts)
        if not texts:
            return []
        if references is not None:
            references = _encoded(references)
            if len(references) != len(texts):
                raise ValueError(
                    "Expected one reference for each text. Received: "
                    f"{len(texts)} texts, {len(references)} references"
                )
        if name not in self.signatures:
            raise ValueError(
                f"Expected a model with the signature {name!r}: export it "
                f"again. Received: one with {sorted(self.signatures)}"
            )
        lengths = self._lengths(texts, truncate)
        order = np.argsort(lengths, kind="stable")
        rows = [None] * len(texts)
        for start in range(0, len(texts), batch_size):
            indices = order[start : start + batch_size]
            inputs = {"text": tf.constant([texts[i] for i in indices])}
            if references is not None:
                inputs["reference"] = tf.constant(
                    [references[i] for i in indices]
                )
            outputs = self.signatures[name](**inputs)
            outputs = {key: value.numpy() for key, value in outputs.items()}
            for place, index in enumerate(indices):
                rows[index] = {
                    key: value[place] for key, value in outputs.items()
                }
        return rows

    def _counted(self, texts) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of each text, and the most that there may be."""
        counted = self.signatures["num_tokens"](
            text=tf.constant(texts, tf.string, shape=[len(texts)])
        )
        return counted["num_tokens"].numpy(), counted["limit"].numpy()

    def _lengths(self, texts, truncate) -> np.ndarray:
        lengths, limits = self._counted(texts)
        too_long = np.flatnonzero(lengths > limits)
        if len(too_long) and not truncate:
            line = int(too_long[0])
            raise ValueError(
                f"Expected texts of at most {limits[line]} tokens: split the "
                f"text into sentences. Received: {lengths[line]} tokens in "
                f"line {line + 1}"
            )
        return lengths


def _without_padding(row: dict) -> dict:
    """The tokens and the attention of one row of a batch."""
    source, target = (
        [token.decode() for token in row[name] if token]
        for name in ("source_tokens", "target_tokens")
    )
    return {
        "source_tokens": source,
        "target_tokens": target,
        "attention": row["attention"][: len(target), : len(source)],
    }


def _encoded(texts: Sequence[str]) -> list[bytes]:
    """UTF-8; half a surrogate pair, which has none, becomes "?"."""
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
