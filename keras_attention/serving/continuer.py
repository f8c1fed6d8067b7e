"""Text in, what comes next out: a language model with its search."""

import typing
from collections.abc import Sequence

import tensorflow as tf

from keras_attention.config import search as searches
from keras_attention.data.readers import streams
from keras_attention.serving import text_model

if typing.TYPE_CHECKING:
    import keras

    from keras_attention import data


class Continuer(text_model.TextModel):
    """Continues texts: a live model, or one that `ka.load` has loaded.

    A call gives one continuation for each text, a space at its beginning
    where a word begins: `text + continuation` reads on, if the text does not
    end in a space. Each next token is the most probable one, or drawn if the
    search has a temperature. The model begins a blank text itself. With
    `truncate`, a text over the limit loses its beginning.

    Args:
        model: a built `models.LanguageModel`.
        tokenizer: a `data.Tokenizer`. With a `line_tokenizer.LineTokenizer`
            a text may have several lines: all are scored, and the last one
            alone is continued.
        max_length: limit of a text in tokens, END included; that of the
            model, if it has fewer learned positions. Python refuses a longer
            text. The functions continue its last tokens, and score its first.
        max_new_tokens: the most tokens of a continuation, END included. A
            continuation also ends where the learned positions do.
        stored_precision: in which weights of float32 are kept, see
            `Translator`.
        carries_state: whether the model has learned a stream whose state is
            carried: `score_stream` then goes on from state to state. Each line
            begins with START, and the model has `advance`.
        **search: choices of the search by their names, see `config.Search`:
            those of language models.

    Raises:
        ValueError: If the model is not built, if no text or no continuation
            can keep the limits, if the precision is another one, if the
            weights are too large for it, or if a choice of the search is
            another one.
            When it is asked, as `TextModel`.
    """

    def __init__(
        self,
        model: "keras.Model",
        tokenizer: "data.Tokenizer",
        max_length: int = 128,
        max_new_tokens: int = 32,
        stored_precision: str = "float32",
        carries_state: bool = False,
        **search: typing.Unpack[searches.Given],
    ):
        if max_length < 2 or max_new_tokens < 1:
            raise ValueError(
                "Expected max_length >= 2 and max_new_tokens >= 1. Received: "
                f"max_length={max_length}, max_new_tokens={max_new_tokens}"
            )
        # A live model needs Keras, a SavedModel does not.
        from keras_attention.serving import continuation_graph

        asked = searches.of(**search)
        searches.check_task(asked, "language_modelling")
        graph = continuation_graph.ContinuationGraph(
            model,
            tokenizer,
            max_length,
            max_new_tokens,
            stored_precision,
            carries_state,
            asked.whole(),
        )
        super().__init__(graph.kind, graph.signatures, graph)

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
        return self._ask("score", texts, batch_size, truncate)

    @property
    def reads_lines(self) -> bool:
        """Whether a line break is an END: the model has learned a stream."""
        # Two empty lines have an END each; as one text they show nothing.
        return self.num_tokens(["\n"]) == [2]

    @property
    def carries_state(self) -> bool:
        """Whether a stream is scored from the state after all lines before."""
        return "score_stream" in self.signatures

    def score_stream(
        self,
        lines: Sequence[str],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list[tuple[float, int]]:
        """Log-probability of lines, each after the lines before it.

        Every part of the stream is scored after up to half as many tokens as
        the model takes: log p(before, part) - log p(before). A model that
        `carries_state` scores the whole stream as one part, of any length.

        Args:
            lines: in their order, for a model that `reads_lines`.
            batch_size, truncate: see `score`.

        Returns:
            `(log_probability, num_tokens)` of each part.
        """
        columns = self._columns(lines)
        if self.carries_state:
            stream = {
                name: tf.constant([b"\n".join(columns[name])])
                for name in columns
            }
            outputs = self._function("score_stream")(**stream)
            return self._decoded("score_stream", [([0], outputs)])
        lengths, limits = self._counted(columns)
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
