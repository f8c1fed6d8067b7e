"""Text to token ids and back, in graph, through SentencePiece."""

import contextlib
import functools
import os
import pathlib
import random
import types
import unicodedata
from collections.abc import Sequence

import numpy as np
import sentencepiece
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from keras_attention import tokens
from keras_attention.data.vocabularies import (
    segmentations,
    text_operations,
    vocabulary,
)

# A text of these alone has nothing to see: spaces, controls, what joins and
# directs, and U+FFFD in place of invalid UTF-8. A vocabulary keeps some of
# them between letters, where they matter.
INVISIBLE_CATEGORIES = ("Zs", "Zl", "Zp", "Cc", "Cf")
INVISIBLE = r"^[\p{Z}\p{Cc}\p{Cf}\x{FFFD}]*$"


# What is unknown, as one token each: words, and characters elsewhere.
WORD = r"▁*[^▁]+▁*"
CHARACTER = r"(?s)."


class Tokenizer(tf.Module):
    """Strings to ids and back, in graph; it exports with a SavedModel.

    Ids 0, 1, 2, 3 are PAD, UNK, START and END; no text produces 0, 2 or 3.
    Each unknown word of a vocabulary of words is an UNK, and so is each unknown
    character of one of characters. Invalid UTF-8 is read with U+FFFD in its
    place, control characters as `train_vocabulary` says. A text in which there
    is nothing to see gives no ids.

    Args:
        model: what `train_vocabulary` returned, or the path of a file that
            holds it.
        name: distinct for each tokenizer of an export.

    Raises:
        ValueError: If there is no such file, or if the model has other
            control ids, or none.
    """

    def __init__(
        self, model: bytes | str | os.PathLike, name: str = "tokenizer"
    ):
        super().__init__(name=name)
        # It imports Keras, which no function in graph should do.
        text_operations.module()
        self.model = _read_model(model)
        self._processor = _load_processor(self.model)
        proto = sentencepiece_model_pb2.ModelProto.FromString(self.model)
        self._controls = vocabulary.controls(proto.normalizer_spec.name)
        trainer = proto.trainer_spec
        self._type = trainer.ModelType.Name(trainer.model_type).lower()
        self._spells_unknown = trainer.byte_fallback
        self._unknown = WORD if self._type == "word" else CHARACTER
        # The vocabulary is an attribute of an operation. As functions these
        # two are one copy of it each, however many signatures call them;
        # hidden, so that an export holds only those that are called.
        self._functions = types.SimpleNamespace(
            tokenize=tf.function(
                self._tokenize,
                input_signature=[tf.TensorSpec([None], tf.string)],
                autograph=False,
            ),
            detokenize=tf.function(
                lambda ids: self._sentencepiece().detokenize(ids),
                input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)],
                autograph=False,
            ),
        )

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {self.name}, {self._type}, "
            f"{self.vocabulary_size:,} pieces>"
        )

    @property
    def vocabulary_size(self) -> int:
        """Number of pieces, the four control tokens among them."""
        return self._processor.vocab_size()

    def _sentencepiece(self):
        # Made anew in each function: TensorFlow drops a tokenizer that was
        # made before `keras.utils.set_random_seed`, and one that an export
        # tracks may answer with another's vocabulary after a load.
        return text_operations.module().SentencepieceTokenizer(
            self.model, name=self.name
        )

    def tokenize(self, text) -> tf.RaggedTensor | tf.Tensor:
        """Ids of texts, without START and END.

        Args:
            text: string [B], or one string [].

        Returns:
            Ids, ragged int32 [B, None]; of one string a tensor, int32 [None].

        Raises:
            ValueError: If `text` is no string or has more than one axis.
        """
        text = _string_tensor(text)
        if text.shape.rank == 0:
            return self.tokenize(text[tf.newaxis])[0]
        text = tf.strings.regex_replace(valid_utf8(text), INVISIBLE, "")
        for pattern, replacement in self._controls:
            text = tf.strings.regex_replace(text, pattern, replacement)
        return self._functions.tokenize(text)

    def _tokenize(self, text):
        """Ids of texts that have something to see."""
        sentencepiece_tokenizer = self._sentencepiece()
        ids = sentencepiece_tokenizer.tokenize(text)
        if self._spells_unknown:
            return ids
        # SentencePiece makes one UNK of all unknown ones in a row. Tokens would
        # be missing in what a perplexity or a limit counts.
        sentencepiece_tokenizer.out_type = tf.string
        pieces = sentencepiece_tokenizer.tokenize(text).flat_values
        units = tf.strings.regex_replace(pieces, self._unknown, "u")
        is_unknown = ids.flat_values == tokens.UNK
        counts = tf.where(is_unknown, tf.strings.length(units), 1)
        counts = tf.cast(counts, tf.int64)
        return tf.RaggedTensor.from_row_lengths(
            tf.repeat(ids.flat_values, counts),
            tf.reduce_sum(ids.with_flat_values(counts), axis=1),
        )

    def detokenize(self, ids) -> tf.Tensor:
        """Text of ids.

        PAD, START and END say nothing. Ids after END are read, too.

        Args:
            ids: int [B, T] or ragged [B, None], or of one text int [T].

        Returns:
            Texts, string [B]; of one text string [].

        Raises:
            ValueError: If `ids` are no integers or have another rank, or,
                outside of graphs, if there is no such id.
        """
        ids = _id_tensor(ids)
        if ids.shape.rank == 1:
            return self.detokenize(ids[tf.newaxis])[0]
        if tf.executing_eagerly():
            self._check_range(getattr(ids, "flat_values", ids))
        ids = tf.cast(ids, tf.int32)
        silent = (ids == tokens.PAD) | (ids == tokens.START)
        # A dense tensor needs fewer operations here than a ragged one.
        ids = tf.ragged.boolean_mask(ids, ~(silent | (ids == tokens.END)))
        ids = ids.with_row_splits_dtype(tf.int64)
        return valid_utf8(self._functions.detokenize(ids))

    def _check_range(self, ids):
        ids = tf.cast(ids, tf.int64)
        strange = (ids < 0) | (ids >= self.vocabulary_size)
        if tf.reduce_any(strange):
            raise ValueError(
                f"Expected ids from 0 to {self.vocabulary_size - 1}. "
                f"Received: {ids[strange][0].numpy()}"
            )

    def pieces(self, ids) -> tf.Tensor:
        """The piece of each id, to label a picture: [B, T] -> string [B, T].

        PAD gives "".
        """
        pieces = [""] + [
            self._processor.id_to_piece(index)
            for index in range(1, self.vocabulary_size)
        ]
        return tf.gather(tf.constant(pieces), ids)

    @functools.cached_property
    def begins_word(self) -> np.ndarray:
        """Whether a word begins with the piece of each id: bool [V].

        A word is what stands between spaces.
        """
        pieces = map(self._processor.id_to_piece, range(self.vocabulary_size))
        begins = np.array(
            [piece.startswith(segmentations.BLANK) for piece in pieces]
        )
        # Elsewhere an unknown character has its space before it.
        begins[tokens.UNK] = self._unknown == WORD
        return begins

    def sample(
        self, texts: Sequence[str], seed: int, alpha: float = 0.1
    ) -> list[np.ndarray]:
        """Draws a segmentation of each text: subword regularisation.

        Each segmentation of a text is drawn with a probability in proportion
        to p^alpha, where p is its own by the vocabulary (section 3.2). This
        holds for text with and without spaces. SentencePiece's own sampler
        cannot be used: its generator depends on the thread, not on the seed
        alone.

        Args:
            texts: B texts.
            seed: the same seed draws the same segmentations.
            alpha: smoothing; lower draws more varied ones, and 0 draws all
                alike.

        Returns:
            B arrays of ids, int32.

        Raises:
            ValueError: If the model is not unigram, if one text is given
                instead of many, or if `alpha` is negative or not finite.

        Reference: https://arxiv.org/abs/1804.10959
        """
        if isinstance(texts, (str, bytes)):
            raise ValueError(
                f"Put a single text in a list. Received: {texts[:50]!r}"
            )
        if not 0 <= alpha < float("inf"):
            raise ValueError(
                f"`alpha` must be 0 or more, and finite. Received: {alpha}"
            )
        generator = random.Random(seed)
        rows = []
        for text in texts:
            if not isinstance(text, str):
                raise ValueError(
                    f"A text must be a str. Received: {_described(text)}"
                )
            visible = "" if _is_invisible(text) else text
            visible = vocabulary.without_controls(visible, self._controls)
            row = self._lattices.draw(visible, alpha, generator.random)
            rows.append(np.array(row, "int32"))
        return rows

    @functools.cached_property
    def _lattices(self):
        return segmentations.Lattices(self._processor)


