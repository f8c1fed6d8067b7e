"""Translations that begin with a text and hold terms: a signature."""

from keras_attention.serving import kinds

NAME = "constrained"
# Between the terms of a text.
SEPARATOR = "\n"
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
        terms: B lists of texts, or None for none.

    Raises:
        ValueError: If there is not one of each for each text, or if a term has
            several lines.
    """
    prefixes = [""] * len(texts) if prefixes is None else list(prefixes)
    terms = [()] * len(texts) if terms is None else list(terms)
    for row in terms:
        if isinstance(row, str) or any(SEPARATOR in term for term in row):
            raise ValueError(
                "Each text has a list of terms, and each term is one line. "
                f"Received: {row!r}"
            )
    return {"prefix": prefixes, "terms": [SEPARATOR.join(one) for one in terms]}
