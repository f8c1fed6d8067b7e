"""What is kept comes out as it went in, whatever the model writes."""

import re
import types

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from keras_attention import Translator, data
from keras_attention.serving import placeholders

NAMED = [*placeholders.PATTERNS]
KEPT = [
    "https://x.org/a?b=71&c=%20",
    "www.x.org/71",
    "ann@x.org",
    "<b>",
    "</b>",
    "<a href='72'>",
    "{name}",
    "${71}",
    "%s",
    "%(name)d",
    "%1$s",
    "%.2f",
    "71",
    "3.50",
    "7",
]
WORDS = strategies.sampled_from(["dog", "a ", ". ", "(", "犬", "é", "\n", " "])
TEXTS = strategies.lists(
    strategies.one_of(strategies.sampled_from(KEPT), WORDS), max_size=9
).map("".join)
PROPERTY = hypothesis.settings(
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)


class Fake:
    """A translator that writes what functions of a text say."""

    path = "a SavedModel"

    def __init__(self, write, force=None):
        self.write, self.force = write, force
        self.signatures = ["constrained"] if force else []
        self.asked = []

    def __call__(self, texts, **options):
        self.asked.append(texts)
        return [self.write(text) for text in texts]

    def constrained(self, texts, terms, **options):
        self.asked.append((texts, terms))
        return [
            (self.force(*row), 0.0) for row in zip(texts, terms, strict=True)
        ]


def found_in(text, patterns=NAMED):
    return sorted(
        text[start:stop] for start, stop in placeholders.find(text, patterns)
    )


@PROPERTY
@hypothesis.given(TEXTS)
def test_what_changes_nothing_gives_the_text_back(text):
    translate = Fake(lambda text: text)
    for stand_in in ("{}", "⟦{}⟧"):
        assert placeholders.keep(translate, [text], NAMED, stand_in) == [text]


@PROPERTY
@hypothesis.given(TEXTS, strategies.data())
def test_each_string_comes_out_once(text, draw):
    """Of a model that forgets, repeats and glues, and writes Greek."""

    def write(text):
        words = [*text.split(), "Ω"]
        words += draw.draw(strategies.lists(strategies.sampled_from(words)))
        words = draw.draw(strategies.permutations(words))[:9]
        gap = draw.draw(strategies.sampled_from([" ", "", " Ω "]))
        return gap.join(re.sub(r"[^\W\d]", "Ω", word) for word in words)

    def force(text, terms):
        return write(" ".join([text, *terms]))

    for translate in (Fake(write), Fake(write, force)):
        (found,) = placeholders.keep(translate, [text], NAMED)
        for string in sorted(found_in(text), key=len, reverse=True):
            assert string in found
            found = found.replace(string, "", 1)
        # Nothing is left: neither a stand-in nor a string for the second time.
        assert not re.search(r"[a-z0-9<>]", found)


def test_the_ways_follow_each_other():
    text = "Ask ann@x.org, or see <b>71</b>."
    masked = "Ask 72, or see 73 71 74."
    copied = Fake(lambda text: text.replace("Ask", "Frag"))
    patterns = ["email", "tag"]
    expected = ["Frag ann@x.org, or see <b>71</b>."]
    assert placeholders.keep(copied, [text], patterns) == expected
    assert copied.asked == [[masked], []]
    forced = Fake(lambda text: "72 72 73 74", lambda text, terms: "74 72 73!")
    expected = ["</b> ann@x.org <b>!"]
    assert placeholders.keep(forced, [text], patterns) == expected
    assert forced.asked[1] == ([masked], [["72", "73", "74"]])
    glued = Fake(lambda text: text.upper().replace(" 7", "7"), lambda *row: "")
    expected = ["ASK ann@x.org, OR SEE <b>71</b>."]
    assert placeholders.keep(glued, [text], patterns) == expected
    assert glued.asked[2] == ["Ask", ", or see"]


def test_stand_ins_are_numbers_that_no_text_has():
    found = placeholders.mask("71 or 72: a@b.de", ["email"])
    assert found.text == "71 or 72: 73"
    found = placeholders.mask("see <b>this</b>!", ["tag"], "X{}")
    assert found.text == "see X71 this X72!"
    assert found.restored("X72 und X71 das") == "</b> und <b>das"
    assert found.restored("X71 X72 X72") is None
    assert found.restored("X71 X722") is None
    assert found.restored("X71 X72 X722") is None
    assert found.restored("X71 X72st") is None
    assert found.restored("去X71X72街") is None
    assert found.restored("去X71去X72街") == "去<b>去</b>街"


