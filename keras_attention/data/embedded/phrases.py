"""Parallel phrases from Unicode's locale data and from number words.

Dates, times, units and currencies are formatted by Babel (CLDR), numbers,
ordinals and years are spelt by num2words, in two languages from the same
value: every pair is right by construction. What makes it a translation task
is that languages differ: "twenty-one" is "einundzwanzig" (the order turns
round), "7:05 PM" is "19:05", "March 3" is "3. März".

One function for each category draws a value and formats it twice.
"""

import collections
import datetime
import itertools
import random
import unicodedata
from collections.abc import Callable, Iterator

import num2words
from babel import dates, numbers, units

__all__ = ["CATEGORIES", "Pair", "generate"]

# It changes with what is drawn here: no two styles of date look alike.
VERSION = "2.0.0"
Pair = collections.namedtuple(
    "Pair", ["source", "target", "category", "writing"]
)
# What both texts of a pair came from: `function(*arguments, language)`.
Writing = collections.namedtuple("Writing", ["function", "arguments"])

UNITS = (
    "duration-day",
    "duration-hour",
    "duration-minute",
    "duration-month",
    "duration-second",
    "duration-week",
    "duration-year",
    "length-centimeter",
    "length-kilometer",
    "length-meter",
    "length-mile",
    "mass-gram",
    "mass-kilogram",
    "mass-pound",
    "temperature-celsius",
    "volume-liter",
)
CURRENCIES = ("CHF", "EUR", "GBP", "JPY", "USD")


def _number(generator: random.Random) -> int:
    """A number below a million; each number of digits is equally likely."""
    return generator.randrange(10 ** generator.randint(1, 6))


def _date(generator: random.Random) -> datetime.date:
    first = datetime.date(1900, 1, 1)
    return first + datetime.timedelta(days=generator.randrange(73_000))


def _moment(generator: random.Random) -> datetime.datetime:
    seconds = datetime.timedelta(seconds=generator.randrange(86_400))
    midnight = datetime.datetime.min.time()
    return datetime.datetime.combine(_date(generator), midnight) + seconds


def words(value: int, kind: str, language: str) -> str:
    """A number in words, or an ordinal, or a year."""
    return num2words.num2words(value, lang=language, to=kind)


def day(value: datetime.date, style: str, language: str) -> str:
    """A date, in a style of CLDR or a skeleton."""
    if style in ("full", "long"):
        return dates.format_date(value, style, locale=language)
    return dates.format_skeleton(style, value, locale=language)


def time_of_day(value: datetime.datetime, style: str, language: str) -> str:
    """A time, in a style of CLDR."""
    return dates.format_time(value.time(), style, locale=language)


def day_and_time(value: datetime.datetime, style: str, language: str) -> str:
    """A date and a time, in a style of CLDR."""
    return dates.format_datetime(value, style, locale=language)


def amount(value: float, unit: str, language: str) -> str:
    """A number of units, in CLDR's long form."""
    return units.format_unit(value, unit, length="long", locale=language)


def money(value: float, currency: str, style: str, language: str) -> str:
    """An amount of money, with the currency's sign or its name."""
    return numbers.format_currency(
        value, currency, locale=language, format_type=style
    )


def cardinal(generator: random.Random) -> Writing:
    """345: "three hundred and forty-five"."""
    return Writing(words, (_number(generator), "cardinal"))


def ordinal(generator: random.Random) -> Writing:
    """21st: "twenty-first"."""
    value = 1 + generator.randrange(10 ** generator.randint(1, 4))
    return Writing(words, (value, "ordinal"))


def year(generator: random.Random) -> Writing:
    """1984: "nineteen eighty-four"."""
    return Writing(words, (generator.randrange(1100, 2100), "year"))


def date(generator: random.Random) -> Writing:
    """A day in one of four styles: "March 2025", "Mon, Mar 3" and longer ones.

    Without "medium", which in May looks like "long" in English but not in
    German.
    """
    value = _date(generator)
    style = generator.choice(
        ("full", "full", "long", "long", "yMMMM", "MMMMEEEEd")
    )
    return Writing(day, (value, style))


def time(generator: random.Random) -> Writing:
    """A time of day: "7:05 PM" or "7:05:09 PM"."""
    value = _moment(generator)
    style = generator.choice(("short", "medium"))
    return Writing(time_of_day, (value, style))


