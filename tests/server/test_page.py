"""The page: its files, and what somebody sees and does in a browser."""

import contextlib
import itertools
import pathlib
import re

import pytest
import tensorflow as tf
from browsing import (
    FAULTS,
    NAME,
    quoted,
    sync_api,
    texts,
    violations,
    wait_for_text,
)

pytest.importorskip("h11", reason="the extra `serve` is not installed")

from keras_attention.server import model_configs, page  # noqa: E402
from keras_attention.serving import kinds, savedmodel  # noqa: E402

FOLDER = pathlib.Path(page.__file__).parent
VIEWS = FOLDER.parents[1] / "views"
FILES = sorted(
    path
    for folder in (FOLDER, VIEWS)
    for path in folder.iterdir()
    if path.is_file() and path.suffix not in (".py", ".pyc")
)
TYPES = {
    ".html": ("text/html",),
    ".css": ("text/css",),
    ".js": ("text/javascript", "application/javascript"),
    ".svg": ("image/svg+xml",),
}
PHRASES = pathlib.Path(__file__).parents[2] / "savedmodels" / "phrases_en_de"
TEXT = tf.TensorSpec([None], tf.string, name="text")
PAIR = tf.TensorSpec([None], tf.string, name="text_pair")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_served_with_its_type(server, path):
    status, headers, text = server.request(f"/page/{path.name}")
    assert status == 200 and text == path.read_text()
    assert headers["content-type"].split(";")[0] in TYPES[path.suffix]
    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src 'self'" in headers["content-security-policy"]


def test_the_index_is_the_root(server):
    status, headers, text = server.request("/")
    assert status == 200 and text == (FOLDER / "index.html").read_text()
    assert headers["content-type"].split(";")[0] == "text/html"
    assert "default-src 'self'" in headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/page/../rest.py",
        "/page/..%2frest.py",
        "/page/%2e%2e/rest.py",
        "/page//etc/passwd",
        "/page/%2fetc%2fpasswd",
        "/page/__init__.py",
        "/page/",
        "/page/missing.js",
        "/rest.py",
    ],
)
def test_no_path_leaves_the_folder(server, path):
    assert server.request(path)[0] == 404


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_names_no_other_host(path):
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"(https?|wss?):/|[\"'(]//", text)


def test_what_the_policy_forbids_is_not_there():
    index = (FOLDER / "index.html").read_text()
    assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:", index)
    assert re.findall(r"<script(.*?)>(.*?)</script>", index) == [
        (' type="module" src="page/main.js"', "")
    ]


def test_no_text_becomes_html():
    for path in FILES:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\("
            r"|new Function|DOMParser|setHTML",
            path.read_text(),
        ), path.name


def test_each_module_is_there():
    names = [path.name for path in FILES]
    assert len({*names}) == len(names)  # The page has them side by side.
    for path in FILES:
        for name in re.findall(r'from "\./(.*?)"', path.read_text()):
            assert name in names
    # The page of `explore` has the views alone.
    for path in VIEWS.glob("*.js"):
        for name in re.findall(r'from "\./(.*?)"', path.read_text()):
            assert (VIEWS / name).is_file()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read(scheme):
    """WCAG 2's contrast AA: 4.5 for texts, 3 for the edges of fields."""
    style = (VIEWS / "look.css").read_text()
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    colors = dict(re.findall(r"--([\w-]+): (#\w{6});", light))
    if scheme == "dark":
        colors |= dict(re.findall(r"--([\w-]+): (#\w{6});", dark))
    pairs = [
        *itertools.product(["ink", "quiet"], ["paper", "desk"]),
        ("ink", "glow"),
        ("ink", "bare"),
        ("on-accent", "accent"),
        ("wrong", "wrong-paper"),
        ("ink", "wrong-paper"),
    ]
    for text, ground in pairs:
        ratio = contrast(colors[text], colors[ground])
        assert ratio >= 4.5, (text, ground)
    for edge in ("edge", "accent"):
        assert contrast(colors[edge], colors["paper"]) >= 3, edge


def contrast(one, other):
    dim, bright = sorted(map(luminance, (one, other)))
    return (bright + 0.05) / (dim + 0.05)


def luminance(color):
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class Task(tf.Module):
    """Answers as models of other tasks do."""

    def __init__(self, **functions):
        super().__init__()
        self._signatures = {
            name: tf.function(function, input_signature=specs, autograph=False)
            for name, (function, specs) in functions.items()
        }

    @property
    def signatures(self):
        return self._signatures


