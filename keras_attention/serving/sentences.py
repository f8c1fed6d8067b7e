"""Texts of several sentences, translated one by one and joined again.

A sentence ends behind ".", "!", "?" or "…" if a space follows and no small
letter. It does not end behind an abbreviation, an initial or a short number,
which is an ordinal in German. Behind "。", "！" and "？" it ends without a
space. It always ends with its line. What the rule misses stays one sentence.
"""

import itertools
import re
import reprlib
from collections.abc import Callable, Iterator, Sequence

# Without their last full stop, in small letters.
ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st sr jr messrs rev hon gen col capt sgt inc ltd co "
    "corp vs etc e.g i.e cf fig figs eq vol pp ed eds approx dept est "
    "bzw usw vgl ca nr str abs art bd hr fr ggf evtl inkl max min mio mrd "
    "sog tel u.a z.b d.h o.ä s.o s.u mme mlle mm av env p.ex sra srta ud "
    "uds núm pág sig dott ecc".split()
)
# These are abbreviations before a number only: "No. 5", but "I said no. Go."
BEFORE_NUMBERS = frozenset(["no"])
# The rest of a line is its last sentence. The group is what comes next; marks
# that stand together (++, *+) stay together, and are read from the first one
# on alone: strangers send a server long rows of them.
_END = re.compile(
    r"(?:(?<![.!?…])[.!?…]++[\"'”’»“‘)\]]*+(?=\s)"
    r"|(?<![。！？])[。！？]++[」』”’）]*+)(?=\s*(\S))"
)
_LONGEST_WORD = 40  # Longer ones are none of these.
_LAST_WORD = re.compile(r"[^\s\"'“‘„‚«»(\[]+$")
# An initial, or a number that may be an ordinal.
_SHORT = re.compile(r"[^\W\d_]|\d{1,2}")


def split(text: str, whole: Sequence[tuple[int, int]] = ()) -> list[str]:
    """The parts of a text: blank, sentence, blank, sentence, ..., blank.

    Args:
        text: any text.
        whole: `(start, end)` of strings in which no sentence ends, as
            `placeholders.find` gives them.

    Returns:
        An odd number of parts, which joined are the text. Those at odd places
        are sentences, the others what stands around them: spaces, line ends,
        or nothing.

    Example:

    >>> split("Hello. How are you?\\n")
    ['', 'Hello.', ' ', 'How are you?', '\\n']
    """
    inside = {place for start, end in whole for place in range(start + 1, end)}
    ends = [end for end in _ends(text) if end not in inside]
    parts = [""]
    for start, end in itertools.pairwise([0, *ends, len(text)]):
        sentence = text[start:end]
        core = sentence.strip()
        before, after = sentence.split(core, 1) if core else (sentence, "")
        parts[-1] += before
        parts += [core, after] if core else []
    return parts


def by_sentences(
    translate: Callable[[list[str]], Sequence[str]],
    texts: Sequence[str],
    find: Callable[[str], Sequence[tuple[int, int]]] = lambda text: (),
) -> list[str]:
    """Translates the sentences of texts, and joins them as they stood.

    Args:
        translate: a function of sentences to as many translations, such as a
            `Translator`. It is called once.
        texts: what to translate.
        find: a function of a text to the strings in which no sentence ends,
            see `split`.

    Returns:
        A translation of each text. The spaces and line ends between sentences,
        before the first and behind the last are those of the text.

    Raises:
        ValueError: If `texts` is a single text.

    Example:

    >>> by_sentences(lambda rows: [row.upper() for row in rows], ["A b.\\n C?"])
    ['A B.\\n C?']
    """
    if isinstance(texts, str):
        raise ValueError(
            f"Put a single text in a list. Received: {reprlib.repr(texts)}"
        )
    parts = [split(text, find(text)) for text in texts]
    found = iter(translate([one for row in parts for one in row[1::2]]))
    for row in parts:
        row[1::2] = itertools.islice(found, len(row) // 2)
    return ["".join(row) for row in parts]


def _ends(text: str) -> Iterator[int]:
    """Where sentences end, in order."""
    start = 0
    for line in text.splitlines(keepends=True):
        for end in _END.finditer(line):
            if _is_end(line, end):
                yield start + end.end()
        start += len(line)
        yield start


def _is_end(line: str, end: re.Match) -> bool:
    """Whether a sentence ends with these marks."""
    if end[1].islower():
        return False
    before = line[max(0, end.start() - _LONGEST_WORD) : end.start()]
    word = _LAST_WORD.search(before)
    if end.group() != "." or word is None:
        return True
    is_short = _SHORT.fullmatch(word.group().rpartition(".")[2])
    known = (
        ABBREVIATIONS | BEFORE_NUMBERS if end[1].isdigit() else ABBREVIATIONS
    )
    return not is_short and word.group().lower() not in known
