"""Writes the true alignment of the test split of `phrases`, by rule.

    python tutorials/phrase_links.py

`keras-attention align` reads the file that this program writes. Each line is a
phrase: its two texts, and its links, with tabs between them. A link such as
`0-3,7-9:4-8` says which characters of the two texts say the same.

Both texts of a pair were written from one value, so each can be cut into
parts that carry the name of what they say: `("tens", "twenty")` in one
language, `("tens", "zwanzig")` in the other. Parts of one name say the same.
"""

import collections
import datetime
import pathlib
import re
from collections.abc import Iterator

from babel import Locale, dates

from keras_attention.data.embedded import phrases
from keras_attention.data.embedded.phrases import (
    Pair,
    amount,
    day,
    day_and_time,
    money,
    time_of_day,
    words,
)

# Name of what it says, or "" for what only joins; text.
Part = tuple[str, str]
# Where it stands in a text: from a character on, to before another.
Span = tuple[int, int]

FIELDS = {
    **dict.fromkeys("yYu", "year"),
    **dict.fromkeys("ML", "month"),
    "d": "day",
    **dict.fromkeys("Ece", "weekday"),
    # PM says whether 7 is 7 or 19.
    **dict.fromkeys("hHkKabB", "hour"),
    "m": "minute",
    "s": "second",
}
PIECES = re.compile(r"\d+|\D")


def _fields(pattern: str, value: datetime.date, locale: str) -> Iterator[Part]:
    """The parts of a date or time in a pattern of CLDR."""
    fields = dates.DateTimeFormat(value, locale)
    for kind, token in dates.tokenize_pattern(pattern):
        if kind == "chars":
            yield "", token
        else:
            letter, width = token
            yield FIELDS[letter], fields[letter * width]


def _day(value, style, language) -> Iterator[Part]:
    if style in ("full", "long", "medium", "short"):
        pattern = dates.get_date_format(style, locale=language).pattern
    else:
        skeletons = Locale.parse(language).datetime_skeletons
        pattern = skeletons[dates.match_skeleton(style, skeletons)].pattern
    return _fields(pattern, value, language)


def _time_of_day(value, style, language) -> Iterator[Part]:
    pattern = dates.get_time_format(style, locale=language).pattern
    return _fields(pattern, value, language)


def _day_and_time(value, style, language) -> Iterator[Part]:
    both = dates.get_datetime_format(style, locale=language)
    halves = {"{0}": _time_of_day, "{1}": _day}
    for piece in re.split(r"(\{[01]\})", both.replace("'", "")):
        if piece in halves:
            yield from halves[piece](value, style, language)
        else:
            yield "", piece


def _digits(text: str) -> Iterator[Part]:
    """ "1,234.50", in any language: groups of digits from the right."""
    pieces = PIECES.findall(text)
    fraction = []
    if len(pieces) > 1 and len(pieces[-1]) != 3:
        *pieces, point, digits = pieces
        fraction = [("point", point), ("fraction", digits)]
    for index, piece in enumerate(pieces):
        place = len(pieces) - 1 - index
        kind = "group" if piece.isdigit() else "separator"
        yield f"{kind} {place}", piece
    yield from fraction


def _number_and_name(text: str) -> Iterator[Part]:
    """A number in digits beside a unit or a currency."""
    before, number, after = re.split(r"(\d(?:.*\d)?)", text, maxsplit=1)
    yield from _name(before)
    yield from _digits(number)
    yield from _name(after)


def _name(text: str) -> Iterator[Part]:
    name = text.strip()
    before, after = text.split(name) if name else (text, "")
    yield from (("", before), ("name", name), ("", after))


def _amount(value, unit, language) -> Iterator[Part]:
    return _number_and_name(amount(value, unit, language))


def _money(value, currency, style, language) -> Iterator[Part]:
    return _number_and_name(money(value, currency, style, language))


def _word(number: int, language: str) -> str:
    return words(number, "cardinal", language)


def _english(number: int) -> Iterator[Part]:
    """ "nine hundred and fifty-six thousand, nine hundred and three"."""
    thousands, rest = divmod(number, 1000)
    if thousands:
        yield from _english_below_thousand(thousands, "000")
        yield from (("", " "), ("thousand", "thousand"))
        if rest:
            yield "", ", " if rest >= 100 else " and "
    if rest or not thousands:
        yield from _english_below_thousand(rest, "")


def _english_below_thousand(number: int, zeros: str) -> Iterator[Part]:
    hundreds, rest = divmod(number, 100)
    if hundreds:
        yield f"hundreds{zeros}", _word(hundreds, "en")
        yield from (("", " "), (f"hundred{zeros}", "hundred"))
        if rest:
            yield "", " and "
    if rest or not hundreds:
        yield from _english_below_hundred(rest, zeros)


def _english_below_hundred(number: int, zeros: str) -> Iterator[Part]:
    tens, units = divmod(number, 10)
    if number < 20:
        yield f"units{zeros}", _word(number, "en")
        return
    yield f"tens{zeros}", _word(10 * tens, "en")
    if units:
        yield f"joint{zeros}", "-"
        yield f"units{zeros}", _word(units, "en")