def test_many_stand_ins_are_no_parts_of_each_other():
    text = "a<b>" * 120 + "100 99"
    found = placeholders.mask(text, ["tag"])
    assert [*found.kept] == [str(number) for number in range(101, 221)]
    assert found.restored(found.text) == text
    text = "a<b>" * 29
    assert [*placeholders.mask(text, ["tag"]).kept][-1] == "99"


def test_the_longest_of_the_first_is_kept():
    text = "at http://x.org/7, 7.5 {a} %d"
    found = placeholders.find(text, ["number", "url", r"\d", "field", ""])
    words = [text[start:stop] for start, stop in found]
    assert words == ["http://x.org/7", "7.5", "{a}", "%d"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{} of {name}, ${name}", ["{}", "{name}", "${name}"]),
        ("%s: %d, %i or %f.", ["%s", "%d", "%i", "%f"]),
        ("%(name)s%(count)5d", ["%(name)s", "%(count)5d"]),
        ("%1$s%2$d", ["%1$s", "%2$d"]),
        ("%.2f of %5d, %-3s, %+.1f, %05.2f", "%.2f %5d %-3s %+.1f %05.2f"),
        ("第%d日, %s71", ["%d", "%s"]),
        ("50%discount, 50%d", []),
        ("100%ige, 100 %ige", []),
        ("50% of 7 %, 100%.", []),
        ("{two words} {", []),
    ],
)
def test_fields(text, expected):
    if isinstance(expected, str):
        expected = expected.split()
    spans = placeholders.find(text, ["field"])
    assert [text[start:stop] for start, stop in spans] == expected


def test_wrong_patterns_and_stand_ins_are_refused():
    with pytest.raises(ValueError, match="none of url, email"):
        placeholders.find("a", ["("])
    with pytest.raises(ValueError, match="holds one {}"):
        placeholders.mask("a", [], "X")


def test_one_text_or_pattern_is_refused():
    """Each letter would be a text, or a pattern."""
    calls = [
        lambda: placeholders.find("curl", "url"),
        lambda: placeholders.mask("curl", "url"),
        lambda: placeholders.mask_pair("curl", "Lauf", "url"),
        lambda: placeholders.keep(Fake(str.upper), ["curl"], "url"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="single pattern in a list"):
            call()
    with pytest.raises(ValueError, match="single text in a list"):
        placeholders.keep(Fake(str.upper), "curl", ["url"])


def test_pairs_to_train_on():
    pair = placeholders.mask_pair("5 dogs, 3 <b>", "3x Hunde 5", ["number"])
    assert pair == ("71 dogs, 72 <b>", "72 x Hunde 71")
    for other in ("drei Hunde", "3 und 5 und 5", "3 und 4"):
        pair = "5 dogs, 3 cats", other
        assert placeholders.mask_pair(*pair, ["number"]) == pair
    pair = placeholders.mask_pair("5 and 5", "5 und 5", ["number"], "⟦{}⟧")
    assert pair == ("⟦71⟧ and ⟦72⟧", "⟦71⟧ und ⟦72⟧")
    # A number that only the target has would be a second stand-in there.
    pair = placeholders.mask_pair("<b>x</b>", "<b>71</b>", ["tag"])
    assert pair == ("72 x 73", "72 71 73")


def test_what_no_vocabulary_can_write_is_not_forced():
    """A live model would refuse the terms."""
    words = data.train_vocabulary(["neun eins"] * 9, 40, "word")
    translate = Fake(lambda text: text.upper()[:1], lambda *row: "unused")
    translate.path = None
    translate.graph = types.SimpleNamespace(
        target_tokenizer=data.Tokenizer(words)
    )
    found = placeholders.keep(translate, ["see ann@x.org now"], ["email"])
    assert found == ["S ann@x.org N"]


@pytest.mark.slow
def test_a_model_is_forced(random_translator, tokenizers):
    """An untrained one, which copies nothing."""
    texts = ["one ann@x.org", "<b>two</b> three", "four"]
    plain = random_translator("transformer")
    translate = Translator(
        plain.model, *tokenizers, constraints=True, max_target_offset=12
    )
    patterns = ["email", "tag"]
    found = placeholders.keep(translate, texts, patterns)
    for text, answer in zip(texts, found, strict=True):
        assert found_in(answer, patterns) == found_in(text, patterns)
    assert found[2] == translate(texts[2:])[0]
    assert np.isfinite(translate.constrained(["one 71"], terms=[["71"]])[0][1])
