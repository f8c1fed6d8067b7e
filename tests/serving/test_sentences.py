"""Texts are split into sentences, and joined as they were."""

import time

import hypothesis
import pytest
from hypothesis import strategies

from keras_attention.serving import sentences

# Marks and spaces often, and anything else.
TEXTS = strategies.lists(
    strategies.one_of(
        strategies.sampled_from(
            [". ", "! ", "?", "。", "…”", "\n", "\r\n", "\x85", " ", "\u3000"]
            + ["Dr. ", "z. B. ", "3. ", "A", "b", "The end"]
        ),
        strategies.text(max_size=4),
    ),
    max_size=12,
).map("".join)
PROPERTY = hypothesis.settings(
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)


@PROPERTY
@hypothesis.given(TEXTS)
def test_parts_joined_are_the_text(text):
    parts = sentences.split(text)
    assert "".join(parts) == text
    assert len(parts) % 2 == 1
    assert not "".join(parts[::2]).strip()
    for sentence in parts[1::2]:
        assert sentence == sentence.strip() != ""
        assert len(sentence.splitlines()) == 1


@PROPERTY
@hypothesis.given(strategies.lists(TEXTS, max_size=4))
def test_what_changes_nothing_gives_the_texts_back(texts):
    calls = []

    def translate(rows):
        calls.append(rows)
        return rows

    assert sentences.by_sentences(translate, texts) == texts
    assert len(calls) == 1


def test_one_text_is_refused():
    """Each letter would be a text."""
    with pytest.raises(ValueError, match="single text in a list"):
        sentences.by_sentences(list, "A dog.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ('He said "Stop." She did.', ['He said "Stop."', "She did."]),
        ("Wait... What? Yes…  No", ["Wait...", "What?", "Yes…", "No"]),
        ("a line\nanother line\n\nThe end.", ["a line", "another line"]),
        ("Dr. Lee met J. R. Smith.", ["Dr. Lee met J. R. Smith."]),
        ("Am 3. Mai kam z. B. Hans.", ["Am 3. Mai kam z. B. Hans."]),
        ("At 5 p.m. Tom left.", ["At 5 p.m. Tom left."]),
        ("See e.g. Lee (cf. Kim).", ["See e.g. Lee (cf. Kim)."]),
        ("It costs 3.50 at x.com today.", ["It costs 3.50 at x.com today."]),
        ("It is no. She left.", ["It is no.", "She left."]),
        ("See no. 5, No. 71.", ["See no. 5, No. 71."]),
        ("In 1999. Then", ["In 1999.", "Then"]),
        ("once. upon", ["once. upon"]),
        ("你好。再见！", ["你好。", "再见！"]),
        ("他说：「好。」", ["他说：「好。」"]),
        ("好。。", ["好。。"]),
        (" \n", []),
        ("", []),
    ],
)
def test_where_sentences_end(text, expected):
    found = sentences.split(text)[1::2]
    assert found[: len(expected)] == expected
    if "\n" not in text:
        assert found == expected


def test_no_sentence_ends_inside_what_is_whole():
    text = 'A man <img alt="Dogs run.\nA cat sits."> runs. <b>He</b>'
    start, end = text.index("<img"), text.index("> runs") + 1
    first, last = text.split(" <b>")
    spans = [(start, end), (text.index("<b>"), len(text))]
    assert sentences.split(text, spans) == ["", first, " ", "<b>" + last, ""]
    # An end before or behind the string is one.
    text = "好。<b>好。</b>"
    found = sentences.split(text, [(2, 5), (7, 11)])
    assert found[1::2] == ["好。", "<b>好。", "</b>"]
    asked = []
    found = sentences.by_sentences(
        lambda rows: asked.extend(rows) or rows,
        ["Aa. B? C"],
        lambda _: [(0, 6)],
    )
    assert (found, asked) == (["Aa. B? C"], ["Aa. B?", "C"])


def test_a_long_line_takes_time_in_proportion():
    """No mark copies the rest of the line, which took a minute here."""
    line = "a. " * 300_000
    start = time.process_time()
    assert sentences.split(line) == ["", line.strip(), " "]
    assert time.process_time() - start < 5
