"""The story's table: what it names exists, and its figures stand elsewhere."""

import collections
import itertools
import re

import pytest
import story

from keras_attention.models import catalog
from keras_attention.plotting import drawing

ROWS = story.rows()
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row["system"])


@each_row
def test_files_and_chapters_exist(row):
    assert (story.ROOT / row["file"]).is_file()
    if "chapter" in row:
        assert (story.ROOT / story.notebook(row["chapter"])).is_file()
    assert row.get("lane") in (None, *story.LANES)


@each_row
def test_each_figure_stands_on_the_page_that_it_links(row):
    for column in story.FIGURES:
        if column in row:
            says, page = row[column]
            text = (story.ROOT / page).read_text("utf-8")
            assert set(NUMBER.findall(says)) <= set(NUMBER.findall(text)), says


def test_each_model_of_the_catalogue_has_one_row():
    counts = collections.Counter(row.get("model") for row in ROWS)
    del counts[None]
    assert counts == dict.fromkeys(catalog.CATALOG, 1)


def test_the_story_goes_from_1986_to_rope():
    years = [row["year"] for row in ROWS]
    assert years == sorted(years) and years[0] == 1986
    assert ROWS[-1]["system"] in ("RoPE", "RoFormer")


def test_the_page_has_the_table_that_the_program_makes():
    text = story.PAGE.read_text("utf-8")
    assert story.page(text, ROWS) == text, "Run `python docs/story.py`."


def test_prose_around_the_table_is_kept():
    text = f"before\n{story.START}old\n{story.END}after\n"
    row = {"year": 2013, "system": "S", "paper": "P", "file": "LICENSE"}
    head, line = story.page(text, [row]).split("\n")[3::2][:2]
    assert story.page(text, [row]).startswith(f"before\n{story.START}")
    assert story.page(text, [row]).endswith(f"{story.END}after\n")
    assert head.startswith("| year | system | paper | file | chapter |")
    assert line.startswith("| 2013 | S | P | [`LICENSE`](https://")


def test_a_chapter_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="0 chapters 99"):
        story.notebook(99)


def test_all_names_of_the_picture_can_be_read():
    with drawing.style():
        figure = story.timeline(ROWS)
        texts = figure.axes[0].texts
        boxes = [text.get_window_extent() for text in texts]
    names = {row.get("short", row["system"]) for row in ROWS if "lane" in row}
    assert names <= {text.get_text() for text in texts}
    assert all(figure.bbox.count_contains(box.corners()) == 4 for box in boxes)
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
