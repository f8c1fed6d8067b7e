"""Strings that come out of a translator as they went in.

Names, numbers, addresses and tags are replaced by stand-ins, such as 71. Behind
the translator, the strings take the places of their stand-ins. Each comes out
once, by the first of these ways that succeeds:

1. The translation holds each stand-in once, by itself.
2. A beam search that must write them does (`Translator.constrained`), if the
   translator was made with `constraints`.
3. What stands between the strings is translated for itself.

References: Luong et al. 2015 (arXiv 1410.8206), who put unknown words back;
Post et al. 2019 (W19-6618), who compare such ways.
"""

import dataclasses
import functools
import heapq
import itertools
import math
import re
import reprlib
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence

from keras_attention.serving import constraints

if typing.TYPE_CHECKING:
    from keras_attention.serving import translator

# Patterns that have a name. Each reads a text in a time that grows with its
# length alone, as strangers send texts to a server: what may come twice is
# possessive, as in \d++, or has a limit.
PATTERNS = {
    "url": r"(?:https?://|www\.)[^\s<>\"]*[\w/]",
    # No address has more before its @ (RFC 5321, section 4.5.3.1.1).
    "email": r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+",
    "tag": r"</?[A-Za-z][^<>]*>",
    # "50%discount" and "100 %ige" hold none; "%d日" does.
    "field": r"\$?\{[^{}\s]*\}|"
    r"(?<!\d)%(?:\(\w+\)|\d+\$)?[-+0#]*+\d*+(?:\.\d+)?[sdif](?![A-Za-z])",
    "number": r"\d+(?:[.,:/-]\d+)*",
}
# Numbers below have many forms and meanings.
FIRST = 71


@dataclasses.dataclass(frozen=True)
class Masked:
    """A text with stand-ins.

    Attributes:
        text: what is translated.
        kept: stand-in -> the string whose place it has.
        joined_before, joined_behind: stand-ins that a space was set before or
            behind.
    """

    text: str
    kept: Mapping[str, str]
    joined_before: frozenset[str] = frozenset()
    joined_behind: frozenset[str] = frozenset()

    def restored(self, translation: str) -> str | None:
        """A translation with the strings in place of the stand-ins.

        Returns:
            None if it does not hold each stand-in once.
        """
        places = []
        for stand_in in self.kept:
            place = _place(stand_in, translation)
            if place is None:
                return None
            places.append((*place, stand_in))
        text, end = "", 0
        for start, stop, stand_in in sorted(places):
            before = translation[end:start]
            if stand_in in self.joined_before:
                before = before.removesuffix(" ")
            text += before + self.kept[stand_in]
            end = stop
            if stand_in in self.joined_behind and translation[end:][:1] == " ":
                end += 1
        return text + translation[end:]


def find(
    text: str, patterns: Sequence[str], most: float = math.inf
) -> list[tuple[int, int]]:
    """Where the strings to keep are, in order.

    Of several that overlap, the one that begins first is taken, then the
    longest.

    Args:
        text: any text.
        patterns: names of `PATTERNS`, or regular expressions.
        most: the search ends behind as many strings.

    Returns:
        `(start, end)` of each.

    Raises:
        ValueError: If a pattern is no regular expression, or if `patterns` is
            a single one.

    Example:

    >>> find("call 5551234 or a@b.de", ["email", "number"])
    [(5, 12), (16, 22)]
    """
    if isinstance(patterns, str):
        raise ValueError(
            f"Put a single pattern in a list. Received: {patterns!r}"
        )
    # Each gives its own in order, and no more of them than are looked at.
    spans = heapq.merge(
        *(_spans(pattern, text) for pattern in dict.fromkeys(patterns)),
        key=lambda span: (span[0], -span[1]),
    )
    chosen, end = [], 0
    for start, stop in spans:
        if len(chosen) >= most:
            break
        if start >= end:
            chosen.append((start, stop))
            end = stop
    return chosen


