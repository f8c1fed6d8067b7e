"""Text to token ids and back, in graph, through SentencePiece."""

import functools
import io
import itertools
import types
from collections.abc import Iterable, Sequence

import numpy as np
import sentencepiece
import tensorflow as tf

from keras_attention import tokens


def _import_tensorflow_text():
    """tensorflow-text, or an error that says how to repair the pair."""
    try:
        import tensorflow_text
    except Exception as error:
        raise ImportError(
            "Expected tensorflow-text of the same minor version as "
            f"TensorFlow {tf.__version__}, and not 2.21.0, which does not "
            "import. Repair with: python -m pip install --force-reinstall "
            f'"tensorflow-text>=2.21.1,<2.22" "tensorflow>=2.21,<2.22". '
            f"Received: {error}"
        ) from error
    minors = [
        version.split(".")[:2]
        for version in (tf.__version__, tensorflow_text.__version__)
    ]
    if minors[0] != minors[1]:
        raise ImportError(
            "TensorFlow and tensorflow-text must have the same minor "
            "version. Received: tensorflow "
            f"{tf.__version__}, tensorflow-text {tensorflow_text.__version__}"
        )
    return tensorflow_text


tensorflow_text = _import_tensorflow_text()

MODEL_TYPES = ("unigram", "bpe", "word", "char")


def train_vocabulary(
    sentences: Iterable[str],
    vocabulary_size: int = 8000,
    model_type: str = "unigram",
    max_piece_length: int = 16,
    max_sentences: int = 1_000_000,
) -> bytes:
    """Learns a vocabulary from text, with SentencePiece.

    Unigram and BPE vocabularies spell what they do not know in bytes, so
    that any text survives a round trip, up to SentencePiece's own form
    "nmt_nfkc": NFKC, with runs of blanks, most zero-width characters and
    U+FFFD as one blank, and without most control characters. Words and
    characters (for first lessons) become [UNK] instead.

    Args:
        sentences: lines of text; for a joint vocabulary of two languages,
            the lines of both in turn.
        vocabulary_size: an upper limit: a small corpus gives fewer pieces.
        model_type: "unigram" (Kudo 2018), "bpe", "word" or "char".
        max_piece_length: the most characters of a piece; short pieces
            make "einundzwanzig" einund + zwanzig.
        max_sentences: how many are read, from the first.

    Returns:
        The model, as bytes for `Tokenizer`.

    Errors: `ValueError` for another `model_type`, for one text instead of
    many, for no text at all, and for a vocabulary too small for the
    characters of the text.

    References: https://arxiv.org/abs/1808.06226 (SentencePiece),
    https://arxiv.org/abs/1804.10959 (unigram)
    """
    if model_type not in MODEL_TYPES:
        raise ValueError(
            f"`model_type` must be one of {MODEL_TYPES}. "
            f"Received: model_type={model_type!r}"
        )
    if isinstance(sentences, str):
        raise ValueError(
            f"Expected several texts. Received: one, {sentences[:50]!r}"
        )
    sentences = itertools.islice(sentences, max_sentences)
    first = next((text for text in sentences if text.strip()), None)
    if first is None:
        raise ValueError(
            "A vocabulary is learned from text. Received: no sentence that "
            "is not blank"
        )
    subwords = model_type in ("unigram", "bpe")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=itertools.chain([first], sentences),
            model_writer=model,
            vocab_size=vocabulary_size,
            model_type=model_type,
            byte_fallback=subwords,
            character_coverage=0.9999 if subwords else 1.0,
            hard_vocab_limit=False,
            use_all_vocab=False,
            num_threads=2,
            max_sentence_length=1 << 20,
            split_digits=True,
            max_sentencepiece_length=max_piece_length,
            pad_id=tokens.PAD,
            unk_id=tokens.UNK,
            bos_id=tokens.START,
            eos_id=tokens.END,
            pad_piece=tokens.PAD_TEXT,
            unk_piece=tokens.UNK_TEXT,
            bos_piece=tokens.START_TEXT,
            eos_piece=tokens.END_TEXT,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ValueError(
            "SentencePiece could not learn such a vocabulary; try a larger "
            "one (256 bytes and every character need a place), of pieces of "
            "1 to 512 characters. "
            f"Received: vocabulary_size={vocabulary_size}, "
            f"max_piece_length={max_piece_length}: {error}"
        ) from error
    return model.getvalue()