def valid_utf8(text) -> tf.Tensor:
    """Text with invalid UTF-8 replaced by U+FFFD: string [B] -> [B]."""
    return tf.strings.unicode_transcode(
        text,
        input_encoding="UTF-8",
        output_encoding="UTF-8",
        errors="replace",
        replace_control_characters=False,
    )


def _read_model(model):
    """The bytes of a model, or of the file that holds it."""
    if isinstance(model, (str, os.PathLike)):
        path = pathlib.Path(model).expanduser()
        try:
            return path.read_bytes()
        except OSError as error:
            raise ValueError(
                f"{str(model)!r} is not a file with a vocabulary of "
                f"`train_vocabulary`: {error}"
            ) from error
    if not isinstance(model, bytes):
        raise ValueError(
            "A vocabulary is the bytes that `train_vocabulary` returns, or the "
            f"path of a file that holds them. Received: {type(model).__name__}"
        )
    return model


def _load_processor(model):
    """SentencePiece's processor of a model with our control ids."""
    processor = sentencepiece.SentencePieceProcessor()
    received = "no bytes"
    if model:
        try:
            processor.load_from_serialized_proto(model)
        except RuntimeError as error:
            raise ValueError(
                f"These {len(model)} bytes are not a vocabulary of "
                f"`train_vocabulary`: {error}"
            ) from error
        received = (
            processor.pad_id(),
            processor.unk_id(),
            processor.bos_id(),
            processor.eos_id(),
        )
    expected = (tokens.PAD, tokens.UNK, tokens.START, tokens.END)
    if received != expected:
        raise ValueError(
            "The ids of PAD, UNK, START and END in a vocabulary must be "
            f"{expected}. Received: {received}"
        )
    return processor


