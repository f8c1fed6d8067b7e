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

Pair = collections.namedtuple("Pair", ["source", "target", "category"])
Format = Callable[[str], str]  # language -> text

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


def _in_words(value: int) -> Format:
    return lambda language: num2words.num2words(value, lang=language)


def cardinal(generator: random.Random) -> Format:
    """345: "three hundred and forty-five"."""
    return _in_words(_number(generator))


def ordinal(generator: random.Random) -> Format:
    """21st: "twenty-first"."""
    value = 1 + generator.randrange(10 ** generator.randint(1, 4))
    return lambda language: num2words.num2words(
        value, lang=language, to="ordinal"
    )


def year(generator: random.Random) -> Format:
    """1984: "nineteen eighty-four"."""
    value = generator.randrange(1100, 2100)
    return lambda language: num2words.num2words(value, lang=language, to="year")


def date(generator: random.Random) -> Format:
    """A day in one of four styles: "March 2025", "Mon, Mar 3" and longer ones.

    Without "medium", which in May looks like "long" in English but not in
    German.
    """
    value = _date(generator)
    style = generator.choice(
        ("full", "full", "long", "long", "yMMMM", "MMMMEEEEd")
    )
    if style in ("full", "long"):
        return lambda language: dates.format_date(value, style, locale=language)
    return lambda language: dates.format_skeleton(style, value, locale=language)


def time(generator: random.Random) -> Format:
    """A time of day: "7:05 PM" or "7:05:09 PM"."""
    value = _moment(generator).time()
    style = generator.choice(("short", "medium"))
    return lambda language: dates.format_time(value, style, locale=language)


def moment(generator: random.Random) -> Format:
    """A day and a time: "3/3/25, 7:05 PM"."""
    value = _moment(generator)
    style = generator.choice(("short", "medium"))
    return lambda language: dates.format_datetime(value, style, locale=language)


def quantity(generator: random.Random) -> Format:
    """A number of units: "12.5 kilograms"."""
    unit = generator.choice(UNITS)
    value = _number(generator) // generator.choice((1, 10, 100))
    if generator.random() < 0.3:
        value += generator.randrange(1, 10) / 10
    return lambda language: units.format_unit(
        value, unit, length="long", locale=language
    )


def price(generator: random.Random) -> Format:
    """An amount of money: "€1,234.50" or "1,234.50 euros"."""
    currency = generator.choice(CURRENCIES)
    value = generator.randrange(10 ** generator.randint(1, 6)) / 100
    style = generator.choice(("standard", "name"))
    return lambda language: numbers.format_currency(
        value, currency, locale=language, format_type=style
    )


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
    """CLDR's special blanks become ordinary ones."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


def _written(text: Format, language: str) -> str:
    """The text in one language.

    Errors: `ValueError` for a language that the libraries cannot write: a
    few of num2words' raise whatever comes, and for some values only.
    """
    try:
        return _clean(text(language))
    except Exception as error:
        raise ValueError(
            "Expected a language code whose numbers and dates both Babel and "
            "num2words can write, such as en, de, fr or es. "
            f"Received: {language!r}: {type(error).__name__}: {error}"
        ) from error


def _draw(
    category: Callable, source: str, target: str, generator: random.Random
) -> Iterator[Pair]:
    """Endless pairs of one category."""
    while True:
        text = category(generator)
        pair = Pair(
            _written(text, source), _written(text, target), category.__name__
        )
        if all(unicodedata.normalize("NFKC", t) == t for t in pair):
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

    Errors: `ValueError` for a language that the libraries do not know, and
    for sizes that are too small for the numbers or too large to be drawn.
    """
    if train < 101 or min(validation, test) < 1:
        raise ValueError(
            "Expected train >= 101, validation >= 1 and test >= 1. Received: "
            f"train={train}, validation={validation}, test={test}"
        )
    basics = (
        Pair(_written(text, source), _written(text, target), "cardinal")
        for text in map(_in_words, range(101))
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
            f"Expected sizes that can be drawn: {total:,} pairs were asked "
            f"for. Received: {len(basic) + len(drawn):,} that differ"
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