def mask(
    text: str, patterns: Sequence[str], stand_in: str = "{}", beside: str = ""
) -> Masked:
    """Puts stand-ins in place of strings.

    A space is set between a stand-in and a letter or a digit beside it.
    `Masked.restored` takes it away again.

    Args:
        text: any text.
        patterns: see `find`.
        stand_in: what a stand-in looks like; `{}` is a number, from 71, which
            does not stand in the text.
        beside: another text in which the number does not stand either.

    Raises:
        ValueError: As `find`, or if `stand_in` has no `{}`.

    Example:

    >>> mask("see <b>this</b>", ["tag"]).text
    'see 71 this 72'
    """
    if stand_in.count("{}") != 1:
        raise ValueError(
            "A stand-in holds one {}, which is its number. Received: "
            f"{stand_in!r}"
        )
    kept, joined = {}, {True: set(), False: set()}
    masked, end, spans = "", 0, find(text, patterns)
    numbers = _numbers(f"{text} {beside}", len(spans))
    for (start, stop), number in zip(spans, numbers, strict=True):
        name = stand_in.replace("{}", number)
        masked += _apart(masked, text[end:start], joined[False], kept)
        if _joins(masked[-1:]):
            masked += " "
            joined[True].add(name)
        kept[name], end = text[start:stop], stop
        masked += name
    masked += _apart(masked, text[end:], joined[False], kept)
    return Masked(
        masked, kept, frozenset(joined[True]), frozenset(joined[False])
    )


def mask_pair(
    source: str,
    target: str,
    patterns: Sequence[str],
    stand_in: str = "{}",
) -> tuple[str, str]:
    """A pair of the training data with stand-ins for what both texts hold.

    A model that has learned from such pairs copies stand-ins by itself.

    Args:
        source, target: a text and its translation.
        patterns, stand_in: see `mask`.

    Returns:
        The two with stand-ins; as they were, if the target does not hold the
        same strings as often.

    Raises:
        ValueError: As `mask`.

    Example:

    >>> mask_pair("5 dogs, 3 cats", "3 Katzen, 5 Hunde", ["number"])
    ('71 dogs, 72 cats', '72 Katzen, 71 Hunde')
    """
    one = mask(source, patterns, stand_in, beside=target)
    other = mask(target, patterns)
    left = [*one.kept.items()]
    names = {}
    for name, string in other.kept.items():
        pair = next((pair for pair in left if pair[1] == string), None)
        if pair is None:
            return source, target
        left.remove(pair)
        names[name] = pair[0]
    # The spaces stay: texts to translate will have them, too.
    renamed = Masked(other.text, names).restored(other.text)
    return (source, target) if left else (one.text, renamed)


def keep(
    translate: "translator.Translator",
    texts: Sequence[str],
    patterns: Sequence[str],
    stand_in: str = "{}",
    num_beams: int | None = None,
    batch_size: int = 64,
    truncate: bool = False,
) -> list[str]:
    """Translates texts, and keeps strings as they are.

    Args:
        translate: a translator.
        texts, num_beams, batch_size, truncate: as for its call.
        patterns: what to keep, see `find`.
        stand_in: see `mask`.

    Returns:
        A translation of each text. What the patterns find in the text stands in
        it, each once.

    Raises:
        ValueError: As `mask` and as the translator's call.
    """
    if isinstance(texts, str):
        raise ValueError(
            f"Put a single text in a list. Received: {reprlib.repr(texts)}"
        )
    ask = functools.partial(
        translate, num_beams=num_beams, batch_size=batch_size, truncate=truncate
    )
    rows = [mask(text, patterns, stand_in) for text in texts]
    answers = ask([row.text for row in rows])
    found = [
        row.restored(answer) for row, answer in zip(rows, answers, strict=True)
    ]
    missing = [place for place, one in enumerate(found) if one is None]
    if missing and _can_force(translate, [rows[place] for place in missing]):
        forced = translate.constrained(
            [rows[place].text for place in missing],
            terms=[[*rows[place].kept] for place in missing],
            batch_size=batch_size,
            truncate=truncate,
        )
        for place, (answer, _) in zip(missing, forced, strict=True):
            found[place] = rows[place].restored(answer)
    missing = [place for place, one in enumerate(found) if one is None]
    pieces = _in_pieces(ask, [texts[place] for place in missing], patterns)
    for place, text in zip(missing, pieces, strict=True):
        found[place] = text
    return found