def continuer():
    """A language model that repeats."""
    return Task(
        serving_default=(
            lambda text: {"continuation": tf.strings.join([" ", text])},
            [TEXT],
        ),
        score=(
            lambda text: {
                "log_probability": -2.0
                * tf.cast(tf.strings.length(text), tf.float32),
                "num_tokens": tf.strings.length(text),
                "truncated": tf.fill(tf.shape(text), False),
            },
            [TEXT],
        ),
    )


def labeller():
    """A classifier with two layers of three heads."""

    def label(text):
        is_praise = tf.strings.regex_full_match(text, ".*good.*")
        share = tf.cast(is_praise, tf.float32)
        names = tf.where(is_praise, "praise", "blame")
        shares = tf.stack([0.1 + 0.8 * share, 0.9 - 0.8 * share], 1)
        return {"label": names, "probabilities": shares}

    def attend(text):
        tokens = tf.strings.split(text).to_tensor("")
        length = tf.shape(tokens)[1]
        weights = tf.eye(length, batch_shape=[tf.shape(tokens)[0], 2, 3])
        return {
            **label(text),
            "truncated": tf.fill(tf.shape(text), False),
            "source_tokens": tokens,
            "attention": weights,
        }

    return Task(
        serving_default=(label, [TEXT]), with_attention=(attend, [TEXT])
    )


def pairs():
    """A classifier of two texts."""

    def label(text, text_pair):
        same = tf.cast(text == text_pair, tf.float32)
        return {
            "label": tf.where(same > 0, "same", "other"),
            "probabilities": tf.stack([same, 1 - same], 1),
            "labels": tf.tile([["same", "other"]], [tf.size(text), 1]),
        }

    def attend(text, text_pair):
        source = tf.strings.split(text).to_tensor("")
        pair = tf.strings.split(text_pair).to_tensor("")
        ones = tf.ones_like(source, tf.float32)
        others = tf.ones_like(pair, tf.float32)
        weights = ones[:, :, None] * others[:, None, :]
        by_row = weights / tf.reduce_sum(others, 1)[:, None, None]
        by_column = weights / tf.reduce_sum(ones, 1)[:, None, None]
        return {
            **label(text, text_pair),
            "truncated": tf.fill(tf.shape(text), False),
            "source_tokens": source,
            "pair_tokens": pair,
            "attention": by_row,
            "attention_pair": tf.transpose(by_column, [0, 2, 1]),
        }

    both = [TEXT, PAIR]
    return Task(serving_default=(label, both), with_attention=(attend, both))


# A model whose texts the form takes.
READER = kinds.Kind(
    "reading",
    {
        kinds.DEFAULT: kinds.Signature(
            ("text",),
            {
                "width": (),
                "source_tokens": ("source_tokens",),
                "encoder": ("source_tokens", "source_tokens"),
            },
            ("width",),
        )
    },
)


def reader():
    """It looks from each word at the same one."""

    def read(text):
        tokens = tf.strings.split(text).to_tensor("")
        length = tf.shape(tokens)[1]
        return {
            "width": tf.strings.length(text),
            "source_tokens": tokens,
            "encoder": tf.eye(length, batch_shape=[tf.shape(tokens)[0]]),
        }

    return Task(serving_default=(read, [TEXT]))


@pytest.fixture(scope="module")
def served(chromium, run_server, shouter, model_folders, tmp_path_factory):
    """The address of a server of models of each task."""
    if not PHRASES.is_dir():
        pytest.skip("the repository's savedmodels are not there")
    root = tmp_path_factory.mktemp("page")
    shouter(root / "shout")
    shouter(root / "shout", "newer ")
    for create in (continuer, labeller, pairs):
        savedmodel.export(create(), root / create.__name__)
    savedmodel.export(reader(), root / "reader", kind=READER)
    (root / "pairs" / "README.md").write_text(
        '- Data: `pairs`.\n- Examples: `[["one", "two"], ["a", "a"]]`\n'
    )
    folders = [PHRASES, model_folders["numbers"], *sorted(root.iterdir())]
    configs = [
        model_configs.ModelConfig(folder.name, folder, num_latest=None)
        for folder in folders
    ]
    with run_server(configs) as client:
        yield f"http://127.0.0.1:{client.rest_port}/"


def lit(page):
    """The source's token that a token of the translation looked at most."""
    return page.locator(".columns .most").first.text_content()


