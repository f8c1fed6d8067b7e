"""Text in, text out: a model of translation with its search."""

import os
import pathlib
import typing
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from keras_attention.config import search as searches
from keras_attention.serving import (
    asked_search,
    constraints,
    minimum_risk,
    text_limits,
    text_model,
)

if typing.TYPE_CHECKING:
    import keras

    from keras_attention.data import Tokenizer
    from keras_attention.serving.translation_graph import TranslationGraph


class Translator(text_model.TextModel):
    """Translates texts: a live model, or one that `ka.load` has loaded.

    Its signatures, which a SavedModel has as well, are described in
    docs/serving.md.

    Args:
        model: a built `models.Seq2Seq`.
        source_tokenizer: a `data.Tokenizer`.
        target_tokenizer: that of the target; by default the same.
        max_source_length: limit of a text in tokens, END included; that of
            the model, if it has fewer learned positions. The functions
            translate what fits and say so; Python refuses.
        max_target_factor, max_target_offset: an answer has at most factor
            times the source's tokens plus offset; a reference as many as
            the answer to the longest source.
        stored_precision: in which weights of float32 are kept. With
            "float16" an exported model is half as large: the translator
            keeps a copy, which each search turns to float32 (for that time
            it holds both) and computes with.
        **search: choices of the search by their names, see `config.Search`.
            By default 4 beams and a length penalty of 1. `num_beams` is also
            the N of `n_best`. `score` and `align` follow what they are given.

    Raises:
        ValueError: If the model is not built, if a choice of the search is
            unknown or out of its bounds, if no text or no answer can keep the
            limits, if the precision is another one, or if the weights are too
            large for it. When it is asked, as
            `TextModel`, and if a reference is longer than any translation.
    """

    def __init__(
        self,
        model: "keras.Model",
        source_tokenizer: "Tokenizer",
        target_tokenizer: "Tokenizer | None" = None,
        *,
        max_source_length: int = 128,
        max_target_factor: float = 2.0,
        max_target_offset: int = 32,
        stored_precision: str = "float32",
        **search: typing.Unpack[searches.Given],
    ):
        # A live model needs Keras, a SavedModel does not.
        from keras_attention.serving import translation_graph

        # A table of learned positions ends, for texts and for answers.
        num_positions = getattr(model, "max_length", None) or tf.int32.max
        graph = translation_graph.TranslationGraph(
            model,
            source_tokenizer,
            target_tokenizer or source_tokenizer,
            searches.of(**search).whole(),
            text_limits.Limits(
                min(max_source_length, num_positions),
                max_target_factor,
                max_target_offset,
                num_positions,
            ),
            stored_precision,
        )
        super().__init__(graph.kind, graph.signatures, graph)

    if typing.TYPE_CHECKING:

        @property
        def graph(self) -> TranslationGraph: ...

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
        # As `_ask`, which would be one more function on the way to a step.
        name, answers = self._signature_of(num_beams), []
        translate = self._function(name)
        for places, inputs in self._batches(texts, batch_size, truncate):
            answers.append((places, translate(**inputs)))
        return self._decoded(name, answers)

    def _signature_of(self, num_beams: int | None) -> str:
        # Before the next question: one sample is not a greedy answer.
        if num_beams == 1:
            return "greedy"
        if num_beams is None or num_beams == self.num_beams:
            return "serving_default"
        raise ValueError(
            f"This translator searches with 1 or {self.num_beams} beams, not "
            f"with {num_beams}. Make or export one with another number."
        )

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
        search, answers = self._function("n_best"), []
        for places, inputs in self._batches(texts, batch_size, truncate):
            answers.append((places, search(**inputs)))
        return [_best_of(row) for row in self._decoded("n_best", answers)]

    def constrained(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        terms: Sequence[Sequence[str]] | None = None,
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list[tuple[str, float]]:
        """Translations that begin as they are told and hold given terms.

        See `decoding.constrained_beam_search`. A prefix and a term are tokens
        to it, those that the target's vocabulary makes of their text.

        Args:
            texts: what to translate.
            prefixes: what the translation of each text begins with.
            terms: what the translation of each text must hold, a list of at
                most 16 texts for each. A term has at most 128 tokens.
            batch_size, truncate: as for a call.

        Returns:
            For each text its translation and its score; "" and -inf if the
            beam had none that holds all terms.

        Raises:
            ValueError: If the translator was made without `constraints`, if a
                term has several lines or there are too many, and as the class
                says. If it is live, also if its vocabulary cannot write a term.
        """
        if constraints.NAME not in self.signatures:
            raise ValueError(
                "This translator takes no prefix and no terms. Load the run "
                "with constraints=True, or export it with --constraints."
            )
        rows = constraints.of_rows(texts, prefixes, terms)
        if self._graph is not None:
            tokenizer = self._graph.target_tokenizer
            constraints.check_known(rows["terms"], tokenizer)
        found = self._ask(constraints.NAME, texts, batch_size, truncate, **rows)
        return [(text, float(score)) for text, score in found]

    def search(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        terms: Sequence[Sequence[str]] | None = None,
        batch_size: int = 64,
        truncate: bool = False,
        **choices: typing.Unpack[searches.Given],
    ) -> list[list[tuple[str, float]]]:
        """The best hypotheses of another beam search, best first.

        Args:
            texts, batch_size, truncate: as for a call.
            prefixes, terms: as for `constrained`.
            **choices: `num_beams`, at most the translator's own,
                `length_penalty`, `coverage_penalty`, `no_repeat_ngram_size`
                and `min_length`. By default those of the translator.

        Raises:
            ValueError: If the translator was made without `per_request`, if a
                choice is another one or out of its bounds, and as
                `constrained`.
        """
        rows = constraints.of_rows(texts, prefixes, terms)
        if self._graph is not None:
            tokenizer = self._graph.target_tokenizer
            constraints.check_known(rows["terms"], tokenizer)
        found = self._asked(
            asked_search.SEARCH, texts, batch_size, truncate, choices, rows
        )
        return [_best_of(row) for row in found]

    def sample(
        self,
        texts: Sequence[str],
        prefixes: Sequence[str] | None = None,
        batch_size: int = 64,
        truncate: bool = False,
        **choices: typing.Unpack[searches.Given],
    ) -> list[list[tuple[str, float]]]:
        """As many samples of each text as there are beams, best first.

        Args:
            texts, batch_size, truncate: as for a call.
            prefixes: as for `constrained`.
            **choices: `temperature`, `top_k` (0 for all), `top_p`, `min_p`,
                `sampling_seed`, `no_repeat_ngram_size` and `min_length`. By
                default those of the translator, and a temperature of 1.

        Raises:
            ValueError: If the translator was made without `per_request`, if a
                choice is another one or out of its bounds, and as the class
                says.
        """
        rows = constraints.of_rows(texts, prefixes, None)
        del rows["terms"]
        found = self._asked(
            asked_search.SAMPLE, texts, batch_size, truncate, choices, rows
        )
        return [_best_of(row) for row in found]

    def _asked(self, name, texts, batch_size, truncate, choices, rows) -> list:
        """What a signature of `asked_search` gives to each text."""
        if name not in self.signatures:
            raise ValueError(
                "This translator keeps its search. Load the run with "
                "per_request=True, or export it with --per_request."
            )
        defaults = self.kind.signatures[name].choices
        numbers = {
            key: tf.constant(value)
            for key, value in asked_search.values(
                name, defaults, choices
            ).items()
        }
        function, answers = self._function(name), []
        batches = self._batches(texts, batch_size, truncate, **rows)
        for places, inputs in batches:
            answers.append((places, function(**inputs, **numbers)))
        return self._decoded(name, answers)

    def minimum_risk(
        self,
        texts: Sequence[str],
        batch_size: int = 64,
        truncate: bool = False,
    ) -> list[str]:
        """The hypothesis of each text that is most like all of `n_best`.

        `evaluation.minimum_bayes_risk` chooses the same from what `n_best`
        gives.

        Args:
            texts, batch_size, truncate: as for a call.

        Raises:
            ValueError: If the translator was made without `minimum_risk`, and
                as the class says.
        """
        if minimum_risk.NAME not in self.signatures:
            raise ValueError(
                "This translator does not choose by minimum risk. Load the run "
                "with minimum_risk=True, or export it with --minimum_risk."
            )
        return self._ask(minimum_risk.NAME, texts, batch_size, truncate)

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
        rows = self._of_pairs("score", texts, references, batch_size, truncate)
        return [(row["log_probability"], row["num_tokens"]) for row in rows]

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
        rows = self._of_pairs("align", texts, references, batch_size, truncate)
        names = ("source_tokens", "target_tokens", "attention")
        return [{name: row[name] for name in names} for row in rows]

    def export_ctranslate2(self, folder: str | os.PathLike) -> pathlib.Path:
        """Writes the model in the format of CTranslate2.

        The folder has CTranslate2's files, and `source.spm` and `target.spm`,
        the vocabularies, which SentencePiece reads.

        Args:
            folder: a new or an empty one.

        Returns:
            Its path.

        Raises:
            ValueError: If CTranslate2 has no such model, if the weights are
                quantized, or if the folder holds something.
            ImportError: If the package `ctranslate2` is not installed.
        """
        from keras_attention.serving import ctranslate2_export

        return ctranslate2_export.write(self.graph, pathlib.Path(folder))

    def _of_pairs(self, name, texts, references, batch_size, truncate) -> list:
        """What a signature answers to texts with their translations."""
        rows = self._ask(
            name, texts, batch_size, truncate, reference=references
        )
        for line, row in enumerate(rows, 1):
            # The texts fit: only a reference can have been cut.
            if row["truncated"] and not truncate:
                raise ValueError(
                    f"The reference in line {line} has more than "
                    f"{row['num_tokens']} tokens, the most of a translation. "
                    "Split the pair into sentences, or cut the end with "
                    "truncate=True."
                )
        return rows


def _best_of(row) -> list[tuple[str, float]]:
    """The texts of a list that were found, with their scores."""
    pairs = zip(row["translations"], row["scores"], strict=True)
    return [(text, float(score)) for text, score in pairs if np.isfinite(score)]