def _can_force(translate, rows: Sequence[Masked]) -> bool:
    """Whether a constrained search can write the stand-ins."""
    if constraints.NAME not in translate.signatures:
        return False
    names = [name for row in rows for name in row.kept]
    # A SavedModel does not tell what it can write. It finds nothing then.
    return translate.path is not None or not constraints.unknown(
        names, translate.graph.target_tokenizer
    )


def _in_pieces(
    ask: Callable[[list[str]], Sequence[str]],
    texts: Sequence[str],
    patterns: Sequence[str],
) -> list[str]:
    """Translations of what stands between the strings, with the strings."""
    parts = [_parts(text, find(text, patterns)) for text in texts]
    # What has no letter is no text.
    cores = [
        (row, place)
        for row in parts
        for place in range(0, len(row), 2)
        if any(letter.isalpha() for letter in row[place])
    ]
    answers = ask([row[place].strip() for row, place in cores])
    for (row, place), answer in zip(cores, answers, strict=True):
        before, after = row[place].split(row[place].strip(), 1)
        row[place] = before + answer + after
    return ["".join(row) for row in parts]


def _parts(text: str, spans: Sequence[tuple[int, int]]) -> list[str]:
    """What is translated and what is kept, by turns."""
    ends = [0, *(end for span in spans for end in span), len(text)]
    return [text[a:b] for a, b in zip(ends, ends[1:], strict=False)]


def _numbers(text: str, count: int) -> list[str]:
    """Numbers that are no parts of the text, nor of each other: as long."""
    found, least = [], FIRST
    digits = re.findall("[0-9]+", text)
    while len(found) < count:
        width = len(str(least))
        taken = {
            run[place : place + width]
            for run in digits
            for place in range(len(run) - width + 1)
        }
        numbers = map(str, range(least, 10**width))
        free = (number for number in numbers if number not in taken)
        found, least = [*itertools.islice(free, count)], 10**width
    return found


def _apart(masked: str, text: str, joined: set[str], kept: Mapping) -> str:
    """A text that goes on behind a stand-in, with a space if it needs one."""
    if not kept or not _joins(text[:1]):
        return text
    joined.add([*kept][-1])
    return " " + text


def _joins(letter: str) -> bool:
    """Whether a letter beside a number would change it: "7a", "77"."""
    # Letters without case, such as Chinese ones, need no space.
    return letter.isdigit() or letter.lower() != letter.upper()


def _place(stand_in: str, text: str) -> tuple[int, int] | None:
    """Where a stand-in is, if it is there once and by itself, as 71 in "71 a".

    It is not by itself in 713, nor in 71st.
    """
    before, *rest = text.split(stand_in)
    if len(rest) != 1 or _joins(before[-1:]) or _joins(rest[0][:1]):
        return None
    return len(before), len(before) + len(stand_in)


def _spans(pattern: str, text: str) -> Iterator[tuple[int, int]]:
    """Where a pattern finds what is not blank, in order."""
    found = _compiled(pattern).finditer(text)
    return (match.span() for match in found if match.group().strip())


def _compiled(pattern: str) -> re.Pattern:
    try:
        return re.compile(PATTERNS.get(pattern, pattern))
    except re.error as error:
        raise ValueError(
            f"{pattern!r} is no regular expression ({error}), and none of "
            f"{', '.join(PATTERNS)}."
        ) from error
