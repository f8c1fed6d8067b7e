"""The true alignment of phrases: parts that say the same."""

import datetime

import phrase_links
import pytest

from keras_attention.data.embedded import phrases
from keras_attention.evaluation import phrase_alignment

SIZES = {"train": 3000, "validation": 200, "test": 100}


@pytest.fixture(scope="module")
def pairs():
    splits = phrases.generate("en", "de", **SIZES)
    return [pair for split in splits.values() for pair in split]


def test_parts_joined_are_the_text(pairs):
    for pair in pairs:
        for language, text in (("en", pair.source), ("de", pair.target)):
            found = phrase_links.parts(pair, language)
            assert "".join(part for _, part in found) == text


def names(pair):
    return [
        {name for name, _ in phrase_links.parts(pair, language)} - {""}
        for language in ("en", "de")
    ]


def test_what_is_named_in_one_language_is_named_in_the_other(pairs):
    for pair in pairs:
        # "hundredth" and "thousandth" are one word in German; years follow.
        if pair.source not in ("one hundredth", "one thousandth"):
            if pair.category != "year":
                english, german = names(pair)
                assert english == german, pair.source


def pair_of(*writing):
    function, *arguments = writing
    texts = [function(*arguments, language) for language in ("en", "de")]
    return phrases.Pair(
        *(text.replace("\u202f", " ").replace("\xa0", " ") for text in texts),
        "",
        phrases.Writing(function, tuple(arguments)),
    )


def test_every_year():
    for year in range(1100, 2100):
        pair = pair_of(phrases.words, year, "year")
        english, german = names(pair)
        # "nineteen eighty-four" is "neunzehn-hundert-vier-und-achtzig".
        assert english ^ german <= {"hundred"}, pair.source
        for language, text in (("en", pair.source), ("de", pair.target)):
            found = phrase_links.parts(pair, language)
            assert "".join(part for _, part in found) == text


def linked(pair):
    """[(source texts, target texts)] of a pair's links."""
    return [
        tuple(
            " ".join(text[start:end] for start, end in spans)
            for text, spans in zip(
                (pair.source, pair.target), link, strict=True
            )
        )
        for link in phrase_links.links(pair, "en", "de")
    ]


MOMENT = datetime.datetime(2025, 3, 3, 19, 5, 9)


@pytest.mark.parametrize(
    "writing, expected",
    [
        (
            (phrases.words, 21, "cardinal"),
            "twenty=zwanzig -=und one=ein",
        ),
        (
            (phrases.words, 2301, "cardinal"),
            "two=zwei thousand=tausend three=drei hundred=hundert one=eins",
        ),
        (
            (phrases.words, 2100, "ordinal"),
            "two=zwei thousand=tausend one=ein hundredth=hundertste",
        ),
        (
            (phrases.words, 21, "ordinal"),
            "twenty=zwanzigste -=und first=ein",
        ),
        (
            (phrases.words, 1984, "year"),
            "nineteen=neunzehn eighty=achtzig -=und four=vier",
        ),
        ((phrases.words, 1905, "year"), "nineteen=neunzehn five=fünf"),
        ((phrases.words, 2005, "year"), "two=zwei thousand=tausend five=fünf"),
        ((phrases.day, MOMENT.date(), "long"), "March=März 3=3 2025=2025"),
        (
            (phrases.day_and_time, MOMENT, "short"),
            "3=03 3=03 25=25 7+PM=19 05=05",
        ),
        ((phrases.time_of_day, MOMENT, "medium"), "7+PM=19 05=05 09=09"),
        (
            (phrases.money, 1234.5, "EUR", "standard"),
            "€=€ 1=1 ,=. 234=234 .=, 50=50",
        ),
        (
            (phrases.amount, 12.5, "mass-kilogram"),
            "12=12 .=, 5=5 kilograms=Kilogramm",
        ),
    ],
)
def test_links_by_hand(writing, expected):
    links = [
        f"{source}={target}".replace(" ", "+")
        for source, target in linked(pair_of(*writing))
    ]
    assert " ".join(links) == expected


@pytest.mark.parametrize("category", phrases.CATEGORIES)
def test_links_say_the_same(pairs, category):
    """Of digits it can be seen: they are the same on both sides."""
    seen = 0
    for pair in pairs:
        if pair.category != category.__name__:
            continue
        for source, target in linked(pair):
            assert source and target
            if source.isdigit() and target.isdigit():
                seen += 1
                assert int(source) == int(target)
    words = ("cardinal", "ordinal", "year")
    assert (seen == 0) == (category.__name__ in words)


@pytest.mark.slow
def test_the_file_holds_the_links_of_the_test_split():
    written = phrase_alignment.LINKS.read_text("utf-8").splitlines()
    test = phrases.generate("en", "de")["test"]
    assert written == [phrase_links.line(pair) for pair in test]
