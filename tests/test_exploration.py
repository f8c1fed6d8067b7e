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
    encoder = rng.random((2, 3, 4, 4))
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
            "encoder": inspection.Map(
                encoder, SOURCE, SOURCE, ("source", "source")
            ),
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


def test_the_views_are_those_of_the_page(seen):
    page = plotting.explore(seen).html
    views = pathlib.Path(plotting.__file__).parents[1] / "views"
    program = pathlib.Path(plotting.__file__).with_name("exploration.js")
    # One module has them all: what two have needs two names.
    name = r"^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)"
    modules = [*views.glob("*.js"), program]
    names = [
        found
        for module in modules
        for found in re.findall(name, module.read_text("utf-8"), re.M)
    ]
    assert len(names) == len({*names})
    assert re.findall(r"^(import|export)\b", page, re.M) == []
    for found in names:
        assert re.search(rf"^\w+.* {found}\b", page, re.M), found
    for style in views.glob("*.css"):
        assert style.read_text("utf-8") in page


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


@contextlib.contextmanager
def opened(seen, tmp_path, **options):
    """The page in a browser, which loads nothing and has no error."""
    path = tmp_path / "inside.html"
    plotting.explore(seen, path)
    with browser() as chromium:
        page = chromium.new_page(**options)
        page.set_default_timeout(90_000)
        problems = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.append(request.url))
        page.clock.install()
        page.goto(path.as_uri())
        problems.remove(path.as_uri())
        yield page
        assert not problems


def choose(page, name, view="Map"):
    page.get_by_role("button", name=name, exact=True).click()
    page.get_by_role("button", name=view, exact=True).click()
    assert page.locator("#opened h3").text_content() == name


def table(page):
    """The numbers of the map that is open."""
    page.locator("#opened summary").click()
    rows = page.locator("#opened tbody tr").all()
    cells = [row.locator("td").all_text_contents() for row in rows]
    page.locator("#opened summary").click()
    return cells


def written(weights):
    return [[f"{weight:.2f}" for weight in row] for row in weights]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(seen, tmp_path, scheme):
    window = {"width": 360, "height": 700}
    with opened(seen, tmp_path, viewport=window, color_scheme=scheme) as page:
        assert browsing.violations(page) == []
        # Each layer has the mean of its heads. All kinds of map have a rollout.
        assert page.locator(".small").count() == 3 * (2 * (3 + 1) + 1)
        name = "decoder, layer 2, head 1"
        for view in ("Lines", "Text", "Map"):
            choose(page, name, view)
            # Nothing is wider than a telephone.
            wide = "document.documentElement.scrollWidth"
            assert page.evaluate(wide) <= 360
            assert page.evaluate(browsing.PALE) == []
            assert page.evaluate(browsing.FAULTS) == []
            assert browsing.violations(page) == []
        weights = seen.maps["decoder"].weights[1, 0]
        assert table(page) == written(weights)
        assert "sideways" not in page.locator("#beam .hint").text_content()
        choose(page, name, "Lines")
        row = page.locator(".arcs button", has_text="END")
        row.focus()
        page.keyboard.press("Enter")
        order = np.argsort(-weights[1])
        told = ", ".join(
            f"{browsing.quoted(['START', 'eins'][i])} "
            f"{100 * weights[1, i]:.0f} %"
            for i in order
        )
        live = page.locator("#opened [aria-live]")
        assert (
            live.text_content() == f"{browsing.quoted('END')} looked at {told}"
        )


@pytest.mark.slow
def test_means_and_rollout_are_the_papers(seen, tmp_path):
    maps = {name: looks.weights for name, looks in seen.maps.items()}
    rolled = {}
    for name in ("encoder", "decoder"):
        size = maps[name].shape[-1]
        rolled[name] = np.eye(size)
        for heads in maps[name]:  # Abnar and Zuidema 2020, equation 1.
            half = 0.5 * heads.mean(0) + 0.5 * np.eye(size)
            rolled[name] = half @ rolled[name]
    rolled["cross"] = maps["cross"][-1].mean(0) @ rolled["encoder"]
    with opened(seen, tmp_path) as page:
        for name, expected in rolled.items():
            choose(page, f"{name}, rollout")
            assert table(page) == written(expected)
            choose(page, f"{name}, layer 1, mean of the heads")
            assert table(page) == written(maps[name][0].mean(0))


