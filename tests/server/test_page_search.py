"""The page's cards of searches that one chooses, in a browser."""

import contextlib

import pytest
from browsing import sync_api, violations

pytest.importorskip("h11", reason="the extra `serve` is not installed")

from keras_attention.server import model_configs  # noqa: E402

pytestmark = pytest.mark.slow
# What a card shows of its answer.
SHOWN = ("#asked .list", "#kept .large", "#held .list", "#aligned")
ITEMS = "#asked li span"


@pytest.fixture(scope="module")
def translator(random_translator):
    chosen = {"num_beams": 3, "per_request": True, "constraints": True}
    return random_translator("transformer", max_target_offset=4, **chosen)


@pytest.fixture(scope="module")
def served(run_server, translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("search") / "small_en_de"
    translator.export(folder)
    configs = [model_configs.ModelConfig(folder.name, folder)]
    with run_server(configs) as client:
        yield f"http://127.0.0.1:{client.rest_port}/"


def opened(open_page, **options):
    """The page with all its cards, and the answer of another search."""
    page = open_page("small_en_de", **options)
    page.fill("#text", "one")
    page.locator("#asked summary").click()
    page.locator("#kept summary").click()
    page.locator(ITEMS).first.wait_for()
    return page


def test_an_answer_is_pale_until_the_next_one_comes(open_page):
    page = opened(open_page)
    page.get_by_label("Each sentence for itself").check()
    page.fill("#held [name=prefix]", "zwei")
    page.fill("#reference", "zwei")
    page.locator("#held li").wait_for()
    page.locator("#aligned .rows button").first.wait_for()
    for shown in SHOWN:
        page.wait_for_selector(f"{shown}[aria-busy=false]")
    held = []
    page.route("**/*:predict", lambda route: held.append(route))
    page.fill("#text", "two")
    for shown in SHOWN:
        page.wait_for_selector(f"{shown}[aria-busy=true]")
        opacity = "node => getComputedStyle(node).opacity"
        assert page.locator(shown).evaluate(opacity) == "0.5"
    page.wait_for_timeout(700)  # Longer than each card waits for a key.
    page.unroute_all()
    assert len(held) >= len(SHOWN)
    for route in held:
        # The page may have given it up.
        with contextlib.suppress(Exception):
            route.continue_()
    for shown in SHOWN:
        page.wait_for_selector(f"{shown}[aria-busy=false]")


def test_a_box_takes_the_numbers_that_the_model_takes(open_page, translator):
    page = opened(open_page)
    for way in ("search", "sample"):
        page.select_option("#asked [name=way]", way)
        steps = page.locator("#asked input").evaluate_all(
            "all => Object.fromEntries(all.map((n) => [n.name, n.step]))"
        )
        specs = translator.signatures[way].input_signature
        assert steps == {
            spec.name: "1" if spec.dtype.is_integer else "any"
            for spec in specs
            if spec.dtype != "string"
        }


def test_a_number_that_cannot_be_is_named_beside_its_box(open_page):
    page = opened(open_page)
    beams = page.locator("#asked [name=num_beams]")
    told = page.locator("label:has([name=num_beams]) + .problem:visible")
    words = "num beams takes a whole number from 0 on."
    for wrong in ("1.5", "-1"):
        beams.fill(wrong)
        sync_api().expect(told).to_contain_text(words)
        assert page.locator("#asked li").count() == 0
        assert violations(page) == []
        beams.fill("2")
        page.locator(ITEMS).first.wait_for()
        assert page.locator("#asked .problem:visible").count() == 0
    # What is no number, such as a mere sign, the browser keeps to itself.
    beams.fill("")
    beams.press_sequentially("-")
    sync_api().expect(told).to_contain_text(words)
    # What the server alone knows stands there, too.
    beams.fill("99")
    sync_api().expect(told).to_contain_text("num_beams must be from 1 to 3")
    beams.fill("")
    page.locator(ITEMS).first.wait_for()
    page.fill("#asked [name=length_penalty]", "-0.5")
    told = page.locator("label:has([name=length_penalty]) + .problem:visible")
    words = "length penalty takes a number from 0 on."
    sync_api().expect(told).to_contain_text(words)
    page.fill("#asked [name=length_penalty]", "0.5")
    page.locator(ITEMS).first.wait_for()
    assert told.count() == 0


def test_each_text_has_its_language(open_page):
    page = opened(open_page)
    fields = "all => all.map(({ name, id, lang }) => [name || id, lang])"
    expected = [
        ["text", "en"],
        ["prefix", "de"],
        ["terms", "de"],
        ["prefix", "de"],
        ["terms", "de"],
        ["", "en"],  # What comes out as it went in.
        ["reference", "de"],
    ]
    assert page.locator("textarea").evaluate_all(fields) == expected
    # Samples have no terms.
    page.select_option("#asked [name=way]", "sample")
    page.wait_for_selector("[name=top_k]")
    del expected[4]
    assert page.locator("textarea").evaluate_all(fields) == expected
