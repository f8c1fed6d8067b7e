"""The embedded corpus: the same everywhere, sound, and without overlap."""

import collections
import hashlib
import os
import subprocess
import sys
import unicodedata

import num2words
import pytest
from babel import dates

from keras_attention.data.embedded import phrases

SIZES = {"train": 3000, "validation": 200, "test": 100}


@pytest.fixture(scope="module", params=["en_de", "de_en", "fr_es", "it_nl"])
def pair(request):
    return request.param.split("_")


@pytest.fixture(scope="module")
def drawn(pair):
    return phrases.generate(*pair, **SIZES)


@pytest.fixture(scope="module")
def german():
    """Pairs of English and German phrases."""
    return phrases.generate("en", "de", **SIZES)["train"]


def digest(splits):
    texts = [(s, [p[:3] for p in pairs]) for s, pairs in splits.items()]
    text = repr(texts)
    return hashlib.sha256(text.encode()).hexdigest()


DIGEST = """
import hashlib
from keras_attention.data.embedded import phrases
splits = phrases.generate("en", "de", train=3000, validation=200, test=100)
texts = [(s, [p[:3] for p in pairs]) for s, pairs in splits.items()]
text = repr(texts)
print(hashlib.sha256(text.encode()).hexdigest())
"""


@pytest.mark.slow
def test_every_process_draws_the_same():
    environment = {
        **os.environ,
        **{"PYTHONHASHSEED": "12345", "LC_ALL": "C", "LANGUAGE": "fr"},
        **{"LANG": "de_DE.UTF-8", "TZ": "Pacific/Kiritimati"},
    }
    output = subprocess.run(
        [sys.executable, "-c", DIGEST],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ).stdout
    assert output.strip() == digest(phrases.generate("en", "de", **SIZES))


def test_another_seed_draws_others():
    sizes = {"train": 200, "validation": 10, "test": 20}
    first, other = (phrases.generate(**sizes, seed=seed) for seed in (0, 1))
    assert digest(first) != digest(other)
    # The draws differ, not only their order.
    assert {*first["test"]} != {*other["test"]}


def test_no_source_and_no_target_stands_twice(drawn):
    pairs = [pair for split in drawn.values() for pair in split]
    assert len({pair.source for pair in pairs}) == len(pairs)
    assert len({pair.target for pair in pairs}) == len(pairs)


def test_sizes_are_those_asked_for(drawn):
    assert {split: len(pairs) for split, pairs in drawn.items()} == SIZES


@pytest.mark.parametrize(
    "sizes, message",
    [
        ({"train": 10}, "train must be 101 or more"),
        ({"test": 0}, "validation and test 1"),
    ],
)
def test_sizes_that_cannot_be_had(sizes, message):
    with pytest.raises(ValueError, match=message):
        phrases.generate(**{**SIZES, **sizes})


def test_text_is_clean(drawn):
    for split in drawn.values():
        for pair in split:
            for text in (pair.source, pair.target):
                assert unicodedata.normalize("NFKC", text) == text
                assert " ".join(text.split()) == text != ""
                assert "\n" not in text


def test_splits_are_mixtures(drawn):
    shares = {c.__name__: share for c, share in phrases.CATEGORIES.items()}
    assert sum(shares.values()) == pytest.approx(1)
    for split in drawn.values():
        counts = collections.Counter(pair.category for pair in split)
        assert set(counts) == set(shares)
        for category, share in shares.items():
            assert abs(counts[category] / len(split) - share) < 0.12


def test_the_first_hundred_numbers_are_in_training(pair, drawn):
    source, target = pair
    training = {p.source: p.target for p in drawn["train"]}
    for value in range(101):
        spelt = num2words.num2words(value, lang=source)
        assert training[spelt] == num2words.num2words(value, lang=target)


def test_the_order_turns_round_in_german(german):
    pairs = {(p.source, p.target, p.category) for p in german}
    assert ("twenty-one", "einundzwanzig", "cardinal") in pairs
    assert ("ninety-eight", "achtundneunzig", "cardinal") in pairs


def test_years_mean_the_same(german):
    years = {p.source: p.target for p in german if p.category == "year"}
    spelt = {
        num2words.num2words(year, lang="en", to="year"): num2words.num2words(
            year, lang="de", to="year"
        )
        for year in range(1100, 2100)
    }
    assert len(years) > 50
    assert years.items() <= spelt.items()


def test_dates_mean_the_same(german):
    # Both sides of a numeric date, read back by Babel.
    numeric = [
        (p.source.split(",")[0], p.target.split(",")[0])
        for p in german
        if p.category == "moment" and "/" in p.source
    ]
    assert len(numeric) > 20
    for source, target in numeric:
        assert dates.parse_date(source, locale="en_US") == dates.parse_date(
            target, locale="de"
        )


def test_a_date_has_one_right_translation(german):
    """No "03.05.2025" beside "3. Mai 2025": both are "May 3, 2025"."""
    targets = [pair.target for pair in german if pair.category == "date"]
    assert len(targets) > 100
    assert all(any(c.isalpha() for c in target) for target in targets)


@pytest.mark.parametrize("wrong", ["xx", "qq_QQ", "", "la", "ca", "ko"])
def test_an_unknown_language_is_refused(wrong):
    with pytest.raises(ValueError, match=f"the language '{wrong}'"):
        phrases.generate("en", wrong, **SIZES)
