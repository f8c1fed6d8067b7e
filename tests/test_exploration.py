"""The page of what a model did inside: its data, and a browser's view."""

import base64
import contextlib
import dataclasses
import json
import pathlib
import re
import shutil

import browsing
import numpy as np
import pytest

from keras_attention import plotting
from keras_attention.serving import inspection

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SOURCE, TARGET = ("one", "<two>", "</script>", "[END]"), ("eins", "[END]")
READ = ("[START]", "eins")


@pytest.fixture(scope="module")
def seen():
    rng = np.random.default_rng(0)
    cross, own = rng.random((2, 3, 2, 4)), np.tril(rng.random((2, 3, 2, 2)))
    nodes = [("eins", None, -0.5, None), ("zwei", None, -1.2, None)]
    nodes += [("[END]", 0, -0.7, -0.6), ("drei", 0, -2.0, None)]
    return inspection.Inspection(
        answer="eins",
        source_tokens=SOURCE,
        pair_tokens=(),
        input_tokens=READ,
        target_tokens=TARGET,
        num_given=0,
        probabilities=np.array([0.61, 0.82]),
        best=((("eins", 0.61), ("zwei", 0.3)), (("drei", 0.1), ("x", 0.05))),
        maps={
            "cross": inspection.Map(
                cross, TARGET, SOURCE, ("target", "source")
            ),
            "decoder": inspection.Map(own, TARGET, READ, ("target", "input")),
        },
        tree=tuple(inspection.Node(*node) for node in nodes),
    )


def test_the_page_is_one_file_with_all_numbers(seen, tmp_path):
    path = tmp_path / "inside.html"
    exploration = plotting.explore(seen, path)
    assert isinstance(exploration, plotting.Exploration)
    page = path.read_text("utf-8")
    assert exploration.html == page
    # Nothing is loaded, and no token ends the element of the data.
    text = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"(https?|wss?):/|[\"'(]//|src=|@import|url\(", text)
    assert page.count("</script>") == 2
    data = re.search(r'id="data">(.*?)</script>', page, re.S).group(1)
    data = json.loads(data)
    assert tuple(data["source_tokens"]) == SOURCE
    for looks in data["maps"]:
        ours = seen.maps[looks["name"]]
        packed = base64.b64decode(looks["weights"])
        weights = np.frombuffer(packed, "<u2") / 65535 * looks["greatest"]
        np.testing.assert_allclose(
            weights.reshape(ours.weights.shape), ours.weights, atol=1e-5
        )
    assert data["tree"][2] == {
        "token": "[END]",
        "parent": 0,
        "log_probability": -0.7,
        "score": -0.6,
    }


def test_what_cannot_be_seen_is_escaped(seen):
    hidden = dataclasses.replace(
        seen,
        target_tokens=("a\nb", "[END]"),
        best=((("a\nb", 0.6),), (("\u200b", 0.1),)),
        tree=(inspection.Node("\x07", None, -0.5, None),),
    )
    page = plotting.explore(hidden).html
    data = re.search(r'id="data">(.*?)</script>', page, re.S).group(1)
    data = json.loads(data)
    assert data["target_tokens"] == ["a\\nb", "[END]"]
    assert data["best"] == [[["a\\nb", 0.6]], [["\\u200b", 0.1]]]
    assert data["tree"][0]["token"] == "\\x07"


