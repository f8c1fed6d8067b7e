"""Translations that begin with a text and hold terms: a signature."""

import typing
from collections.abc import Iterable, Sequence

from keras_attention.serving import kinds
from keras_attention.tokens import UNK

if typing.TYPE_CHECKING:
    from keras_attention.data import Tokenizer

NAME = "constrained"
# Between the terms of a text.
SEPARATOR = "\n"
# Time and memory grow with the number of terms squared, and with their length.
MOST_TERMS = 16
MOST_TERM_TOKENS = 128
SIGNATURE = kinds.Signature(
    ("text", "prefix", "terms"),
    {"translation": (), "score": ()},
    ("translation", "score"),
)


def of_rows(texts, prefixes, terms) -> dict[str, list[str]]:
    """The prefix and the terms of each text, as the signature takes them.

    Args:
        texts: B texts.
        prefixes: B texts, or None for none.
        terms: B lists of at most `MOST_TERMS` texts, or None for none.

    Raises:
        ValueError: If a term has several lines, or if there are more terms.
    """
    prefixes = [""] * len(texts) if prefixes is None else list(prefixes)
    terms = [()] * len(texts) if terms is None else list(terms)
    for row in terms:
        if isinstance(row, str) or any(SEPARATOR in term for term in row):
            raise ValueError(
                "Each text has a list of terms, and each term is one line. "
                f"Received: {row!r}"
            )
        if len(row) > MOST_TERMS:
            raise ValueError(
                f"Each text has at most {MOST_TERMS} terms. Received: "
                f"{len(row)} terms"
            )
    return {"prefix": prefixes, "terms": [SEPARATOR.join(one) for one in terms]}


def check_known(rows: Sequence[str], tokenizer: "Tokenizer") -> None:
    """Refuses terms that the vocabulary cannot write: no answer has UNK.

    Args:
        rows: the terms of each text, as the signature takes them.
        tokenizer: of the target.

    Raises:
        ValueError: If there is such a term.
    """
    terms = (one for row in rows for one in row.split(SEPARATOR))
    for term in unknown(terms, tokenizer):
        raise ValueError(
            f"The target's vocabulary cannot write the term {term!r}: it "
            "has a word or a character that is unknown, which no "
            "translation can hold. Leave the term out, or write it in "
            "words of the training data."
        )


def unknown(terms: Iterable[str], tokenizer: "Tokenizer") -> list[str]:
    """The terms that a vocabulary cannot write."""
    terms = [term for term in dict.fromkeys(terms) if term]
    if not terms:
        return []
    ids = tokenizer.tokenize(terms).to_list()
    return [term for term, row in zip(terms, ids, strict=True) if UNK in row]
