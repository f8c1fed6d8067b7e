"""Text in, text out: a model with its tokenizers and its search."""

import types

import keras
import numpy as np
import tensorflow as tf

from keras_attention import decoding
from keras_attention.data.tokenizer import Tokenizer
from keras_attention.serving import cards, savedmodel, stored_weights
from keras_attention.serving.text_to_text import TextToText
from keras_attention.tokens import END, END_TEXT, PAD, START, UNK

FORBIDDEN_IDS = (PAD, UNK, START)
TEXT = tf.TensorSpec([None], tf.string, name="text")
REFERENCE = tf.TensorSpec([None], tf.string, name="reference")


def _in_halves(search, source_ids, max_lengths):
    """Searches both halves of a batch side by side.

    A search is one long chain of small operations, which leaves all cores
    but one idle; TensorFlow computes two chains at the same time. (On a GPU
    they wait for each other.)

    Args:
        search: `tf.function` of ids [b, S] and lengths [b] to a
            `SearchResult`.
        source_ids: int [B, S].
        max_lengths: int [B], the most tokens of each answer.

    Returns:
        `SearchResult` of all rows, in their order.
    """
    longest = tf.maximum(tf.reduce_max(max_lengths), 1)

    def search_rows(rows):
        result = search(source_ids[rows], max_lengths[rows])
        missing = [0, longest - tf.shape(result.ids)[2]]
        return result._replace(
            ids=tf.pad(
                result.ids, [[0, 0], [0, 0], missing], constant_values=PAD
            ),
            attention_weights=tf.pad(
                result.attention_weights, [[0, 0], [0, 0], missing, [0, 0]]
            ),
        )

    batch_size = tf.shape(source_ids)[0]
    half = batch_size // 2

    def search_halves():
        halves = [search_rows(slice(half)), search_rows(slice(half, None))]
        return tf.nest.map_structure(lambda *both: tf.concat(both, 0), *halves)

    return tf.cond(
        batch_size < 2, lambda: search_rows(slice(None)), search_halves
    )


def _ended(ids):
    """Ragged ids [B, None] with END, then padding: int [B, S].

    No rows have one column: recurrent networks cannot compute no step.
    """
    ends = tf.fill([ids.nrows(), 1], END)
    rows = tf.concat([ids, ends], axis=1).to_tensor(PAD)
    missing = tf.maximum(1 - tf.shape(rows)[1], 0)
    return tf.pad(rows, [[0, 0], [0, missing]], constant_values=PAD)


def _tokens(tokenizer, ids):
    """The pieces of ids, END as a word of its own, "" for padding."""
    return tf.where(ids == END, END_TEXT, tokenizer.pieces(ids))


def _check_target_limits(factor, offset):
    """That an answer may have a token."""
    if min(factor, offset) < 0 or not (factor or offset):
        raise ValueError(
            "Expected max_target_factor and max_target_offset of at least 0, "
            "and one of them above. Received: "
            f"max_target_factor={factor}, max_target_offset={offset}"
        )