@pytest.mark.slow
def test_a_text_is_translated_as_it_is_typed(open_page):
    page = open_page()
    page.locator("#text").press_sequentially("twenty-one", delay=20)
    wait_for_text(page, "#heard", "einundzwanzig")
    assert texts(page, ".rows.large button") == ["einund", "zwanzig"]
    page.locator(".rows.large button").nth(1).hover()
    assert lit(page) == "twenty"
    assert (
        page.locator(".says")
        .first.text_content()
        .startswith(f"{quoted('zwanzig')} looked at {quoted('twenty')}")
    )
    # The heat map, and its table.
    assert page.locator("#looked svg .weight").count() == 3 * 4
    page.locator("#looked summary").click()
    head = texts(page, "#looked thead th")
    assert head == ["twenty", "-", "one", "END"]
    assert re.match(r"score −0\.\d\d", page.locator("#score").text_content())
    # What else it thought of.
    page.wait_for_selector("#best li")
    found = texts(page, "#best li > span")
    assert found and "einundzwanzig" not in found
    assert "same text" in page.locator("#compared").text_content()
    assert page.locator("#greedy").is_hidden()


@pytest.mark.slow
def test_an_own_translation_is_aligned(open_page):
    page = open_page()
    page.fill("#text", "twenty-two")
    page.fill("#reference", "zweiundzwanzig")
    page.wait_for_selector("#aligned .rows button")
    assert texts(page, "#aligned .rows button")[-1] == "END"
    told = page.locator("#probability").text_content()
    assert re.match(r"Log-probability −0\.\d\d: −0\.\d\d for each of", told)
    # A hypothesis is looked into by its button.
    page.wait_for_selector("#best li")
    other = texts(page, "#best li > span")[0]
    page.locator("#best button").first.click()
    assert page.input_value("#reference") == other
    sync_api().expect(page.locator("#probability")).not_to_have_text(told)


@pytest.mark.slow
def test_the_keyboard_alone(open_page):
    page = open_page()
    # The field for the text has the focus.
    page.keyboard.type("twenty-one")
    page.wait_for_selector(".rows.large button")
    page.keyboard.press("Tab")
    assert lit(page) != ""
    page.keyboard.press("ArrowRight")
    focused = "document.activeElement.textContent"
    assert page.evaluate(focused) == "zwanzig"
    assert lit(page) == "twenty"
    page.keyboard.press("Home")
    assert page.evaluate(focused) == "einund"
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.id") == "text"


@pytest.mark.slow
def test_late_answers_are_dropped(open_page):
    page = open_page("shout")
    held = []
    page.route("**/*:predict", lambda route: held.append(route))
    page.fill("#text", "first")
    page.wait_for_timeout(400)
    page.unroute("**/*:predict")
    page.fill("#text", "second")
    wait_for_text(page, "#heard", "newer SECOND")
    for route in held:
        # The page may have given it up.
        with contextlib.suppress(Exception):
            route.continue_()
    page.wait_for_timeout(300)
    assert page.locator("#heard").text_content() == "newer SECOND"


@pytest.mark.slow
def test_a_late_answer_of_another_model_is_dropped(open_page):
    page = open_page("shout")
    held = []
    page.route("**/shout*:predict", lambda route: held.append(route))
    with page.expect_request("**/shout:predict"):
        page.fill("#text", "first")
    page.wait_for_timeout(400)
    page.select_option("#model", "continuer")
    wait_for_text(page, "#continuation", " first")
    assert held
    for route in held:
        route.continue_()
    page.wait_for_timeout(300)
    assert texts(page, "#continuation") == [" first"]
    assert page.locator(".problem:visible").count() == 0


@pytest.mark.slow
def test_a_translation_stays_if_what_comes_with_it_fails(open_page):
    page = open_page("shout")
    page.route(
        "**/*:predict",
        lambda route: (
            route.fulfill(status=504, json={"error": "Too late"})
            if "n_best" in route.request.post_data
            else route.continue_()
        ),
    )
    page.fill("#text", "one")
    problem = page.wait_for_selector("#desk .problem:visible")
    assert "Too late. Try again" in problem.text_content()
    assert texts(page, "#heard") == ["newer ONE"]
    page.unroute("**/*:predict")
    page.click("#desk .problem button")
    page.wait_for_selector("#best li")
    assert page.evaluate("document.activeElement.id") == "text"
    # A model that aligns nothing looks into nothing.
    assert page.locator("#best button").count() == 0


@pytest.mark.slow
def test_another_address_opens_another_model(open_page):
    page = open_page("shout")
    page.evaluate("location.hash = 'model=shout&version=1'")
    sync_api().expect(page.locator("#version")).to_have_value("1")
    # A version that is not there: the newest.
    page.evaluate("location.hash = 'model=shout&version=../3'")
    sync_api().expect(page.locator("#version")).to_have_value("")
    # The model that was being opened writes its own address a moment later.
    page.evaluate(
        """() => {
          location.hash = "model=shout&version=1";
          history.replaceState(null, "", "#model=shout&version=2");
        }"""
    )
    sync_api().expect(page.locator("#version")).to_have_value("1")


