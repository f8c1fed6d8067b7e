"""What every translator offers, live or loaded: lists of texts in and out."""

from collections.abc import Sequence

import numpy as np

from keras_attention.serving import text_model


class TextToText(text_model.TextModel):
    """Translates lists of texts through signatures: abstract.

    A subclass gives `signatures`, see `text_model.TextModel`, and `num_beams`.

    Attributes:
        task: what it does, by its name in the catalogue of models.
        output: the name of the output of `serving_default`.
        num_beams: beams of the search, the N of `n_best`.

    Raises:
        ValueError: If a text is longer than the model's limit (the message
            names the line, its length and the limit), if a reference is
            longer than any translation, if a text is no string, or if an
            older version of the package exported the model without what is
            asked for.
    """

    task = "translation"
    output = "translation"
    num_beams: int

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
            truncate: whether a text over the limit is cut at its end; it is
                refused otherwise.

        Returns:
            One translation for each text; "" for a blank one.

        Raises:
            ValueError: If `num_beams` is one that this translator does not
                have, and as the class says.
        """
        translate = self._function(self._signature_of(num_beams))
        batches = self._batches(texts, batch_size, truncate)
        for batch in batches:
            batch.outputs = translate(**batch.inputs)
        rows = text_model.rows_in_order(batches)
        return [row["translation"].decode() for row in rows]

    def _signature_of(self, num_beams: int | None) -> str:
        if num_beams is None or num_beams == self.num_beams:
            return "serving_default"
        if num_beams == 1:
            return "greedy"
        raise ValueError(
            f"This translator searches with 1 or {self.num_beams} beams; make "
            f"or export one with another number. Received: "
            f"num_beams={num_beams}"
        )

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
        batches = self._batches(texts, batch_size, truncate)
        return [
            {
                "translation": row["translation"].decode(),
                "score": float(row["score"]),
                "truncated": bool(row["truncated"]),
                **_without_padding(row),
            }
            for row in self._rows("with_attention", batches)
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
        search = self._function("n_best")
        batches = self._batches(texts, batch_size, truncate)
        for batch in batches:
            batch.outputs = search(**batch.inputs)
        return [
            [
                (text.decode(), float(score))
                for text, score in zip(
                    row["translations"], row["scores"], strict=True
                )
                if np.isfinite(score)
            ]
            for row in text_model.rows_in_order(batches)
        ]

    def score(
        self,
        texts: Sequence[str],
        references: Sequence[str],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list[tuple[float, int]]:
        """Log-probability of each reference, and its tokens (END counts).

        Args:
            texts: sources.
            references: their translations.
            batch_size: pairs in a batch, at most.
            truncate: whether a text or a reference over its limit is cut at
                its end; it is refused otherwise.
        """
        batches = self._batches(texts, batch_size, truncate, references)
        rows = self._rows("score", batches)
        if not truncate:
            _refuse_long_references(rows)
        return [
            (float(row["log_probability"]), int(row["num_tokens"]))
            for row in rows
        ]

    def align(
        self,
        texts: Sequence[str],
        references: Sequence[str],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list[dict]:
        """Where the model looks while it writes given translations.

        Args:
            texts: sources.
            references: their translations, which it has to write.
            batch_size, truncate: as for `score`.

        Returns:
            For each pair: source_tokens (S strings), target_tokens (T
            strings) and attention [T, S], without padding.
        """
        batches = self._batches(texts, batch_size, truncate, references)
        rows = self._rows("align", batches)
        if not truncate:
            _refuse_long_references(rows)
        return [_without_padding(row) for row in rows]

    def _rows(self, name, batches) -> list[dict]:
        function = self._function(name)
        for batch in batches:
            batch.outputs = function(**batch.inputs)
        return text_model.rows_in_order(batches)


def _refuse_long_references(rows: list[dict]) -> None:
    """For texts that fit: only a reference can have been cut."""
    for line, row in enumerate(rows, 1):
        if row["truncated"]:
            raise ValueError(
                "Expected references that a translation can be as long as: "
                "split the pair into sentences, or cut the end with "
                f"truncate=True. Received: more than {row['num_tokens']} "
                f"tokens in line {line}"
            )


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