def _string_tensor(text):
    """Text as a tensor, string [] or [B]."""
    tensor = None
    with contextlib.suppress(TypeError, ValueError):
        tensor = tf.convert_to_tensor(text, tf.string)
    if tensor is None or (tensor.shape.rank or 0) > 1:
        raise ValueError(
            "Give a string, or strings of shape [B]. "
            f"Received: {_described(text)}"
        )
    return tensor


def _id_tensor(ids):
    """Ids as an integer tensor [T] or [B, T], or ragged [B, None]."""
    tensor = ids if isinstance(ids, tf.RaggedTensor) else None
    if tensor is None:
        with contextlib.suppress(TypeError, ValueError):
            tensor = _dense_or_ragged(ids)
    if tensor is not None and tensor.shape.num_elements() == 0:
        tensor = tf.cast(tensor, tf.int32)  # [[]] has no dtype of its own.
    if (
        tensor is None
        or not tensor.dtype.is_integer
        or tensor.shape.rank not in (1, 2, None)
    ):
        raise ValueError(
            "Give ids, integers of shape [T] or [B, T]. "
            f"Received: {_described(ids)}"
        )
    return tensor


def _dense_or_ragged(ids):
    try:
        return tf.convert_to_tensor(ids)
    except ValueError:
        return tf.ragged.constant(ids)  # Rows of several lengths.


def _described(value):
    text = repr(value)
    return f"{type(value).__name__}: {text[:50]}"


def _is_invisible(text):
    """Whether `INVISIBLE` matches a text."""
    return all(
        character == "\ufffd"
        or unicodedata.category(character) in INVISIBLE_CATEGORIES
        for character in text
    )
