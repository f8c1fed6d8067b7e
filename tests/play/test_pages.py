"""The pages of `docs/play/`: what they hold, and whether they can be read."""

import base64
import json
import re

import numpy as np
import play_pages
import pytest
from browsing import FAULTS, NAME, PALE, choose
from play_parts import halves

NAMES = list(play_pages.NAMES)
MOST_BYTES, MOST_LINES = 150_000, 400
# Choices by which a page shows all that it has: wrong words, say.
ALL_SHOWN = {
    "temperature": {"padding": False},
    "positions": {"start": 96},
    "hops": {"hops": 2},
    "lattice": {"shown": "forward", "step": 3},
}

each_page = pytest.mark.parametrize("name", NAMES)


@each_page
def test_a_page_is_made_of_its_parts(name):
    """After a change of its parts: `python docs/play_pages.py --text`."""
    text = (play_pages.PAGES / f"{name}.html").read_text("utf-8")
    assert text == play_pages.page(name, play_pages.kept_data(name))


@each_page
def test_a_page_is_small_and_names_no_host(name):
    text = (play_pages.PAGES / f"{name}.html").read_text("utf-8")
    assert len(text.encode()) < MOST_BYTES
    text = text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"(https?|wss?):/|[\"'(]//", text)
    assert not re.search(r"innerHTML|outerHTML|document\.write|eval\(", text)
    parts = [play_pages.part(f"{name}.{kind}") for kind in ("html", "js")]
    assert sum(len(part.splitlines()) for part in parts) <= MOST_LINES


@each_page
def test_a_page_says_where_its_numbers_come_from(name):
    origin = play_pages.kept_data(name)["origin"]
    assert origin["command"] == f"python docs/play_pages.py {name}"
    assert re.fullmatch(r"[0-9a-f]{7}", origin["commit"])
    assert origin["model"] and origin["seed"] and origin["data"]


def test_chapters_and_lists_link_the_pages():
    tutorials = play_pages.DOCS.parent / "tutorials"
    linked = "".join(path.read_text() for path in tutorials.glob("[0-9]*.py"))
    listed = (play_pages.DOCS / "play.md").read_text("utf-8")
    for name in NAMES:
        assert f"blob/main/docs/play/{name}.html)" in linked
        assert f'"play/{name}.html"' in listed


def test_data_cannot_end_its_element():
    text = "</script><b>{title}"
    page = play_pages.page("hops", {"text": text, "origin": {}})
    (found,) = re.findall(r'id="data">(.*?)</script>', page, re.S)
    assert json.loads(found) == {"text": text, "origin": {}}


def test_numbers_of_sixteen_bits_come_back():
    array = np.random.default_rng(1).normal(size=(3, 5)) * 10.0 ** np.arange(5)
    kept = halves.packed(array)
    assert len(base64.b64decode(kept["halves"])) == 2 * 3 * 5
    np.testing.assert_array_equal(halves.unpacked(kept), halves.rounded(array))


@pytest.mark.slow
@each_page
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_can_be_read_on_a_telephone(opened, name, scheme):
    page = opened(name, width=360, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for summary in page.locator("summary").all():
        summary.click()
    choose(page, **ALL_SHOWN[name])
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate(f"({PALE})()") == []
    assert page.evaluate(f"({FAULTS})()") == []
    assert page.locator("[aria-current]").count() == 1
    # Every map has its legend, and every control its name.
    assert "linear" in page.locator("#legend").text_content()
    for node in page.locator("input, select, button").all():
        assert node.evaluate(NAME)
