"""Subword regularisation: a text's segmentations, drawn by probability.

A segmentation x of a text has the probability p(x)^alpha / Z. Here p(x) is
the product of its pieces' probabilities, and Z the sum of p(x)^alpha over all
segmentations. Z is a sum over paths through a lattice, whose nodes are the
places between characters and whose edges are pieces. Forward filtering sums
the paths to each node; backward sampling walks from the end of the text to
its start, and takes each edge by its share of the paths that arrive.

References:
    Kudo (2018), Subword regularization: improving neural network translation
    models with multiple subword candidates, section 3.2.
    Scott (2002), Bayesian methods for hidden Markov models: forward filtering
    and backward sampling.
"""

import bisect
import functools
import itertools
import math
from collections.abc import Callable

import sentencepiece

from keras_attention.tokens import UNK

BLANK = "▁"  # As SentencePiece writes it.
# Longer units are seldom seen twice, and their lattices are large.
LONGEST_KEPT = 24
MOST_KEPT = 50_000


class Lattices:
    """The lattices of a unigram vocabulary.

    No piece crosses a space, so that each word has a lattice of its own,
    which is kept for the next time. A text without spaces is one long word.

    Args:
        processor: SentencePiece's, with a unigram model.

    Raises:
        ValueError: If the model is not unigram.
    """

    def __init__(self, processor: sentencepiece.SentencePieceProcessor):
        try:
            processor.nbest_encode("a", nbest_size=2)
        except RuntimeError as error:
            raise ValueError(
                "Segmentations can be drawn from a unigram vocabulary only. "
                f"Received: {error}"
            ) from error
        self._processor = processor
        self._pieces, self._unknown_score = _pieces(processor)
        self._has_bytes = processor.is_byte(processor.piece_to_id("<0x00>"))
        # False of models that others trained to have pieces of many words.
        self._words_are_apart = not any(
            BLANK in piece[1:] for piece in self._pieces
        )
        self._kept_lattice = functools.lru_cache(MOST_KEPT)(self._lattice)

    def draw(
        self, text: str, alpha: float, random: Callable[[], float]
    ) -> list[int]:
        """Draws one segmentation of a text.

        Args:
            text: the text.
            alpha: smoothing; lower draws more varied ones.
            random: gives a number from 0 to 1, without 1, at each call.

        Returns:
            The ids of its pieces.
        """
        backwards = []
        for unit in reversed(self._units(text)):
            is_short = len(unit) <= LONGEST_KEPT
            lattice = (self._kept_lattice if is_short else self._lattice)(
                unit, alpha
            )
            end = len(unit)
            while end:
                shares, starts, ids = lattice[end]
                edge = bisect.bisect(shares, random())
                backwards += ids[edge]
                end = starts[edge]
        return backwards[::-1]

    def _units(self, text):
        """What is segmented by itself, in the form that pieces have."""
        normalized = self._processor.normalize(text)
        if not self._words_are_apart:
            return [normalized]
        first, *words = normalized.split(BLANK)
        return [first, *(BLANK + word for word in words)]

    def _lattice(self, unit, alpha):
        """The edges that arrive at each node of a unit's lattice.

        Returns:
            For each node, of which there is one more than characters:
            `(shares, starts, ids)`. An edge has the node where it starts and
            the ids of its piece, last id first. Shares are cumulative, and
            the last, which is 1, is left out, so that each draw has an edge.
        """
        arriving = [[] for _ in range(len(unit) + 1)]
        # The log of the paths' sum; of the empty path to the start, log(1).
        log_sums = [0.0]
        lattice = [((), (), ())]
        for end in range(1, len(unit) + 1):
            self._depart(unit, end - 1, arriving)
            starts, scores, ids = zip(*arriving[end], strict=True)
            logs = [
                log_sums[start] + alpha * score
                for start, score in zip(starts, scores, strict=True)
            ]
            most = max(logs)
            sums = list(
                itertools.accumulate(math.exp(log - most) for log in logs)
            )
            log_sums.append(most + math.log(sums[-1]))
            shares = tuple(share / sums[-1] for share in sums[:-1])
            lattice.append((shares, starts, ids))
        return lattice

    def _depart(self, unit, start, arriving):
        """Adds the pieces that begin at `start` to where they arrive."""
        known = False
        for end in range(start + 1, len(unit) + 1):
            piece = unit[start:end]
            if piece not in self._pieces:
                break
            score, ids = self._pieces[piece]
            if ids:
                arriving[end].append((start, score, ids))
                known = known or end == start + 1
        if not known:
            ids = self._spelling(unit[start])
            arriving[start + 1].append((start, self._unknown_score, ids))

    def _spelling(self, character):
        """The ids of an unknown character, last id first."""
        if not self._has_bytes:
            return (UNK,)
        return tuple(
            self._processor.piece_to_id(f"<0x{byte:02X}>")
            for byte in reversed(character.encode())
        )


def _pieces(processor):
    """Ids and log-probabilities of pieces, and the score of the unknown.

    Returns:
        `(pieces, unknown_score)`: a dictionary of pieces to their
        log-probability and their id, as `(score, (id,))`. What only begins a
        piece has `(None, ())`.
    """
    pieces = {}
    for id in range(processor.vocab_size()):
        if not (
            processor.is_control(id)
            or processor.is_unknown(id)
            or processor.is_unused(id)
            or processor.is_byte(id)
        ):
            piece = processor.id_to_piece(id)
            pieces[piece] = (processor.get_score(id), (id,))
    # As SentencePiece penalises it.
    unknown_score = min((score for score, _ in pieces.values()), default=0) - 10
    for piece in list(pieces):
        for end in range(1, len(piece)):
            pieces.setdefault(piece[:end], (None, ()))
    return pieces, unknown_score