@pytest.mark.slow
def test_choices_and_the_beam(seen, tmp_path):
    with opened(seen, tmp_path) as page:
        page.locator(".rows.large button").nth(1).click()
        # The chosen token stands there, though it is none of the best.
        choices = page.locator(".choice li").all_text_contents()
        assert choices == [
            f"{browsing.quoted('drei')}10 %",
            f"{browsing.quoted('x')}5 %",
            "END ✓82 %",
        ]
        page.get_by_role("button", name="The token before").click()
        choices = page.locator(".choice li").all_text_contents()
        assert choices[0] == f"{browsing.quoted('eins')} ✓61 %"
        live = page.locator("#beam .way")
        told = f"{browsing.quoted('eins')}: log-probability −0.70."
        assert live.text_content().startswith(told)
        page.locator(".tree button.finished").focus()
        page.keyboard.press("ArrowDown")
        told = f"{browsing.quoted('einsdrei')}: log-probability −2.00."
        assert live.text_content() == told
        page.keyboard.press("ArrowLeft")
        assert page.evaluate("document.activeElement.textContent") == "eins"


@pytest.mark.slow
def test_a_label_has_the_others_as_its_choices(seen, tmp_path):
    looks = inspection.Map(
        np.full((1, 1, 2, 2), 0.5), ("hop 1", "hop 2"), READ, ("hops", "source")
    )
    labelled = dataclasses.replace(
        seen,
        source_tokens=READ,
        input_tokens=(),
        target_tokens=("cat",),
        probabilities=np.array([0.75]),
        best=((("cat", 0.75), ("dog", 0.25)),),
        maps={"hops": looks},
        tree=(),
    )
    with opened(labelled, tmp_path) as page:
        assert browsing.violations(page) == []
        choices = page.locator(".choice li").all_text_contents()
        cat, dog = map(browsing.quoted, ("cat", "dog"))
        assert choices == [f"{cat} ✓75 %", f"{dog}25 %"]
        assert page.locator(".steps:visible, #beam:visible").count() == 0
        rows = page.locator("#opened .row-name").all_text_contents()
        assert rows == ["hop 1", "hop 2"]


@pytest.mark.slow
def test_a_prompt_is_given_and_not_written(seen, tmp_path):
    tokens = ("one", "two", "three", "[END]")
    continued = dataclasses.replace(
        seen,
        source_tokens=(),
        input_tokens=("[START]", *tokens[:3]),
        target_tokens=tokens,
        num_given=2,
        probabilities=np.array([0.5, 0.25, 0.75, 0.875]),
        best=tuple(((token, 0.4),) for token in tokens),
        maps={},
        tree=(),
    )
    with opened(continued, tmp_path, reduced_motion="reduce") as page:
        given = page.locator("#prompted .unit")
        assert given.all_text_contents() == ["one", "two"]
        shares = [node.get_attribute("title") for node in given.all()]
        assert shares == ["50 %", "25 %"]
        words = page.locator(".rows.large button")
        assert words.all_text_contents() == ["three", "END"]
        told = page.locator(".step")
        assert told.text_content().startswith("Token 1 might have been")
        assert page.get_by_role("button", name="The token before").is_disabled()
        words.nth(1).click()
        assert told.text_content().startswith("Token 2 might have been")
        choices = page.locator(".choice li").all_text_contents()
        assert choices == ["END ✓40 %"]
        assert browsing.violations(page) == []


@pytest.mark.slow
@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_the_answer_is_written_once_more(seen, tmp_path, motion):
    with opened(seen, tmp_path, reduced_motion=motion) as page:
        choose(page, "cross, layer 2, head 3", "Lines")
        rows = page.locator(".arcs button:visible")
        live = page.locator("#opened [aria-live]")
        play = page.locator(".play")
        assert play.text_content().startswith("Play") and rows.count() == 2
        play.focus()
        page.keyboard.press("Enter")
        names = ["eins", "END"]
        for number, token in enumerate(names, 1):
            assert rows.all_text_contents() == names[:number]
            told = f"{browsing.quoted(token)} looked at"
            assert live.text_content().startswith(told)
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