@pytest.mark.slow
def test_a_model_that_is_late_leaves_the_page_to_the_newer(open_page):
    page = open_page("shout")
    models, lists = [], []
    page.route("**/versions/1/metadata", lambda route: models.append(route))
    page.route("**/readyz", lambda route: lists.append(route))
    page.select_option("#version", "1")
    while not models:
        page.wait_for_timeout(50)
    page.evaluate("location.hash = 'model=continuer'")
    while not lists:
        page.wait_for_timeout(50)
    for route in models:
        route.continue_()
    page.wait_for_timeout(300)
    assert page.evaluate("location.hash") == "#model=continuer"
    for route in lists:
        route.continue_()
    page.wait_for_selector("#continuation", state="attached")
    assert page.evaluate("location.hash") == "#model=continuer&version="
    # So the address that was late opens its model again.
    page.unroute_all()
    page.evaluate("location.hash = 'model=shout&version=1'")
    page.wait_for_selector("#heard", state="attached")
    assert page.input_value("#version") == "1"


@pytest.mark.slow
def test_another_try_opens_what_was_chosen(open_page):
    page = open_page("shout")
    page.route(
        "**/versions/1/metadata",
        lambda route: route.fulfill(status=503, json={"error": "It ends"}),
    )
    page.select_option("#version", "1")
    page.wait_for_selector("#status:visible")
    page.unroute_all()
    page.click("#status button")
    page.wait_for_selector("#heard", state="attached")
    assert page.input_value("#version") == "1"


@pytest.mark.slow
def test_tokens_are_read_as_people_read_them(open_page):
    page = open_page("shout")
    smile = ["<0xF0>", "<0x9F>", "<0x98>", "<0x80>"]
    tokens = ["▁", *smile, *smile, "▁Mon", "day", "[END]"]
    found = page.evaluate(
        """async (tokens) => {
          const { units } = await import("/page/tokens.js");
          return units(tokens).map((unit) => [unit.text, unit.startsWord]);
        }""",
        tokens,
    )
    assert found == [
        ["\U0001f600", True],
        ["\U0001f600", False],
        ["Mon", True],
        ["day", False],
        ["END", True],
    ]


@pytest.mark.slow
def test_what_is_not_finite_has_a_name(open_page):
    page = open_page("shout")
    values = [-0.5, "-Infinity", "NaN"]
    found = page.evaluate(
        """async (values) => {
          const { decimal } = await import("/page/numbers.js");
          return values.map(decimal);
        }""",
        values,
    )
    assert found == ["−0.50", "−∞", "not a number"]


@pytest.mark.slow
def test_a_long_text_has_no_picture(open_page):
    page = open_page("labeller")
    page.fill("#text", "good " * 100)
    wait_for_text(page, "#label", "praise")
    told = page.locator("#opened .map > .note").text_content()
    assert told == (
        "The text is too long for a heat map. Its rows are below, one at a "
        "time."
    )
    # One row at a time is a table.
    page.locator("#opened summary").click()
    assert texts(page, "#opened caption") == [f"Where {quoted('good')} looked."]
    page.get_by_label("Row").select_option("3: good")
    assert texts(page, "#opened tbody th") == ["good"] * 100
    shares = ["0 %"] * 100
    shares[2] = "100 %"
    assert texts(page, "#opened tbody td") == shares
    assert page.evaluate(FAULTS) == [] and violations(page) == []
    page.get_by_role("button", name="Text", exact=True).click()
    page.locator("#opened .rows button").nth(1).hover()
    assert lit(page) == "good"


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_window(open_page, width):
    page = open_page(width=width)
    page.fill("#text", "Wednesday, September 17, 2025, 7:05 PM " + "x" * 60)
    page.wait_for_selector("#best li")
    page.fill("#reference", "Donaudampfschifffahrt" * 3)
    page.wait_for_selector("#aligned .rows button")
    page.locator("#looked summary").click()
    wide = "document.documentElement.scrollWidth"
    assert page.evaluate(wide) <= width
    if width == 360:
        legend = page.locator("#looked .map > .note").text_content()
        assert "sideways" in legend
        page.wait_for_selector("#beam:visible")
        assert "sideways" in page.locator("#beam .hint").text_content()
    # Who hears the page is told what each part is for, but for mere lines.
    parts = "textarea, select, button, svg:not([aria-hidden])"
    for part in page.locator(parts).all():
        assert page.evaluate(NAME, part.element_handle())


