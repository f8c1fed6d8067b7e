"""What the dictionaries of scores hold, for type checkers and editors."""

import typing


class Score(typing.TypedDict):
    """A figure, and how it was counted.

    `note` says why a BLEU of 0 means little.
    """

    score: float
    signature: str
    note: typing.NotRequired[str]


class CorpusScores(typing.TypedDict):
    """What `corpus_scores` says of a corpus."""

    bleu: Score
    bleu_lc: Score
    chrf: Score
    exact_match: float
    sentences: int


class LengthRow(typing.TypedDict):
    """What `bleu_by_length` says of the sources of some lengths."""

    low: int
    high: int | None
    sentences: int
    bleu: float
    signature: str
    exact_match: float
    interval: typing.NotRequired[float]