def _german(number: int) -> Iterator[Part]:
    """ "neunhundertsechsundfünfzigtausendneunhundertdrei"."""
    thousands, rest = divmod(number, 1000)
    if thousands:
        yield from _german_below_thousand(thousands, "000")
        yield "thousand", "tausend"
    if rest or not thousands:
        yield from _german_below_thousand(rest, "")


def _german_below_thousand(number: int, zeros: str) -> Iterator[Part]:
    hundreds, rest = divmod(number, 100)
    if hundreds:
        yield f"hundreds{zeros}", _german_one_to_nine(hundreds)
        yield f"hundred{zeros}", "hundert"
    if number == 1 and zeros:
        yield f"units{zeros}", "ein"
    elif rest or not hundreds:
        yield from _german_below_hundred(rest, zeros)


def _german_one_to_nine(number: int) -> str:
    return "ein" if number == 1 else _word(number, "de")


def _german_below_hundred(number: int, zeros: str) -> Iterator[Part]:
    tens, units = divmod(number, 10)
    if number < 20:
        yield f"units{zeros}", _word(number, "de")
        return
    if units:
        yield f"units{zeros}", _german_one_to_nine(units)
        yield f"joint{zeros}", "und"
    yield f"tens{zeros}", _word(10 * tens, "de")


def _english_year(number: int) -> Iterator[Part]:
    """ "nineteen eighty-four", "fourteen oh-five", "two thousand and five"."""
    century, rest = divmod(number, 100)
    if 2000 <= number < 2010:
        yield from (("century", "two"), ("", " "), ("thousand", "thousand"))
        if rest:
            yield "", " and "
    else:
        yield "century", _word(century, "en")
        yield "", " "
        if not rest:
            yield "hundred", "hundred"
        elif rest < 10:
            yield from (("", "oh"), ("", "-"))
    if rest:
        yield from _english_below_hundred(rest, "")


def _german_year(number: int) -> Iterator[Part]:
    """ "neunzehnhundertvierundachtzig", "zweitausendfünf"."""
    century, rest = divmod(number, 100)
    if 2000 <= number < 2010:
        yield from (("century", "zwei"), ("thousand", "tausend"))
    elif number >= 2000:  # "twenty eighty-four"
        yield "century", "zweitausend"
    else:
        yield "century", _word(century, "de")
        yield "hundred", "hundert"
    if rest:
        yield from _german_below_hundred(rest, "")


NUMBER_WORDS = {
    ("en", "cardinal"): _english,
    ("en", "ordinal"): _english,
    ("en", "year"): _english_year,
    ("de", "cardinal"): _german,
    ("de", "ordinal"): _german,
    ("de", "year"): _german_year,
}


def _words(number: int, kind: str, language: str) -> list[Part]:
    found = list(NUMBER_WORDS[language, kind](number))
    if kind == "ordinal":  # Only the last word says that it is one.
        name, _ = found.pop()
        before = "".join(text for _, text in found)
        text = words(number, kind, language)
        if not text.startswith(before):  # "hundertste" has no "ein".
            found, before = [], ""
        found.append((name, text[len(before) :]))
    return found


PARTS = {
    words: _words,
    day: _day,
    time_of_day: _time_of_day,
    day_and_time: _day_and_time,
    amount: _amount,
    money: _money,
}


def parts(pair: Pair, language: str) -> list[Part]:
    """The text of a pair in one of its languages, cut into parts.

    Joined, the parts are that text.
    """
    function, arguments = pair.writing
    return [
        (name, re.sub(r"\s", " ", text))  # no-break blanks, and others
        for name, text in PARTS[function](*arguments, language)
        if text
    ]


def links(
    pair: Pair, source: str, target: str
) -> list[tuple[list[Span], list[Span]]]:
    """What says the same: the true alignment of a pair.

    Args:
        pair: from `generate`.
        source, target: its languages.

    Returns:
        List of `(source_spans, target_spans)`, lists of (start, end) in
        characters of `pair.source` and `pair.target`.
    """
    source_spans, target_spans = (
        _spans(parts(pair, language)) for language in (source, target)
    )
    return [
        (spans, target_spans[name])
        for name, spans in source_spans.items()
        if name in target_spans
    ]


def line(pair: Pair) -> str:
    """The line of a pair, English to German, in the file."""
    written = " ".join(
        ":".join(
            ",".join(f"{start}-{end}" for start, end in spans) for spans in link
        )
        for link in links(pair, "en", "de")
    )
    return f"{pair.source}\t{pair.target}\t{written}"


def _spans(found: list[Part]) -> dict[str, list[Span]]:
    spans, start = collections.defaultdict(list), 0
    for name, text in found:
        if name:
            spans[name].append((start, start + len(text)))
        start += len(text)
    return spans


def main():
    lines = [line(pair) for pair in phrases.generate("en", "de")["test"]]
    path = pathlib.Path(phrases.__file__).with_name("phrases_test_links.tsv")
    path.write_text("\n".join(lines) + "\n", "utf-8")
    print(path)


if __name__ == "__main__":
    main()