@pytest.mark.slow
def test_a_version_is_chosen(open_page):
    page = open_page("shout")
    page.fill("#text", "a")
    wait_for_text(page, "#heard", "newer A")
    assert texts(page, "#version option") == ["newest (2)", "2", "1"]
    page.select_option("#version", "1")
    # The text stays.
    wait_for_text(page, "#heard", "A")
    page.select_option("#model", "phrases_en_de")
    page.wait_for_selector("#translation-title:text('German')")
    assert page.input_value("#text") == "a"


@pytest.mark.slow
def test_an_error_is_the_servers(open_page):
    page = open_page("shout")
    page.fill("#text", "<b>1</b> 2 3 4 5 6")
    problem = page.wait_for_selector("#desk .problem:visible")
    told = problem.text_content()
    assert "has 7 tokens, and the model takes at most 5" in told
    assert "Change what you typed" in told
    # Beside the text, with its length.
    assert page.locator("#text ~ .problem:visible").count() == 1
    wait_for_text(page, "#length", "7 of at most 5 tokens")
    page.fill("#text", "<b>1</b>")
    page.wait_for_selector("#desk .problem", state="hidden")
    wait_for_text(page, "#heard", "newer <B>1</B>")


@pytest.mark.slow
def test_a_language_model_goes_on(open_page):
    page = open_page("continuer")
    page.fill("#text", "ab")
    wait_for_text(page, "#continuation", " ab")
    # exp(2): each letter has the log-probability -2.
    assert texts(page, "#probable dd") == ["−4.00", "2", "7.39"]
    page.click("#take")
    wait_for_text(page, "#continuation", " ab ab")


@pytest.mark.slow
def test_a_classifier_shows_where_it_looks(open_page):
    page = open_page("labeller")
    page.fill("#text", "a good one")
    wait_for_text(page, "#label", "praise")
    assert texts(page, "#probabilities li") == ["praise90 %"]
    page.fill("#text", "a bad one")
    wait_for_text(page, "#label", "blame")
    assert texts(page, "#probabilities li") == ["praise10 %", "blame90 %"]
    page.fill("#text", "a good one")
    wait_for_text(page, "#label", "praise")
    # Two layers, each with three heads and their mean.
    assert page.locator(".small").count() == 2 * (3 + 1)
    page.get_by_role("button", name="attention, layer 1, head 3").click()
    assert page.locator("#opened svg .weight").count() == 9
    page.get_by_role("button", name="Text", exact=True).click()
    page.locator("#opened .rows button").nth(1).hover()
    assert lit(page) == "good"


@pytest.mark.slow
def test_a_classifier_of_two_texts(open_page):
    page = open_page("pairs")
    page.fill("#text", "a b")
    page.fill("#text-pair", "c d e")
    wait_for_text(page, "#label", "other")
    names = page.locator(".small").evaluate_all(
        "all => all.map((n) => n.title)"
    )
    assert names == ["attention", "attention_pair"]
    page.get_by_role("button", name="attention_pair").click()
    page.locator("#opened summary").click()
    assert texts(page, "#opened thead th") == ["a", "b"]
    # Its labels come with the answer.
    assert texts(page, "#probabilities li") == ["same0 %", "other100 %"]


@pytest.mark.slow
def test_examples_are_those_of_the_card(open_page):
    page = open_page("pairs")
    about = page.locator("#about")
    assert "learned from pairs." in about.text_content()
    about.get_by_text("a | a").click()
    wait_for_text(page, "#label", "same")
    assert page.input_value("#text-pair") == "a"


@pytest.mark.slow
def test_the_first_of_several_texts_has_no_padding(open_page):
    page = open_page("reader")
    page.fill("textarea[name=text]", "a b\none two three")
    page.click("#plain button")
    page.wait_for_selector("#which:visible")
    page.locator("#opened summary").click()
    assert texts(page, "#opened thead th") == ["a", "b"]
    assert texts(page, "#opened tbody th") == ["a", "b"]
    assert texts(page, "#opened tbody td") == ["1.00", "0.00", "0.00", "1.00"]


@pytest.mark.slow
def test_any_other_model_has_a_form(open_page):
    page = open_page("numbers")
    page.fill("textarea[name=x]", "[[1, 2, 3]]")
    page.fill("textarea[name=k]", "[2]")
    page.click("#plain button")
    page.wait_for_selector("#outputs dd")
    assert sorted(texts(page, "#outputs dd")) == [
        "[[2,4,6]]",
        '[{"b64":"Mg=="}]',
    ]
    page.fill("textarea[name=k]", "two")
    page.click("#plain button")
    problem = page.wait_for_selector("#desk .problem:visible")
    assert "Expected JSON for k" in problem.text_content()