class Tokenizer(tf.Module):
    """Strings to ids and back, in graph; it exports with a SavedModel.

    Ids 0, 1, 2, 3 are PAD, UNK, START and END; no text produces 0, 2 or 3.
    Invalid UTF-8 is read with U+FFFD in its place.

    Args:
        model: what `train_vocabulary` returned.
        name: distinct for each tokenizer of an export.

    Errors: `ValueError` for a model with other control ids, or none.
    """

    def __init__(self, model: bytes, name: str = "tokenizer"):
        super().__init__(name=name)
        self._processor = sentencepiece.SentencePieceProcessor()
        received = "no bytes"
        if model:
            try:
                self._processor.load_from_serialized_proto(model)
            except RuntimeError as error:
                raise ValueError(
                    "Expected a SentencePiece model, as `train_vocabulary` "
                    f"returns it. Received: {len(model)} bytes: {error}"
                ) from error
            received = (
                self._processor.pad_id(),
                self._processor.unk_id(),
                self._processor.bos_id(),
                self._processor.eos_id(),
            )
        expected = (tokens.PAD, tokens.UNK, tokens.START, tokens.END)
        if received != expected:
            raise ValueError(
                "Expected a SentencePiece model whose ids of PAD, UNK, START "
                f"and END are {expected}. Received: {received}"
            )
        self.model = model
        # The vocabulary is an attribute of an operation. As functions these
        # two are one copy of it each, however many signatures call them;
        # hidden, so that an export holds only those that are called.
        self._functions = types.SimpleNamespace(
            tokenize=tf.function(
                lambda text: self._sentencepiece().tokenize(text),
                input_signature=[tf.TensorSpec([None], tf.string)],
                autograph=False,
            ),
            detokenize=tf.function(
                lambda ids: self._sentencepiece().detokenize(ids),
                input_signature=[tf.RaggedTensorSpec([None, None], tf.int32)],
                autograph=False,
            ),
        )
        self._segmentations = functools.lru_cache(maxsize=50_000)(
            self._n_best_of_a_word
        )

    @property
    def vocabulary_size(self) -> int:
        """Number of pieces, the four control tokens among them."""
        return self._processor.vocab_size()

    def _sentencepiece(self):
        # Made anew in each function: TensorFlow drops a tokenizer that was
        # made before `keras.utils.set_random_seed`, and one that an export
        # tracks may answer with another's vocabulary after a load.
        return tensorflow_text.SentencepieceTokenizer(
            self.model, name=self.name
        )

    def tokenize(self, text) -> tf.RaggedTensor:
        """Ids of text: string [B] -> int32 [B, None], no START and END."""
        return self._functions.tokenize(valid_utf8(text))

    def detokenize(self, ids) -> tf.Tensor:
        """Text of ids: int [B, T] or ragged -> string [B].

        PAD, START and END say nothing; what follows END too is read.
        """
        if not isinstance(ids, tf.RaggedTensor):
            ids = tf.RaggedTensor.from_tensor(ids)
        ids = tf.cast(ids, tf.int32).with_row_splits_dtype(tf.int64)
        silent = (ids == tokens.PAD) | (ids == tokens.START)
        ids = tf.ragged.boolean_mask(ids, ~(silent | (ids == tokens.END)))
        return valid_utf8(self._functions.detokenize(ids))

    def pieces(self, ids) -> tf.Tensor:
        """The piece of each id, to label a picture: [B, T] -> string [B, T].

        PAD gives "".
        """
        pieces = [""] + [
            self._processor.id_to_piece(index)
            for index in range(1, self.vocabulary_size)
        ]
        return tf.gather(tf.constant(pieces), ids)

    def sample(
        self, texts: Sequence[str], seed: int, alpha: float = 0.1
    ) -> list[np.ndarray]:
        """Draws a segmentation of each text: subword regularisation.

        Pieces do not cross the blanks, so each word is drawn by itself: one
        of its 64 likeliest segmentations, with probability p^alpha / sum of
        p^alpha (section 3.2). SentencePiece's own sampler cannot be used:
        its generator depends on the thread, not on the seed alone.

        Args:
            texts: B texts.
            seed: the same seed draws the same segmentations.
            alpha: smoothing; lower draws more varied ones.

        Returns:
            B arrays of ids, int32.

        Errors: `ValueError` for a model that is not unigram.

        Reference: https://arxiv.org/abs/1804.10959
        """
        generator = np.random.default_rng(seed)
        rows = []
        for text in texts:
            words = self._processor.normalize(text).replace("▁", " ").split(" ")
            draws = generator.random(len(words))
            row = []
            for word, draw in zip(words, draws, strict=True):
                ids, ends, cumulative = self._segmentations(word, alpha)
                place = np.searchsorted(cumulative, draw, side="right")
                row.append(ids[ends[place] : ends[place + 1]])
            rows.append(np.concatenate(row))
        return rows

    def _n_best_of_a_word(self, word: str, alpha: float):
        """Segmentations of a word, one after the other, as three arrays.

        Returns:
            `(ids, ends, cumulative)`: all ids; n + 1 ends, the first 0; n - 1
            cumulative probabilities: the last, which is 1, is left out, so
            that each draw has a place.
        """
        try:
            segmentations = self._processor.nbest_encode(word, nbest_size=64)
        except RuntimeError as error:
            raise ValueError(
                "Segmentations can be drawn from a unigram vocabulary only. "
                f"Received: {error}"
            ) from error
        score = self._processor.get_score
        scores = np.array([sum(map(score, ids)) for ids in segmentations])
        weights = np.exp(alpha * (scores - scores.max()))
        cumulative = np.cumsum(weights / weights.sum())
        ids = np.array([id for ids in segmentations for id in ids], "int32")
        ends = np.cumsum([0, *map(len, segmentations)], dtype="int32")
        return ids, ends, cumulative[:-1].astype("float32")


def valid_utf8(text) -> tf.Tensor:
    """Text with invalid UTF-8 replaced by U+FFFD: string [B] -> [B]."""
    return tf.strings.unicode_transcode(
        text,
        input_encoding="UTF-8",
        output_encoding="UTF-8",
        errors="replace",
        replace_control_characters=False,
    )
