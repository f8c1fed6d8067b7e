"""The functions of tensors of a language model: text, ids, search, text."""

import dataclasses

import keras
import tensorflow as tf

from keras_attention import data, decoding
from keras_attention.config import search as searches
from keras_attention.serving import (
    cards,
    draws,
    inspection,
    inspection_graph,
    kinds,
    token_rows,
)
from keras_attention.serving.graph import Graph, side_by_side
from keras_attention.tokens import END, PAD, START

# What `inspect` gives beside the maps.
_INSPECTED = {"continuation": (), "truncated": (), "num_given": ()}
_INSPECTED |= inspection.STEPS


class ContinuationGraph(Graph):
    """A language model as functions in graph.

    Args, Attributes: as the arguments of `Continuer`; `search` is a
        `config.Search`, the attribute `choices`.
    """

    def __init__(
        self,
        model: keras.Model,
        tokenizer: data.Tokenizer,
        max_length: int,
        max_new_tokens: int,
        stored_precision: str,
        carries_state: bool,
        search: searches.Search,
    ):
        super().__init__(model, [tokenizer], stored_precision)
        self.carries_state = carries_state
        self.tokenizer = tokenizer
        # A table of learned positions ends, also for a continuation.
        self._num_positions = getattr(model, "max_length", None) or tf.int32.max
        self.max_length = min(max_length, self._num_positions)
        self.max_new_tokens = max_new_tokens
        self.choices = search
        self.facts = f"""\
- Longest continuation: {max_new_tokens} tokens, END included.
- Search: {"sampling" if search.samples else "greedy"}{cards.more_of(search)}
"""
        self._search_rows = tf.function(
            self._search,
            input_signature=[
                tf.TensorSpec([None, None], tf.int32),
                tf.TensorSpec([None], tf.int32),
            ],
            autograph=False,
            # Three calls of one function, not three copies of it.
            experimental_attributes={"_noinline": True},
        )
        kind = dataclasses.replace(
            kinds.LANGUAGE_MODELLING,
            limit=self.max_length,
            search={
                name: value
                for name, value in search.given.items()
                if searches.is_of(name, kinds.LANGUAGE_MODELLING.name)
            },
        )
        functions = {"serving_default": self._continue, "score": self._score}
        if carries_state:
            more = {"score_stream": kinds.SCORE_STREAM}
            kind = dataclasses.replace(
                kind, signatures={**kind.signatures, **more}
            )
            functions["score_stream"] = self._score_stream
        if hasattr(model, "call_with_maps"):
            kind = inspection.declared(
                kind, ("text", "answer"), _INSPECTED, model.maps
            )
            functions[inspection.NAME] = self._inspect
        self.define(kind, functions)

    def _tokenize(self, text):
        """Ragged ids [B, None], and how many there are, END included."""
        ids = self.tokenizer.tokenize(tf.ensure_shape(text, [None]))
        return ids, tf.cast(ids.row_lengths(), tf.int32) + 1

    def _continue(self, text):
        prompt_ids, answers = self._answers(text)
        return {"continuation": self._behind(prompt_ids, answers.ids[:, 0])}

    def _answers(self, text):
        """Prompts [B, P], and the `SearchResult` that goes on from them."""
        ids, _ = self._tokenize(text)
        prompts = self._fitting(token_rows.last_lines(ids))
        num_given = tf.cast(prompts.row_lengths(), tf.int32)
        prompt_ids = prompts.to_tensor(PAD)
        answers = side_by_side(
            self._search_rows.get_concrete_function(),
            prompt_ids,
            tf.minimum(num_given + self.max_new_tokens, self._num_positions),
        )
        return prompt_ids, answers

    def _behind(self, prompt_ids, ids):
        """What the texts of ids [B, T] have behind those of the prompts."""
        given = self.tokenizer.detokenize(prompt_ids)
        whole = self.tokenizer.detokenize(ids)
        # As a text of their own the new tokens would lose their first space.
        start = tf.minimum(tf.strings.length(given), tf.strings.length(whole))
        length = tf.strings.length(whole) - start
        return data.valid_utf8(tf.strings.substr(whole, start, length))

    def _inspect(self, text, answer):
        """All layers and heads, and each step's best tokens."""
        prompt_ids, answers = self._answers(text)
        own = answers.ids[:, 0]
        # The answer goes on from the text: tokens of its own would begin with
        # a space.
        ids, lengths = self._tokenize(tf.strings.join([text, answer]))
        given = token_rows.ended(ids[:, : self.max_length - 1])
        is_given = tf.strings.length(tf.strings.strip(answer)) > 0
        labels = inspection_graph.chosen(is_given, given, own)
        inputs = self._inputs(labels)
        with self.weights.in_use():
            logits, maps = self.model.call_with_maps(inputs)
        _, text_lengths = self._tokenize(text)
        num_prompted = tf.math.count_nonzero(prompt_ids, 1, dtype=tf.int32)
        num_given = tf.where(is_given, text_lengths - 1, num_prompted)
        real = labels != PAD
        num_real = tf.math.count_nonzero(real, 1, dtype=tf.int32)
        num_given = tf.minimum(num_given, num_real - 1)
        first = tf.range(tf.shape(labels)[1]) < num_given[:, None]
        lengths = tf.where(is_given, lengths, text_lengths)
        pieces = inspection_graph.piece_of(self.tokenizer)
        is_real = {"target": real, "input": real}
        return {
            "continuation": self._behind(tf.where(first, labels, PAD), labels),
            "truncated": lengths > self.max_length,
            "num_given": num_given,
            **inspection_graph.steps(pieces, inputs, labels, logits),
            **inspection_graph.without_padding(maps, self.model.maps, is_real),
        }

    def _fitting(self, ids):
        """Prompts, too long ones without their beginning: ragged [B, P]."""
        most = self.max_length - 1
        # What is cut anyway leaves positions for the continuation.
        kept = max(min(most, self._num_positions - self.max_new_tokens), 1)
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        first = tf.where(lengths > most, lengths - kept, 0)
        is_kept = tf.ragged.range(lengths) >= first[:, tf.newaxis]
        return tf.ragged.boolean_mask(ids, is_kept)

    def _search(self, prompt_ids, max_lengths):
        """Answers [b, 1, T] that begin with prompts [b, P], START left out."""
        with self.weights.in_use():
            room = tf.maximum(tf.reduce_max(max_lengths), 1)
            batch_size = tf.shape(prompt_ids)[0]
            search, drawn = decoding.greedy_search, {}
            if self.choices.samples:
                search = decoding.sampling_search
                drawn = draws.arguments(self.choices, prompt_ids)
            return search(
                decoding.without_source(self.model.step),
                memory=(),
                state=self.model.initial_state(batch_size, room),
                source_mask=None,
                max_lengths=max_lengths,
                forbidden_ids=token_rows.FORBIDDEN_IDS,
                prefix_ids=prompt_ids,
                no_repeat_ngram_size=self.choices.no_repeat_ngram_size,
                min_lengths=self._min_lengths(prompt_ids),
                **drawn,
            )

    def _min_lengths(self, prompt_ids):
        """The fewest tokens of each answer, its prompt [b, P] included."""
        if not self.choices.min_length:
            return None
        num_given = tf.math.count_nonzero(prompt_ids, 1, dtype=tf.int32)
        return num_given + self.choices.min_length

    def _score(self, text):
        ids, lengths = self._tokenize(text)
        labels = token_rows.ended(ids[:, : self.max_length - 1])
        inputs = self._inputs(labels)
        with self.weights.in_use():
            logits = self.model(inputs, training=False)
        log_probability, num_tokens = decoding.sequence_log_probability(
            logits, labels
        )
        return {
            "log_probability": log_probability,
            "num_tokens": num_tokens,
            "truncated": lengths > self.max_length,
        }

    def _inputs(self, labels):
        """What the model reads before each label: int [B, T]."""
        starts = tf.fill([tf.shape(labels)[0], 1], START)
        inputs = tf.concat([starts, labels], axis=1)[:, :-1]
        if self.carries_state:
            # Each line begins with START, also those behind another one.
            inputs = tf.where(inputs == END, START, inputs)
        return inputs

    def _score_stream(self, text):
        """Scores texts of any length, part by part."""
        ids, _ = self._tokenize(text)
        labels = token_rows.ended(ids)
        inputs, batch_size = self._inputs(labels), tf.shape(labels)[0]

        def score_part(start, state, log_probability, num_tokens):
            part = slice(start, start + self.max_length)
            logits, state = self.model.advance(inputs[:, part], state)
            of_part, count = decoding.sequence_log_probability(
                logits, labels[:, part]
            )
            # A long sum of float32 would lose its last digits.
            log_probability += tf.cast(of_part, tf.float64)
            return part.stop, state, log_probability, num_tokens + count

        with self.weights.in_use():
            _, _, log_probability, num_tokens = tf.while_loop(
                lambda start, *_: start < tf.shape(labels)[1],
                score_part,
                (
                    tf.constant(0),
                    self.model.initial_state(batch_size, self.max_length),
                    tf.zeros([batch_size], tf.float64),
                    tf.zeros([batch_size], tf.int32),
                ),
            )
        return {
            "log_probability": tf.cast(log_probability, tf.float32),
            "num_tokens": num_tokens,
        }
