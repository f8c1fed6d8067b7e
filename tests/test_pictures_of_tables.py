"""Pictures of the experiments' tables: points are the numbers of the pages."""

import pictures_of_tables
import pytest

from keras_attention import plotting

PAGES = pictures_of_tables.BY_LENGTH.values()


@pytest.mark.parametrize("page", PAGES)
def test_a_table_by_length_is_read_whole(page):
    found = pictures_of_tables.by_length(page)
    text = (pictures_of_tables.EXPERIMENTS / f"{page}.md").read_text("utf-8")
    for name, rows in found.items():
        cells = [f"{row['bleu']} ± {row['interval']}" for row in rows]
        (line,) = [
            line
            for line in text.splitlines()
            if line.endswith(f"| {' | '.join(cells)} |")
        ]
        said = line.split("|")[1].strip().replace("`", "")
        assert name == said.replace(", in both", ", both")
        bins = [f"{row['low']}–{row['high']}" for row in rows]
        assert f"| tokens of the source | {' | '.join(bins)} |" in text
    axes = plotting.scores_by_length(found).axes[0]
    assert [line.get_label() for line in axes.get_lines()][: len(found)] == [
        *found
    ]


def test_two_pictures_show_a_model_in_one_colour():
    four, eleven = (
        plotting.scores_by_length(pictures_of_tables.by_length(page)).axes[0]
        for page in PAGES
    )
    colors = [
        {line.get_label(): line.get_color() for line in axes.get_lines()}
        for axes in (four, eleven)
    ]
    for name, other in {
        "RNN encoder-decoder": "rnn_encoder_decoder",
        "RNNsearch": "rnnsearch",
        "Luong": "luong",
        "Transformer": "transformer",
    }.items():
        assert colors[0][name] == colors[1][other]


def test_the_line_through_snli_is_the_one_that_the_page_tells():
    points = pictures_of_tables.snli()
    assert points[1_000] == [45.8, 47.4, 48.3] and max(points) == 7_872
    slope, start = pictures_of_tables.line_through(points)
    at_all = start + slope * 19.069  # log2(550,000)
    text = (pictures_of_tables.EXPERIMENTS / "sentences.md").read_text("utf-8")
    assert f"Twice the pairs bring {slope:.1f} points" in text
    assert f"550,000 pairs would bring {at_all:.0f} %" in text
    assert f"paper's {pictures_of_tables.PUBLISHED} %" in text
    assert pictures_of_tables.ALL_PAIRS == 550_000


def test_a_line_through_points_on_a_line_is_this_line():
    points = {2: [10.0, 12.0], 4: [14.0], 16: [20.0]}
    found = pictures_of_tables.line_through(points)
    assert found == pytest.approx((3.0, 8.0))


def test_a_page_without_the_table_is_refused():
    with pytest.raises(ValueError, match="sentences.md has 0 tables of 'x'"):
        pictures_of_tables.table("sentences", "x")
