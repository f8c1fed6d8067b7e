"""Learning a vocabulary from text, with SentencePiece."""

import io
import itertools
import re
from collections.abc import Iterable

import sentencepiece

from keras_attention import tokens

MODEL_TYPES = ("unigram", "bpe", "word", "char")
NORMALIZATIONS = (
    "as_written",
    "identity",
    "nfkc",
    "nmt_nfkc",
    "nfkc_cf",
    "nmt_nfkc_cf",
)

# What "as_written" reads as a space: tabs and line ends, "▁", which is how
# SentencePiece writes a space, and U+FFFD, which stands for invalid UTF-8.
BLANKS = "\t\n\v\f\r\x85\u2028\u2029▁\ufffd"
# What it leaves out: the other control characters, which a terminal obeys,
# and the byte order mark. SentencePiece's rules cannot name NUL, so that
# `controls` takes it out of each text before SentencePiece reads it.
IGNORED = [
    character
    for character in (*map(chr, range(1, 32)), *map(chr, range(127, 160)))
    if character not in BLANKS
] + ["\ufeff"]


def train_vocabulary(
    sentences: Iterable[str],
    vocabulary_size: int = 8000,
    model_type: str = "unigram",
    max_piece_length: int = 16,
    max_sentences: int = 1_000_000,
    normalization: str = "as_written",
) -> bytes:
    """Learns a vocabulary from text, with SentencePiece.

    Unigram and BPE vocabularies encode unknown characters byte by byte, so
    that any text survives a round trip. In vocabularies of words and of
    characters (for first lessons), what is unknown becomes [UNK] instead.

    The vocabulary holds a rule by which it reads every text, in training
    and in serving. Under every rule but "identity", tabs and line ends count as
    spaces, and all other control characters are removed:

    - "as_written" keeps what people write: full-width punctuation,
      superscripts, joiners, no-break and ideographic spaces. Invalid UTF-8
      (read with U+FFFD) and "▁" count as spaces. The byte order mark is left
      out.
    - "identity" keeps control characters, too, except NUL. Tabs and line ends
      then are characters like any other.
    - "nfkc" is Unicode's NFKC, which unites characters that mean the same:
      "，" and ",", "²" and "2", "™" and "TM", and also the composed and the
      decomposed form of "é". A model with this rule does not see the
      difference and never writes the first of each.
    - "nmt_nfkc" is NFKC, with most zero-width characters as spaces. It
      breaks Persian and Indic words,
      which need the zero-width non-joiner. This was the rule of all
      vocabularies before there was a choice.
    - "nfkc_cf" and "nmt_nfkc_cf" also lower all letters.

    Under every rule, runs of spaces count as one space, and spaces at
    either end as none. The first two rules keep composed and decomposed
    characters apart. Where your texts mix both forms, make them one before
    training, with `unicodedata.normalize`.

    Args:
        sentences: lines of text; for a joint vocabulary of two languages,
            the lines of both in turn.
        vocabulary_size: an upper limit: a small corpus gives fewer pieces.
        model_type: "unigram" (Kudo 2018), "bpe", "word" or "char".
        max_piece_length: the most characters of a piece; short pieces
            make "einundzwanzig" einund + zwanzig.
        max_sentences: how many are read, from the first.
        normalization: one of the rules above.

    Returns:
        The model, as bytes for `Tokenizer`.

    Raises:
        ValueError: If `model_type` or `normalization` is unknown, if one
            text is given instead of many, if there is no text at all, or if
            the vocabulary is too small for the characters of the text.

    References: https://arxiv.org/abs/1808.06226 (SentencePiece),
    https://arxiv.org/abs/1804.10959 (unigram)
    """
    if model_type not in MODEL_TYPES:
        raise ValueError(
            f"`model_type` must be one of {MODEL_TYPES}. "
            f"Received: model_type={model_type!r}"
        )
    if normalization not in NORMALIZATIONS:
        raise ValueError(
            f"`normalization` must be one of {NORMALIZATIONS}. "
            f"Received: normalization={normalization!r}"
        )
    if isinstance(sentences, str):
        raise ValueError(
            f"Put a single text in a list. Received: {sentences[:50]!r}"
        )
    sentences = itertools.islice(sentences, max_sentences)
    sentences = _readable(sentences, controls(normalization))
    subwords = model_type in ("unigram", "bpe")
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sentences,
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
            **_normalization_options(normalization),
            **_CONTROL_OPTIONS,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise ValueError(
            "SentencePiece could not learn such a vocabulary. Try a larger "
            "one: 256 bytes and every character need a place. A piece may have "
            "1 to 512 characters. "
            f"Received: vocabulary_size={vocabulary_size}, "
            f"max_piece_length={max_piece_length}: {error}"
        ) from error
    return model.getvalue()


def _readable(sentences, rules):
    """The first sentence that is not blank, and all after it."""
    sentences = (without_controls(text, rules) for text in sentences)
    first = next((text for text in sentences if text.strip()), None)
    if first is None:
        raise ValueError(
            "A vocabulary is learned from text, and all sentences are blank."
        )
    return itertools.chain([first], sentences)


def controls(normalization: str) -> tuple[tuple[str, str], ...]:
    """What a rule reads in place of control characters.

    Returns:
        Pairs of a regular expression, which Python and TensorFlow read alike,
        and what stands in place of its matches.
    """
    if normalization == "identity":
        return ((r"\x00", ""),)
    return (
        (r"[\t-\r\x85]", " "),
        (r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]", ""),
    )


def without_controls(text: str, rules: tuple[tuple[str, str], ...]) -> str:
    """A text as it is read by what `controls` returned."""
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return text


_CONTROL_OPTIONS = {
    "pad_id": tokens.PAD,
    "unk_id": tokens.UNK,
    "bos_id": tokens.START,
    "eos_id": tokens.END,
    "pad_piece": tokens.PAD_TEXT,
    "unk_piece": tokens.UNK_TEXT,
    "bos_piece": tokens.START_TEXT,
    "eos_piece": tokens.END_TEXT,
}


def _normalization_options(normalization):
    """Options of SentencePiece's trainer."""
    if normalization != "as_written":
        return {"normalization_rule_name": normalization}
    # Quiet: it reports that it reads a rule.
    sentencepiece.set_min_log_level(2)
    normalizer = sentencepiece.SentencePieceNormalizer(
        norm_map=[
            *((character, " ") for character in BLANKS),
            *((character, "") for character in IGNORED),
        ],
        add_dummy_prefix=True,
        remove_extra_whitespaces=True,
        escape_whitespaces=True,
    )
    return {"normalizer": normalizer}
