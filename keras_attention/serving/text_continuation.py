"""What every language model offers, live or loaded: texts, and what follows."""

from collections.abc import Sequence

from keras_attention.data.readers import streams
from keras_attention.serving import text_model


class TextContinuation(text_model.TextModel):
    """Continues and scores lists of texts through signatures: abstract.

    A subclass gives `signatures`, see `text_model.TextModel`.

    Attributes:
        task: what it does, by its name in the catalogue of models.
        output: the name of the output of `serving_default`.
        num_beams: beams of the search; 1 is greedy search.

    Raises:
        ValueError: If a text is longer than the model's limit (the message
            names the line, its length and the limit), or is no string.
    """

    task = "language_modelling"
    output = "continuation"
    num_beams = 1

    def __call__(
        self,
        texts: Sequence[str],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list[str]:
        """Continues each text.

        Args:
            texts: what to continue. The model begins a blank text itself.
            batch_size: texts in a batch, at most.
            truncate: whether a text over the limit loses its beginning; it
                is refused otherwise.

        Returns:
            One continuation for each text, a blank at its beginning where a
            word begins: `text + continuation` reads on, if the text does not
            end in a blank.
        """
        proceed = self._function("serving_default")
        batches = self._batches(texts, batch_size, truncate)
        for batch in batches:
            batch.outputs = proceed(**batch.inputs)
        rows = text_model.rows_in_order(batches)
        return [row["continuation"].decode() for row in rows]

    def score(
        self,
        texts: Sequence[str],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list[tuple[float, int]]:
        """Log-probability of each text, and its tokens (END counts).

        The perplexity of some texts is
        `exp(-sum(log_probability) / sum(num_tokens))`.

        Args:
            texts: what to score.
            batch_size: texts in a batch, at most.
            truncate: whether a text over the limit is cut at its end; it is
                refused otherwise.
        """
        measure = self._function("score")
        batches = self._batches(texts, batch_size, truncate)
        for batch in batches:
            batch.outputs = measure(**batch.inputs)
        rows = text_model.rows_in_order(batches)
        return [
            (float(row["log_probability"]), int(row["num_tokens"]))
            for row in rows
        ]

    @property
    def reads_lines(self) -> bool:
        """Whether a line break is an END: the model has learned a stream."""
        # Two empty lines have an END each; as one text they show nothing.
        return self.num_tokens(["\n"]) == [2]

    def score_stream(
        self,
        lines: Sequence[str],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list[tuple[float, int]]:
        """Log-probability of lines, each after the lines before it.

        Every part of the stream is scored after up to half as many tokens as
        the model takes: log p(before, part) - log p(before).

        Args:
            lines: in their order, for a model that `reads_lines`.
            batch_size, truncate: see `score`.

        Returns:
            `(log_probability, num_tokens)` of each part.
        """
        lengths, limits = self._counted(self._columns(lines))
        parts = list(streams.windows(lengths.tolist(), int(limits[0])))
        wholes = ["\n".join(lines[first:end]) for first, _, end in parts]
        befores = ["\n".join(lines[first:start]) for first, start, _ in parts]
        rows = []
        for (first, start, _), whole, before in zip(
            parts,
            self.score(wholes, batch_size, truncate),
            self.score(befores, batch_size, truncate),
            strict=True,
        ):
            # Of no lines, only the END of an empty one would be scored.
            log_probability, num_tokens = before if first < start else (0.0, 0)
            rows.append((whole[0] - log_probability, whole[1] - num_tokens))
        return rows