def test_a_page_that_is_not_finished_leaves_the_old_one(
    seen, tmp_path, monkeypatch
):
    path = tmp_path / "inside.html"
    path.write_text("old")

    def full(self, text, encoding):
        self.write_bytes(text[:100].encode(encoding))
        raise OSError("No space left on device")

    monkeypatch.setattr(pathlib.Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        plotting.explore(seen, path)
    assert path.read_text() == "old" and [*tmp_path.iterdir()] == [path]


def test_a_notebook_shows_it(seen):
    frame = plotting.explore(seen)._repr_html_()
    assert frame.startswith("<iframe title=") and frame.count("<") == 2


def test_another_suffix(seen, tmp_path):
    with pytest.raises(ValueError, match="written as .html"):
        plotting.explore(seen, tmp_path / "inside.png")


@contextlib.contextmanager
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    if chromium is None:
        pytest.skip("there is no Chromium")
    with sync_api.sync_playwright() as started:
        one = started.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"]
        )
        try:
            yield one
        finally:
            one.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(seen, tmp_path, scheme):
    path = tmp_path / "inside.html"
    plotting.explore(seen, path)
    with browser() as chromium:
        page = chromium.new_page(
            viewport={"width": 360, "height": 700}, color_scheme=scheme
        )
        page.set_default_timeout(90_000)
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.append(request.url))
        page.goto(path.as_uri())
        problems.remove(path.as_uri())
        assert browsing.violations(page) == []
        # Nothing is wider than a telephone.
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.locator(".small").count() == 2 * 2 * 3
        name = "decoder, layer 2, head 1"
        page.get_by_role("button", name=name).click()
        panel = page.locator(".panel:visible")
        assert panel.locator("h3").text_content() == name
        row = panel.get_by_role("button", name="[END]")
        row.focus()
        page.keyboard.press("Enter")
        weights = seen.maps["decoder"].weights[1, 0, 1]
        order = np.argsort(-weights)
        told = ", ".join(f"{READ[i]} ({weights[i]:.2f})" for i in order)
        live = panel.locator("[aria-live]")
        assert live.text_content() == f"[END] looks at {told}"
        panel.locator("summary").click()
        cells = panel.locator("td").all_text_contents()[1:]
        expected = seen.maps["decoder"].weights[1, 0].ravel()
        assert cells == [f"{weight:.2f}" for weight in expected]
        # The chosen token stands there, though it is none of the best.
        assert "[END] ✓" in page.locator(".steps").text_content()
        live = page.locator("#tree [aria-live]")
        assert live.text_content().startswith("eins [END]: log-probability")
        page.locator(".tree button.finished").focus()
        page.keyboard.press("ArrowDown")
        assert live.text_content().startswith("eins drei: log-probability -2")
        page.keyboard.press("ArrowLeft")
        assert page.evaluate("document.activeElement.textContent") == "eins"
        assert not problems


@pytest.mark.slow
@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_the_answer_is_written_once_more(seen, tmp_path, motion):
    path = tmp_path / "inside.html"
    plotting.explore(seen, path)
    with browser() as chromium:
        page = chromium.new_page(reduced_motion=motion)
        page.set_default_timeout(90_000)
        page.clock.install()
        page.goto(path.as_uri())
        panel = page.locator(".panel:visible")
        rows = panel.locator(".arcs button:visible")
        live = panel.locator("[aria-live]")
        play = panel.locator(".play")
        assert play.text_content().startswith("Play") and rows.count() == 2
        play.focus()
        page.keyboard.press("Enter")
        for number, token in enumerate(TARGET, 1):
            assert rows.all_text_contents() == list(TARGET[:number])
            assert live.text_content().startswith(f"{token} looks at")
            if motion == "reduce":
                page.clock.run_for(5000)  # Nothing moves by itself.
                assert rows.count() == number
                assert play.text_content() == "Next token"
                page.keyboard.press("Enter")
            else:
                assert play.text_content() == "Stop"
                page.clock.run_for(800)
        # It is written, and all is as before.
        assert rows.count() == 2 and play.text_content().startswith("Play")
        assert live.text_content().startswith("Choose a token")
        page.clock.run_for(5000)
        assert rows.count() == 2
        page.keyboard.press("Enter")
        if motion != "reduce":
            page.keyboard.press("Enter")  # Stop.
            assert rows.count() == 2
        # Another map has a button of its own.
        page.get_by_role("button", name="decoder, layer 1, head 2").click()
        page.clock.run_for(5000)
        assert rows.count() == 2 and play.text_content().startswith("Play")
