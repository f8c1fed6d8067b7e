"""The translator's functions of tensors: texts, ids, search, texts."""

import dataclasses
import functools

import keras
import numpy as np
import tensorflow as tf

from keras_attention import decoding
from keras_attention.config import search as searches
from keras_attention.data import Tokenizer
from keras_attention.serving import (
    asked_search,
    asked_search_graph,
    cards,
    constraints,
    constraints_graph,
    draws,
    inspection,
    inspection_graph,
    kinds,
    minimum_risk,
    quick_search,
    text_limits,
    token_rows,
)
from keras_attention.serving.graph import Graph, side_by_side
from keras_attention.tokens import END, PAD

# In place of a number of beams: tokens are drawn.
DRAWN = 0
# What `inspect` gives beside the maps.
_INSPECTED = {"translation": (), "truncated": ()}
_INSPECTED |= {"source_tokens": ("source_tokens",)}
_INSPECTED |= inspection.STEPS | inspection.TREE


class TranslationGraph(Graph):
    """A model of translation as functions in graph.

    Args:
        model, source_tokenizer, target_tokenizer, stored_precision: as of
            `Translator`.
        search: `config.Search` without a choice that is None.
        limits: `text_limits.Limits`.

    Attributes:
        choices: as `search`.
        limits, source_tokenizer, target_tokenizer: as given.
    """

    def __init__(
        self,
        model: keras.Model,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        search: searches.Search,
        limits: text_limits.Limits,
        stored_precision: str,
    ):
        tokenizers = [source_tokenizer, target_tokenizer]
        super().__init__(model, tokenizers, stored_precision)
        self.source_tokenizer, self.target_tokenizer = tokenizers
        self.choices, num_beams = search, search.num_beams
        beams = DRAWN if search.samples else num_beams
        self.facts = cards.of_search(search, limits)
        self.limits = limits
        # A search is traced once for all functions that search alike.
        self._search_of_rows = functools.cache(self._make_search_of_rows)
        searches = {
            "serving_default": (beams, 1, self._write_translation),
            "greedy": (1, 1, self._write_translation),
            "with_attention": (beams, 1, self._write_attention),
            "n_best": (beams, num_beams, self.write_n_best),
        }
        kind = dataclasses.replace(
            kinds.TRANSLATION,
            num_beams=num_beams,
            limit=limits.max_source_length,
            search=search.given,
        )
        more = {}
        if search.minimum_risk:
            more[minimum_risk.NAME] = minimum_risk.SIGNATURE
            searches[minimum_risk.NAME] = (beams, num_beams, self._write_chosen)
        functions = {
            name: functools.partial(self._answer, *search)
            for name, search in searches.items()
        } | {"score": self._score, "align": self._align}
        if search.constraints:
            more[constraints.NAME] = constraints.SIGNATURE
            functions[constraints.NAME] = constraints_graph.function_of(self)
        if search.per_request:
            more |= asked_search.signatures(search)
            functions |= asked_search_graph.functions_of(self)
        kind = dataclasses.replace(kind, signatures={**kind.signatures, **more})
        if hasattr(model, "call_with_maps"):
            kind = inspection.declared(
                kind, ("text", "answer"), _INSPECTED, model.maps
            )
            functions[inspection.NAME] = self._inspect
        self.define(kind, functions)
        # What XLA cannot compile in Keras, it cannot compile here. And
        # quick searches draw nothing.
        if model.supports_jit and not search.samples:
            self._define_quick_searches()

    def _define_quick_searches(self):
        """The functions of `quick_search`."""
        text = tf.TensorSpec([None], tf.string)
        counts = tf.TensorSpec([None], tf.int32)
        ids = tf.TensorSpec([None, None], tf.int32)
        make = functools.partial(tf.function, autograph=False)
        room = int(self.limits.target_lengths(quick_search.MOST_TOKENS))

        def encode(text):
            source_ids, lengths = self.encode_text(text)
            return source_ids, lengths, self.max_lengths(source_ids)

        def search(num_beams, source_ids, max_lengths, weights):
            inputs = (source_ids, max_lengths, room, weights)
            return self._search(num_beams, 1, False, *inputs).ids[:, 0]

        self.quick_tools = {
            "weights": make(self.weights.values, input_signature=[]),
            "encode": make(encode, input_signature=[text]),
            "decode": make(self.detokenize, input_signature=[ids, counts]),
        }
        beams = {"greedy": 1}
        if 1 < self.choices.num_beams <= quick_search.MOST_ROWS:
            beams["serving_default"] = self.choices.num_beams
        self.quick_searches = {
            name: make(
                functools.partial(search, num_beams),
                input_signature=[ids, counts, self.weights.specs],
            )
            for name, num_beams in beams.items()
        }

    def _answer(self, num_beams, n_best, write, text):
        """Text [B] to ids, ids to answers, answers to what `write` makes."""
        # As `search`, which would be one more function on the way to a step.
        source_ids, lengths = self.encode_text(text)
        # The one text of a greedy search needs no score.
        is_scored = num_beams != 1 or write != self._write_translation
        search = self._search_of_rows(num_beams, n_best, is_scored)
        answers = side_by_side(
            search.get_concrete_function(),
            source_ids,
            self.max_lengths(source_ids),
        )
        return write(answers, source_ids, lengths)

    def encode_text(self, text):
        """Ids [B, S] that fit, and how many tokens there were, END included."""
        text = tf.ensure_shape(text, [None])
        ids = self.source_tokenizer.tokenize(text)
        lengths = tf.cast(ids.row_lengths(), tf.int32) + 1  # and END
        fitting = ids[:, : self.limits.max_source_length - 1]
        return token_rows.ended(fitting), lengths

    def search(self, source_ids, num_beams: int, n_best=1, is_scored=True):
        """The search between the tokenizers, as every signature does it.

        Args:
            source_ids: int32 [B, S], END included, then padding.
            num_beams: 1 for greedy search, `DRAWN` for sampling.
            n_best: how many answers, at most `num_beams`.
            is_scored: of greedy search alone, see there.

        Returns:
            `decoding.SearchResult`.
        """
        is_scored |= num_beams != 1
        search = self._search_of_rows(num_beams, n_best, is_scored)
        return side_by_side(
            search.get_concrete_function(),
            source_ids,
            self.max_lengths(source_ids),
        )

    def _make_search_of_rows(self, num_beams, n_best, is_scored):
        return tf.function(
            functools.partial(self._search, num_beams, n_best, is_scored),
            input_signature=[
                tf.TensorSpec([None, None], tf.int32),
                tf.TensorSpec([None], tf.int32),
            ],
            autograph=False,
            # Three calls of one function, not three copies of it: the first
            # translation of a loaded model takes half as long.
            experimental_attributes={"_noinline": True},
        )

    def _search(
        self,
        num_beams,
        n_best,
        is_scored,
        source_ids,
        max_lengths,
        room=None,
        weights=None,
    ):
        """Answers [b, n_best, T] to ids [b, S] of at most so many tokens."""
        with self.weights.in_use(weights):
            arguments = self.search_arguments(
                source_ids,
                max_lengths,
                room,
                num_beams if self.choices.num_groups == 1 else 1,
            )
            if num_beams == DRAWN:
                drawn = draws.arguments(self.choices, source_ids, n_best)
                return decoding.sampling_search(**arguments, **drawn)
            arguments |= {"room": room, **self.penalties}
            if num_beams == 1:
                return decoding.greedy_search(**arguments, is_scored=is_scored)
            arguments |= {"num_beams": num_beams, "n_best": n_best}
            if self.choices.num_groups == 1:
                return decoding.beam_search(**arguments)
            return decoding.diverse_beam_search(
                **arguments, **self.choices.groups
            )

    def search_arguments(
        self, source_ids, max_lengths, room=None, num_hypotheses=1
    ):
        """What every search takes, and `settle` if a beam of N gains by it."""
        memory = self.model.encode(source_ids)
        room = room or tf.maximum(tf.reduce_max(max_lengths), 1)
        state = self.model.initial_state(memory, room)
        memory, step, settle = self.model.settling(
            memory, state, num_hypotheses
        )
        arguments = {
            "step": step,
            "memory": memory,
            "state": state,
            "source_mask": source_ids != PAD,
            "max_lengths": max_lengths,
            "forbidden_ids": token_rows.FORBIDDEN_IDS,
            "no_repeat_ngram_size": self.choices.no_repeat_ngram_size,
            "min_lengths": self.choices.min_length or None,
        }
        return {**arguments, "settle": settle} if settle else arguments

    @property
    def penalties(self):
        """The penalties of a beam search."""
        return {
            "alpha": self.choices.length_penalty,
            "beta": self.choices.coverage_penalty,
        }

    def max_lengths(self, source_ids):
        """The most tokens of each answer: ids [B, S] -> [B]."""
        return self.limits.target_lengths(
            tf.math.count_nonzero(source_ids != PAD, axis=1, dtype=tf.int32)
        )

    def detokenize(self, ids, lengths):
        """Translations [B] of ids [B, T]; "" for a blank source."""
        text = self.target_tokenizer.detokenize(ids)
        return tf.where(lengths > 1, text, "")

    def _write_translation(self, answers, source_ids, lengths):
        return {"translation": self.detokenize(answers.ids[:, 0], lengths)}

    def _write_attention(self, answers, source_ids, lengths):
        # What the model makes of a blank text is not shown, and takes no room.
        blank = lengths <= 1
        shown = tf.where(blank, 0, answers.lengths[:, 0])
        longest = tf.maximum(tf.reduce_max(shown), 0)
        ids = answers.ids[:, 0, :longest]
        weights = answers.attention_weights[:, 0, :longest]
        source_tokens = token_rows.pieces(self.source_tokenizer, source_ids)
        target_tokens = token_rows.pieces(self.target_tokenizer, ids)
        return {
            "translation": self.detokenize(ids, lengths),
            "score": tf.where(blank, 0.0, answers.score[:, 0]),
            "truncated": lengths > self.limits.max_source_length,
            "source_tokens": source_tokens,
            "target_tokens": tf.where(blank[:, None], "", target_tokens),
            "attention": tf.where(blank[:, None, None], 0.0, weights),
        }

    def write_n_best(self, answers, source_ids, lengths):
        """Texts and scores [B, N] of a `SearchResult`, best first."""
        batch_size, num_beams = tf.shape(lengths)[0], self.choices.num_beams
        flat = tf.reshape(answers.ids, [batch_size * num_beams, -1])
        texts = self.detokenize(flat, tf.repeat(lengths, num_beams))
        missing = answers.lengths == 0
        # A blank text has one translation: the blank one.
        blank = (lengths <= 1)[:, None]
        scores = tf.where(missing | blank, -np.inf, answers.score)
        first = tf.range(num_beams)[None, :] == 0
        scores = tf.where(blank & first, 0.0, scores)
        texts = tf.reshape(texts, [batch_size, num_beams])
        return {
            "translations": tf.where(missing, "", texts),
            "scores": tf.ensure_shape(scores, [None, num_beams]),
        }

    def _write_chosen(self, *answers):
        found = self.write_n_best(*answers)
        is_there = tf.math.is_finite(found["scores"])
        text = minimum_risk.chosen(found["translations"], is_there)
        return {"translation": text}

    def _encode_pair(self, text, reference, name="reference"):
        """Ids [B, S], labels [B, T], and outputs about their lengths."""
        aligned = tf.debugging.assert_equal(
            tf.size(text),
            tf.size(reference),
            f"There must be one `{name}` for each `text`",
        )
        # A bare session runs nothing that no output depends on.
        with tf.control_dependencies([aligned]):
            text = tf.identity(text)
        source_ids, source_lengths = self.encode_text(text)
        ids = self.target_tokenizer.tokenize(tf.ensure_shape(reference, [None]))
        lengths = tf.cast(ids.row_lengths(), tf.int32) + 1  # and END
        max_source_length = self.limits.max_source_length
        limit = self.limits.target_lengths(max_source_length)
        labels = token_rows.ended(ids[:, : limit - 1])
        outputs = {
            "num_tokens": tf.minimum(lengths, limit),
            "truncated": (lengths > limit)
            | (source_lengths > max_source_length),
        }
        return source_ids, labels, outputs

    def _score(self, text, reference):
        source_ids, labels, outputs = self._encode_pair(text, reference)
        with self.weights.in_use():
            log_probability = self.model.log_probability(source_ids, labels)
        return {"log_probability": log_probability, **outputs}

    def _inspect(self, text, answer):
        """All layers and heads, each step's best tokens, and the beam."""
        source_ids, given, outputs = self._encode_pair(text, answer, "answer")
        with self.weights.in_use():
            limits, width = self.max_lengths(source_ids), self.choices.num_beams
            result, tree = decoding.beam_tree(
                **self.search_arguments(source_ids, limits, None, width),
                **self.penalties,
                num_beams=width,
            )
            is_given, is_text = given[:, 0] != END, source_ids[:, 0] != END
            # What the model makes of a blank text is not shown.
            own = tf.where(is_text[:, None], result.ids[:, 0], PAD)
            labels = inspection_graph.chosen(is_given, given, own)
            inputs = inspection_graph.inputs_of(labels)
            logits, maps = self.model.call_with_maps(
                {"source_ids": source_ids, "target_ids": inputs}
            )
        pieces = inspection_graph.piece_of(self.target_tokenizer)
        real = labels != PAD
        is_real = {"source": source_ids != PAD, "target": real, "input": real}
        return {
            "translation": self.target_tokenizer.detokenize(labels),
            "truncated": outputs["truncated"],
            "source_tokens": token_rows.pieces(
                self.source_tokenizer, source_ids
            ),
            **inspection_graph.steps(pieces, inputs, labels, logits),
            **inspection_graph.nodes(pieces, tree, is_text),
            **inspection_graph.without_padding(maps, self.model.maps, is_real),
        }

    def _align(self, text, reference):
        source_ids, labels, outputs = self._encode_pair(text, reference)
        with self.weights.in_use():
            memory = self.model.encode(source_ids)
            result = decoding.forced_search(
                self.model.prepared_step(),
                memory,
                self.model.initial_state(memory, tf.shape(labels)[1]),
                source_ids != PAD,
                labels,
            )
        return {
            "source_tokens": token_rows.pieces(
                self.source_tokenizer, source_ids
            ),
            "target_tokens": token_rows.pieces(self.target_tokenizer, labels),
            "attention": result.attention_weights[:, 0],
            **outputs,
        }