def moment(generator: random.Random) -> Writing:
    """A day and a time: "3/3/25, 7:05 PM"."""
    value = _moment(generator)
    style = generator.choice(("short", "medium"))
    return Writing(day_and_time, (value, style))


def quantity(generator: random.Random) -> Writing:
    """A number of units: "12.5 kilograms"."""
    unit = generator.choice(UNITS)
    value = _number(generator) // generator.choice((1, 10, 100))
    if generator.random() < 0.3:
        value += generator.randrange(1, 10) / 10
    return Writing(amount, (value, unit))


def price(generator: random.Random) -> Writing:
    """An amount of money: "€1,234.50" or "1,234.50 euros"."""
    currency = generator.choice(CURRENCIES)
    value = generator.randrange(10 ** generator.randint(1, 6)) / 100
    style = generator.choice(("standard", "name"))
    return Writing(money, (value, currency, style))


# Category -> share of the corpus.
CATEGORIES = {
    cardinal: 0.34,
    ordinal: 0.08,
    year: 0.03,
    date: 0.23,
    time: 0.07,
    moment: 0.07,
    quantity: 0.10,
    price: 0.08,
}


def _clean(text: str) -> str:
    """CLDR's special spaces become ordinary ones."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


def _written(writing: Writing, language: str) -> str:
    """The text in one language.

    Raises:
        ValueError: If the libraries cannot write the language: a few of
            num2words' raise whatever comes, and for some values only.
    """
    try:
        return _clean(writing.function(*writing.arguments, language))
    except Exception as error:
        raise ValueError(
            f"Babel or num2words cannot write the language {language!r}. Both "
            "can write en, de, fr and es, for example. "
            f"({type(error).__name__}: {error})"
        ) from error


def _pair(writing: Writing, category: str, source: str, target: str) -> Pair:
    texts = [_written(writing, language) for language in (source, target)]
    return Pair(*texts, category, writing)


def _draw(
    category: Callable, source: str, target: str, generator: random.Random
) -> Iterator[Pair]:
    """Endless pairs of one category."""
    while True:
        pair = _pair(category(generator), category.__name__, source, target)
        texts = pair.source, pair.target
        if all(unicodedata.normalize("NFKC", text) == text for text in texts):
            yield pair


def generate(
    source: str = "en",
    target: str = "de",
    train: int = 24_000,
    validation: int = 1_000,
    test: int = 1_000,
    seed: int = 0,
) -> dict[str, list[Pair]]:
    """Draws the corpus: the same one at every call.

    No source and no target stands twice, so that each source has one right
    target and the splits are disjoint on both sides. The numbers 0 to 100
    are spelt in the training split.

    Args:
        source, target: language codes.
        train, validation, test: pairs in each split.
        seed: another seed draws another corpus.

    Returns:
        Split -> shuffled pairs.

    Raises:
        ValueError: If the libraries do not know a language, or sizes are
            too small for the numbers or too large to be drawn.
    """
    if train < 101 or min(validation, test) < 1:
        raise ValueError(
            "train must be 101 or more, validation and test 1. Received: "
            f"train={train}, validation={validation}, test={test}"
        )
    codes = source, target
    basics = (
        _pair(Writing(words, (number, "cardinal")), "cardinal", *codes)
        for number in range(101)
    )
    total = train + validation + test
    seen, basic, drawn = set(), [], []

    def take(pairs: Iterator[Pair], count: int, into: list) -> None:
        for pair in itertools.islice(pairs, 20 * count + 100):
            if count == 0:
                break
            keys = {("source", pair.source), ("target", pair.target)}
            if not keys & seen:
                seen.update(keys)
                into.append(pair)
                count -= 1

    take(basics, 101, basic)
    wanted = 0.0
    for category, share in CATEGORIES.items():
        wanted += share * (total - len(basic))
        generator = random.Random(f"{seed} {category.__name__}")
        pairs = _draw(category, source, target, generator)
        take(pairs, round(wanted) - len(drawn), drawn)
    if len(basic) + len(drawn) < total:
        raise ValueError(
            f"{total:,} pairs were asked for, and {len(basic) + len(drawn):,} "
            "that differ were found. Ask for fewer."
        )
    random.Random(f"{seed} order").shuffle(drawn)
    held_out = validation + test
    training = basic + drawn[held_out:]
    random.Random(f"{seed} train").shuffle(training)
    return {
        "train": training,
        "validation": drawn[:validation],
        "test": drawn[validation:held_out],
    }
