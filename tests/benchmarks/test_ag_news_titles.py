"""`benchmarks/ag_news_titles.py`: what it makes of news, and that it runs."""

import csv
import gzip
import io
import itertools

import ag_news_titles
import pytest

TEXT = r" LOS ANGELES (Reuters) - Apple Computer Inc.&lt;AAPL.O&gt; on\ Tuesday"
TEXT += " said  quot;no quot; to a  #36;10 bid &lt;b&gt;today&lt;/b&gt;."
CLEANED = 'Apple Computer Inc. on Tuesday said "no" to a $10 bid today .'


@pytest.mark.parametrize(
    "text, expected",
    [
        (r"A second\team  of", "A second team of"),
        ("It #39;s AT amp;T", "It's AT&T"),
        ("a threat #151;cancer", "a threat—cancer"),
        ("EBay &lt;A HREF='x'&gt;EBAY&lt;/A&gt; rose", "EBay EBAY rose"),
    ],
)
def test_a_text_is_as_people_read_it(text, expected):
    assert ag_news_titles.clean(text) == expected


def test_a_dateline_is_left_out_of_what_was_cleaned():
    cleaned = ag_news_titles.clean(TEXT)
    assert ag_news_titles.DATELINE.sub("", cleaned) == CLEANED


@pytest.mark.parametrize(
    "dateline",
    [
        "AP - ",
        "SPACE.com - ",
        "LONDON (Reuters) - ",
        "BAGHDAD, Iraq -- ",
        "PORT-AU-PRINCE, Haiti (Reuters) - ",
        "ST. LOUIS (Ticker) -- ",
    ],
)
def test_a_dateline_is_left_out(dateline):
    rest = "The news - as it was - is here."
    assert ag_news_titles.DATELINE.sub("", dateline + rest) == rest
    assert ag_news_titles.DATELINE.sub("", rest) == rest


@pytest.fixture
def folder(tmp_path):
    """A folder as that of AG News: 40 pairs, one of them twice."""
    words = "oil gold rain snow wind".split()
    verbs = "rises falls stops returns".split()
    places = "Paris London".split()
    rows = [("3", "Apple says no (AP)", TEXT)]
    for what, does, where in itertools.product(words, verbs, places):
        title = f"{what.title()} {does} in {where}"
        text = f"AP - The {what} {does} in {where} today, people said."
        rows.append(("1", title, text))
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows([*rows, rows[1]])
    data = tmp_path / "news"
    data.mkdir()
    (data / "test.csv.gz").write_bytes(gzip.compress(file.getvalue().encode()))
    return data


@pytest.fixture
def corpus(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(
        ag_news_titles, "HELD_OUT", {"validation": 4, "test": 6}
    )
    ag_news_titles.write(folder, tmp_path / "corpus")
    return tmp_path / "corpus"


def test_a_folder_without_the_file_is_named(tmp_path):
    with pytest.raises(ValueError, match="has no test.csv of AG News"):
        ag_news_titles.read(tmp_path)


def pairs_of(corpus, split):
    sides = [
        ag_news_titles.lines(corpus, split, side)
        for side in ag_news_titles.SIDES
    ]
    return list(zip(*sides, strict=True))


def test_the_splits_are_drawn_once_and_share_no_text(folder, corpus):
    drawn = {
        split: pairs_of(corpus, split)
        for split in ("train", "validation", "test")
    }
    assert [len(pairs) for pairs in drawn.values()] == [31, 4, 6]
    everything = sum(drawn.values(), [])
    assert sorted(everything) == sorted(ag_news_titles.read(folder))
    assert len({text for text, _ in everything}) == 41
    assert (CLEANED.lower(), "apple says no") in everything
    again = ag_news_titles.split(
        ag_news_titles.read(folder), {"validation": 4, "test": 6}
    )
    assert again == drawn
    other = ag_news_titles.split(everything, {"test": 6}, seed=2)
    assert other["test"] != drawn["test"]


def test_the_baseline_is_the_beginning():
    texts = ["one two  three four", "one"]
    assert ag_news_titles.first_words(texts, 3) == ["one two three", "one"]


def test_a_repetition_is_of_three_words():
    assert ag_news_titles.repeats("a b c d a b c")
    assert ag_news_titles.repeats("a a a a")
    assert not ag_news_titles.repeats("a b c a b d a a")
    assert not ag_news_titles.repeats("")


@pytest.mark.slow
def test_every_arm_is_trained_and_scored(corpus, tmp_path, capsys, monkeypatch):
    pytest.importorskip("rouge_score")
    for arm in ("no_pointer_reward", "pointer_reward"):
        ag_news_titles.train(
            corpus,
            tmp_path / "runs",
            arm,
            model_arguments={"embedding_dim": 11, "units": 7},
            vocabulary_size=300,
            max_tokens=128,
            epochs=1,
        )
    ag_news_titles.score(corpus, tmp_path / "runs")
    table = capsys.readouterr().out.splitlines()
    rows = [line.split(" | ") for line in table if line.startswith("| ")]
    assert [cells[0].strip("| ") for cells in rows[1:]] == [
        "first 4 words",
        *(
            arm + more
            for arm in (
                "no_pointer_1",
                "no_pointer_reward_1",
                "pointer_1",
                "pointer_reward_1",
            )
            for more in ("", ", no three twice")
        ),
    ]
    # "The oil rises in" beside "Oil rises in Paris": three words of four.
    assert rows[1][1:4] == ["75.0", "66.7", "75.0"]
    assert table[-1].startswith("F1|mean|")
    again = ag_news_titles.ARMS["pointer_reward"]["model_arguments"]
    assert again == {"reward_weight": 0.9984}