class Translator(TextToText, tf.Module):
    """A model, its tokenizers and a search, as functions in graph.

    The functions are the SavedModel's signatures: see the README. Export
    with `export`, or call the translator with a list of texts.

    Args:
        model: a built `models.Seq2Seq`.
        source_tokenizer: a `text.Tokenizer`.
        target_tokenizer: that of the target; by default the same.
        num_beams: beams of `serving_default` and N of `n_best`.
        length_penalty: alpha of the beam search.
        max_source_length: limit of a text in tokens, END included. The
            functions translate what fits and say so; Python refuses.
        max_target_factor, max_target_offset: an answer has at most factor
            times the source's tokens plus offset; a reference as many as
            the answer to the longest source.
        stored_precision: in which weights of float32 are kept. With
            "float16" an exported model is half as large: the translator
            keeps a copy, which each call turns to float32 (for that time it
            holds both) and computes with.

    Errors: `ValueError` for a model that is not built, no beam, a negative
    length penalty, limits that no text or no answer can keep, another
    precision or weights too large for it.
    """

    def __init__(
        self,
        model: keras.Model,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer | None = None,
        num_beams: int = 4,
        length_penalty: float = 1.0,
        max_source_length: int = 128,
        max_target_factor: float = 2.0,
        max_target_offset: int = 32,
        stored_precision: str = "float32",
    ):
        tf.Module.__init__(self, name="translator")
        if num_beams < 1 or length_penalty < 0 or max_source_length < 2:
            raise ValueError(
                "Expected num_beams >= 1, length_penalty >= 0 and "
                "max_source_length >= 2. Received: "
                f"num_beams={num_beams}, length_penalty={length_penalty}, "
                f"max_source_length={max_source_length}"
            )
        _check_target_limits(max_target_factor, max_target_offset)
        if not model.built:
            raise ValueError(
                "Expected a model with weights: train it, or call its "
                f"`build()`. Received: {model.name}, which is not built"
            )
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer or source_tokenizer
        # A SavedModel must see the variables, not the Keras model: of a
        # tracked Keras model a bare session finds no variable.
        weights = stored_weights.StoredWeights(model, stored_precision)
        self._variables = weights.variables
        # The search is traced once for all functions that call it alike.
        self._hidden = types.SimpleNamespace(
            model=model,
            weights=weights,
            search=tf.function(self._search_text, autograph=False),
        )
        self._num_beams = num_beams
        self._length_penalty = length_penalty
        self._max_source_length = max_source_length
        self._max_target_factor = max_target_factor
        self._max_target_offset = max_target_offset
        self._signatures = {
            name: tf.function(function, input_signature=specs, autograph=False)
            for name, function, specs in (
                ("serving_default", self._translate_beam, [TEXT]),
                ("greedy", self._translate_greedy, [TEXT]),
                ("with_attention", self._translate_with_attention, [TEXT]),
                ("n_best", self._translate_n_best, [TEXT]),
                ("score", self._score, [TEXT, REFERENCE]),
                ("align", self._align, [TEXT, REFERENCE]),
                ("num_tokens", self._num_tokens, [TEXT]),
            )
        }

    @property
    def model(self) -> keras.Model:
        """The model that translates."""
        return self._hidden.model

    @property
    def num_beams(self) -> int:
        """Beams of the search: the N of `n_best`."""
        return self._num_beams

    @property
    def length_penalty(self) -> float:
        """Alpha of the beam search."""
        return self._length_penalty

    @property
    def stored_precision(self) -> str:
        """Of the weights that it keeps: "float32" or "float16"."""
        return self._hidden.weights.precision

    @property
    def max_source_length(self) -> int:
        """Limit of a text in tokens, END included."""
        return self._max_source_length

    @property
    def max_target_factor(self) -> float:
        """The most tokens of an answer for each token of its text."""
        return self._max_target_factor

    @property
    def max_target_offset(self) -> int:
        """The tokens that an answer may have beside those."""
        return self._max_target_offset

    @property
    def signatures(self) -> dict:
        """The functions by the names that they have in a SavedModel."""
        return self._signatures

    def _encode_text(self, text):
        """Ids [B, S] that fit, how many tokens there were, and blanks."""
        text = tf.ensure_shape(text, [None])
        ids = self.source_tokenizer.tokenize(text)
        lengths = tf.cast(ids.row_lengths(), tf.int32) + 1  # and END
        return _ended(ids[:, : self._max_source_length - 1]), lengths

    def _search_text(self, text, num_beams, n_best):
        source_ids, lengths = self._encode_text(text)
        return self.search(source_ids, num_beams, n_best), source_ids, lengths

    def search(self, source_ids, num_beams: int, n_best: int = 1):
        """The search between the tokenizers.

        Call it inside a `tf.function`: outside, each call traces anew.

        Args:
            source_ids: int [B, S], END included, then padding.
            num_beams: 1 for greedy search.
            n_best: how many answers, at most `num_beams`.

        Returns:
            `decoding.SearchResult`.
        """
        max_lengths = self._max_lengths(
            tf.math.count_nonzero(source_ids != PAD, axis=1, dtype=tf.int32)
        )

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, None], source_ids.dtype),
                tf.TensorSpec([None], max_lengths.dtype),
            ],
            autograph=False,
            # Three calls of one function, not three copies of it: the first
            # translation of a loaded model takes half as long.
            experimental_attributes={"_noinline": True},
        )
        def search(source_ids, max_lengths):
            return self._search_ids(source_ids, max_lengths, num_beams, n_best)

        with self._hidden.weights.in_use():
            return _in_halves(search, source_ids, max_lengths)

    def _search_ids(self, source_ids, max_lengths, num_beams, n_best):
        memory = self.model.encode(source_ids)
        room = tf.maximum(tf.reduce_max(max_lengths), 1)
        state = self.model.initial_state(memory, room)
        mask = source_ids != PAD
        step = self.model.prepared_step()
        arguments = (step, memory, state, mask, max_lengths)
        options = {
            "alpha": self._length_penalty,
            "forbidden_ids": FORBIDDEN_IDS,
        }
        if num_beams == 1:
            return decoding.greedy_search(*arguments, **options)
        return decoding.beam_search(
            *arguments, num_beams=num_beams, n_best=n_best, **options
        )

    def _detokenize(self, ids, lengths):
        """Translations [B] of ids [B, T]; "" for a blank source."""
        text = self.target_tokenizer.detokenize(ids)
        return tf.where(lengths > 1, text, "")

    def _translate_beam(self, text):
        result, _, lengths = self._hidden.search(text, self._num_beams, 1)
        return {"translation": self._detokenize(result.ids[:, 0], lengths)}

    def _translate_greedy(self, text):
        result, _, lengths = self._hidden.search(text, 1, 1)
        return {"translation": self._detokenize(result.ids[:, 0], lengths)}

    def _translate_with_attention(self, text):
        result, source_ids, lengths = self._hidden.search(
            text, self._num_beams, 1
        )
        longest = tf.maximum(tf.reduce_max(result.lengths), 0)
        ids = result.ids[:, 0, :longest]
        weights = result.attention_weights[:, 0, :longest]
        blank = lengths <= 1
        target_tokens = _tokens(self.target_tokenizer, ids)
        return {
            "translation": self._detokenize(ids, lengths),
            "score": tf.where(blank, 0.0, result.score[:, 0]),
            "truncated": lengths > self._max_source_length,
            "source_tokens": _tokens(self.source_tokenizer, source_ids),
            "target_tokens": tf.where(blank[:, None], "", target_tokens),
            "attention": tf.where(blank[:, None, None], 0.0, weights),
        }

    def _translate_n_best(self, text):
        num_beams = self._num_beams
        result, _, lengths = self._hidden.search(text, num_beams, num_beams)
        batch_size = tf.shape(lengths)[0]
        flat = tf.reshape(result.ids, [batch_size * num_beams, -1])
        texts = self._detokenize(flat, tf.repeat(lengths, num_beams))
        missing = result.lengths == 0
        # A blank text has one translation: the blank one.
        blank = (lengths <= 1)[:, None]
        scores = tf.where(missing | blank, -np.inf, result.score)
        first = tf.range(num_beams)[None, :] == 0
        scores = tf.where(blank & first, 0.0, scores)
        texts = tf.reshape(texts, [batch_size, num_beams])
        return {
            "translations": tf.where(missing, "", texts),
            "scores": tf.ensure_shape(scores, [None, num_beams]),
        }

    def _max_lengths(self, source_lengths):
        """The most tokens of an answer, END included, from the source's."""
        factor = self._max_target_factor
        lengths = tf.math.ceil(factor * tf.cast(source_lengths, tf.float32))
        return tf.cast(lengths, tf.int32) + self._max_target_offset

    def _encode_pair(self, text, reference):
        """Ids [B, S], labels [B, T], and what is told of them."""
        aligned = tf.debugging.assert_equal(
            tf.size(text),
            tf.size(reference),
            "Expected one `reference` for each `text`",
        )
        # A bare session runs nothing that no output depends on.
        with tf.control_dependencies([aligned]):
            text = tf.identity(text)
        source_ids, source_lengths = self._encode_text(text)
        ids = self.target_tokenizer.tokenize(tf.ensure_shape(reference, [None]))
        lengths = tf.cast(ids.row_lengths(), tf.int32) + 1  # and END
        limit = self._max_lengths(self._max_source_length)
        labels = _ended(ids[:, : limit - 1])
        told = {
            "num_tokens": tf.minimum(lengths, limit),
            "truncated": (lengths > limit)
            | (source_lengths > self._max_source_length),
        }
        return source_ids, labels, told

    def _score(self, text, reference):
        source_ids, labels, told = self._encode_pair(text, reference)
        starts = tf.fill([tf.shape(labels)[0], 1], START)
        inputs = tf.concat([starts, labels], axis=1)[:, :-1]
        with self._hidden.weights.in_use():
            logits = self.model(
                {"source_ids": source_ids, "target_ids": inputs}, training=False
            )
        log_probability, _ = decoding.sequence_log_probability(logits, labels)
        return {"log_probability": log_probability, **told}

    def _align(self, text, reference):
        source_ids, labels, told = self._encode_pair(text, reference)
        with self._hidden.weights.in_use():
            memory = self.model.encode(source_ids)
            result = decoding.forced_search(
                self.model.prepared_step(),
                memory,
                self.model.initial_state(memory, tf.shape(labels)[1]),
                source_ids != PAD,
                labels,
            )
        return {
            "source_tokens": _tokens(self.source_tokenizer, source_ids),
            "target_tokens": _tokens(self.target_tokenizer, labels),
            "attention": result.attention_weights[:, 0],
            **told,
        }

    def _num_tokens(self, text):
        _, lengths = self._encode_text(text)
        limit = tf.fill(tf.shape(lengths), self._max_source_length)
        return {"num_tokens": lengths, "limit": limit}

    def export(self, folder, card: str = ""):
        """Writes the next version of a SavedModel.

        Args:
            folder: `savedmodels/NAME`; the version is `NAME/1`, or one more
                than the greatest there is.
            card: text of `NAME/README.md`; by default the one there stays,
                or `cards.plain` is written.

        Returns:
            Path of the version.
        """
        card = card or cards.plain_if_none(self, folder)
        return savedmodel.export(self, folder, card)
