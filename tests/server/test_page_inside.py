"""What the page shows of a model's inside, in a browser."""

import functools
import re

import keras
import numpy as np
import pytest
import tiny
from browsing import (
    FAULTS,
    NAME,
    PALE,
    alter,
    quoted,
    sync_api,
    texts,
    usable,
    violations,
    wait_for_text,
)

pytest.importorskip("h11", reason="the extra `serve` is not installed")

from keras_attention import data  # noqa: E402
from keras_attention.server import model_configs  # noqa: E402
from keras_attention.serving import continuer, translator  # noqa: E402

TEXT = "one two three"
WORDS = ".rows.large button"
CHOICES = "#choices .list"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def models():
    """A translator and a language model, before any training."""
    words = "one two three four five six seven", "eins zwei drei vier fünf"
    # Without bytes, which no answer can have one by one.
    source, target = (
        data.Tokenizer(data.train_vocabulary([line], 300, "word"), name)
        for line, name in zip(words, ("source", "target"), strict=True)
    )
    sizes = source.vocabulary_size, target.vocabulary_size
    keras.utils.set_random_seed(3)
    translates = tiny.create("transformer", sizes[1], sizes[0])
    writes = tiny.create("transformer_language_model", sizes[0])
    for model in (translates, writes):
        model.build()
        for variable in model.trainable_variables:
            # Larger logits: one answer is clearly the best.
            variable.assign(3 * variable)
    return {
        "small_en_de": translator.Translator(
            translates, source, target, max_target_offset=4
        ),
        "writer": continuer.Continuer(writes, source, max_new_tokens=5),
    }


@pytest.fixture(scope="module")
def client(models, run_server, shouter, tmp_path_factory):
    """A server of them, and of a translator that cannot be looked into."""
    root = tmp_path_factory.mktemp("inside")
    shouter(root / "shout")
    for name, model in models.items():
        model.export(root / name)
    configs = [
        model_configs.ModelConfig(folder.name, folder)
        for folder in sorted(root.iterdir())
    ]
    with run_server(configs) as client:
        for name in models:
            # The first answer takes long.
            inspect(client, name, TEXT)
        yield client


def inspect(client, name, text, answer=""):
    """What `inspect` says: name of an output -> value."""
    inputs = {"text": [text], "answer": [answer]}
    request = {"signature_name": "inspect", "inputs": inputs}
    status, _, found = client.predict(name, **request)
    assert status == 200
    return {key: rows[0] for key, rows in found["outputs"].items()}


@pytest.fixture(scope="module")
def served(client, chromium):
    return f"http://127.0.0.1:{client.rest_port}/"


@pytest.fixture
def ask(client):
    """`inspect` of the server."""
    return functools.partial(inspect, client)


def opened(open_page, model="small_en_de", text=TEXT, **options):
    page = open_page(model, **options)
    page.fill("#text", text)
    page.wait_for_selector(f"{WORDS}.shaded")
    return page


def table(page):
    """The numbers of the map that is open."""
    page.locator("#opened summary").click()
    rows = page.locator("#opened tbody tr").all()
    return [row.locator("td").all_text_contents() for row in rows]


def decimal(value):
    return f"{value:.2f}".replace("-", "−")


def written(weights):
    return [[decimal(weight) for weight in row] for row in weights]


def test_each_layer_and_head_is_a_map(open_page, ask):
    page, seen = opened(open_page), ask("small_en_de", TEXT)
    layers, heads = np.shape(seen["cross"])[:2]
    # The mean of the heads beside them, and the rollout below the layers.
    assert page.locator(".small").count() == 3 * (layers * (heads + 1) + 1)
    name = "encoder, layer 2, head 3"
    button = page.get_by_role("button", name=name, exact=True)
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator(".small[aria-pressed=true]").count() == 1
    assert texts(page, "#opened h3") == [name]
    assert table(page) == written(seen["encoder"][1][2])
    # The map says what its colours mean.
    greatest = np.max(seen["encoder"][1][2])
    legend = page.locator("#opened .legend").text_content()
    assert legend.startswith(f"0{greatest:.2f}, the largest weight. Linear.")
    # Where a head of `cross` looked is where the words looked.
    page.get_by_role("button", name="cross, layer 1, head 4").click()
    page.locator(WORDS).nth(0).hover()
    row = np.array(seen["cross"][0][3][0])
    lit = page.locator(".columns .most").first.text_content()
    assert lit == ["one", "two", "three", "END"][int(np.argmax(row))]
    assert page.locator("#opened svg .marked").count() == 2  # Row and frame.
    # The map's largest weight has the full colour, also if it is far below 1.
    name = "cross, layer 1, mean of the heads"
    page.get_by_role("button", name=name).click()
    page.locator(WORDS).nth(1).hover()
    mean = np.mean(seen["cross"][0], 0)
    assert mean.max() < 0.9
    shades = page.locator(".reads .unit").evaluate_all(
        "all => all.map((n) => Number(n.style.getPropertyValue('--weight')))"
    )
    np.testing.assert_allclose(shades, mean[1] / mean.max(), rtol=1e-4)
    # The map stays open while one types.
    page.fill("#text", "two three")
    sync_api().expect(page.locator(".columns .unit")).to_have_count(3)
    page.wait_for_selector(f"{WORDS}.shaded")
    assert texts(page, "#opened h3") == [name]


def test_rollout_is_the_papers(open_page, ask):
    page, seen = opened(open_page), ask("small_en_de", TEXT)
    encoder = np.array(seen["encoder"])
    rolled = np.eye(encoder.shape[-1])
    for heads in encoder:  # Equation 1: half of a layer's input goes by.
        rolled = (0.5 * heads.mean(0) + 0.5 * np.eye(len(rolled))) @ rolled
    page.get_by_role("button", name="encoder, rollout").click()
    assert table(page) == written(rolled)
    page.get_by_role("button", name="cross, rollout").click()
    page.locator("#opened summary").click()
    assert table(page) == written(np.array(seen["cross"])[-1].mean(0) @ rolled)


def test_lines_of_one_head(open_page, ask):
    page, seen = opened(open_page), ask("small_en_de", TEXT)
    page.get_by_role("button", name="encoder, layer 1, head 2").click()
    page.get_by_role("button", name="Lines").click()
    weights = np.array(seen["encoder"][0][1])
    seen_lines = weights >= weights.max() / 100
    assert page.locator(".arcs line").count() == seen_lines.sum()
    # A line begins and ends at the middle of its tokens.
    middles = """part => [...document.querySelectorAll(`.arcs ${part}`)]
      .map((node) => node.getBoundingClientRect())
      .map((box) => Math.round(box.top + box.height / 2))"""
    rows, _ = np.nonzero(seen_lines)
    begins = page.evaluate("""() => [...document.querySelectorAll(".arcs line")]
      .map((line) => new DOMPoint(line.x1.baseVal.value, line.y1.baseVal.value)
        .matrixTransform(line.getScreenCTM()).y)""")
    names = page.evaluate(middles, "li button")
    assert begins == pytest.approx([names[row] for row in rows], abs=2)
    page.locator(".arcs button").nth(1).click()
    assert page.locator(".arcs line").count() == seen_lines[1].sum()
    best = np.argmax(weights[1])
    told = page.locator("#opened .says").text_content()
    looked = ["one", "two", "three", "END"][best]
    share = f"{100 * weights[1, best]:.0f} %"
    assert told.startswith(
        f"{quoted('two')} looked at {quoted(looked)} {share}"
    )
    titles = [
        node.get_attribute("title") for node in page.locator(".arcs span").all()
    ]
    assert titles == written(weights)[1]


def test_a_token_is_forced_and_the_answer_goes_on(open_page, ask):
    page, seen = opened(open_page), ask("small_en_de", TEXT)
    page.locator(WORDS).nth(1).click()
    best = seen["best_tokens"][1]
    own = seen["target_tokens"]
    assert texts(page, f"{CHOICES} [aria-pressed=true]") == [
        quoted(own[1].strip("▁"))
    ]
    shares = np.exp(seen["best_log_probabilities"][1])
    shown = texts(page, f"{CHOICES} data")
    assert len(shown) == 5
    for share, text in zip(shares, shown, strict=False):
        assert float(text.removesuffix(" %")) == pytest.approx(
            100 * share, rel=0.06, abs=0.5
        )
    other = next(
        place
        for place, token in enumerate(best[:5])
        if token != own[1] and re.fullmatch("▁?[a-zäöüß]+", token)
    )
    page.locator(f"{CHOICES} button").nth(other).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#choices .went:visible")
    page.wait_for_selector("#opened[aria-busy=false]")
    pressed = page.locator(f"{CHOICES} [aria-pressed=true]")
    sync_api().expect(pressed).to_have_text(quoted(best[other].strip("▁")))
    answer = page.locator("#heard").text_content()
    forced = ask("small_en_de", TEXT, answer)
    tokens = forced["target_tokens"]
    assert tokens[0] == own[0] and tokens[1] == best[other]
    # Each token behind it is the best one that a text can have.
    for step, token in enumerate(tokens[2:], 2):
        best = usable(forced["best_tokens"][step])[0]
        assert token == best or step == 2 * 4 + 32
    log = sum(forced["token_log_probabilities"])
    told = page.locator("#score").text_content()
    assert told == f"log-probability {decimal(log)}"
    # The keyboard stays where it was.
    focused = page.evaluate("document.activeElement.textContent")
    assert focused == pressed.text_content()
    # And back.
    page.locator("#choices .went button").click()
    wait_for_text(page, "#heard", seen["translation"])


def test_the_beam_is_walked(open_page, ask):
    page, seen = opened(open_page), ask("small_en_de", TEXT)
    nodes, parents = seen["nodes"], seen["node_parents"]
    assert page.locator(".nodes button").count() == len(nodes)
    ends = seen["node_is_finished"]
    assert page.locator(".nodes .finished").count() == sum(ends)
    page.locator(".nodes button").nth(0).focus()
    page.keyboard.press("ArrowRight")
    child = parents.index(0)
    total = seen["node_log_probabilities"][child]
    way = page.locator("#beam .way").text_content()
    assert way.endswith(f": log-probability {decimal(total)}.")
    page.keyboard.press("ArrowLeft")
    assert page.locator(".nodes button.on").count() == 1
    # End leads to the end that the search has chosen.
    page.keyboard.press("End")
    scores = np.where(ends, seen["node_scores"], -np.inf)
    way = page.locator("#beam .way").text_content()
    assert way.startswith(quoted(seen["translation"]) + ": ")
    assert way.endswith(f"the score {decimal(max(scores))}.")


def test_what_cannot_be_looked_into(open_page):
    page = open_page("shout")
    page.fill("#text", "one")
    wait_for_text(page, "#heard", "ONE")
    lacking = page.locator(".lacking:visible").text_content()
    assert "exported before" in lacking and "export it again" in lacking
    assert page.locator(".views:visible, .small").count() == 0
    # Other translations come later than the first. Then nothing is pale.
    page.wait_for_selector("[aria-busy=true]", state="detached")


def test_an_error_stands_in_the_choices(open_page):
    page = opened(open_page)
    page.wait_for_selector("#others[aria-busy=false]")
    page.locator(WORDS).nth(1).click()
    page.route(
        "**/*:predict",
        lambda route: route.fulfill(status=504, json={"error": "Too late"}),
    )
    page.locator(f"{CHOICES} button:enabled[aria-pressed=false]").first.click()
    problem = page.wait_for_selector("#choices .problem:visible")
    assert "Too late. Try again" in problem.text_content()
    assert page.locator(".problem:visible").count() == 1
    page.unroute_all()
    page.locator("#choices .problem button").click()
    page.wait_for_selector("#choices .problem", state="hidden")
    page.wait_for_selector("#opened[aria-busy=false]")


def test_the_keyboard_alone(open_page):
    page = opened(open_page)
    focused = "document.activeElement.textContent"
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{CHOICES} li")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    step = page.locator("#choices .step").text_content()
    assert step.startswith("Token 1 might have been")
    # The small maps are one stop of the tab key.
    page.locator(".small[tabindex='0']").focus()
    label = "document.activeElement.ariaLabel"
    first = page.evaluate(label)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    second = page.evaluate(label)
    assert second != first and "layer" in second
    page.keyboard.press("Enter")
    assert texts(page, "#opened h3") == [second]
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "Map"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("model", ["small_en_de", "writer"])
def test_it_can_be_read(open_page, model, width, scheme):
    page = opened(open_page, model, width=width, color_scheme=scheme)
    page.locator(WORDS).first.click()
    page.locator(".small").first.click()
    for view in ("Lines", "Text", "Map"):
        page.get_by_role("button", name=view, exact=True).click()
        wide = "document.documentElement.scrollWidth"
        assert page.evaluate(wide) <= width
        assert page.evaluate(PALE) == []
        assert page.evaluate(FAULTS) == []
        parts = "textarea, select, input, button, svg:not([aria-hidden])"
        for part in page.locator(parts).all():
            assert page.evaluate(NAME, part.element_handle())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("model", ["small_en_de", "writer", "shout"])
def test_axe_finds_nothing(open_page, model, scheme):
    page = open_page(model, width=360, color_scheme=scheme)
    assert violations(page) == []
    page.fill("#text", TEXT)
    if model == "shout":
        page.wait_for_selector(WORDS)
        assert violations(page) == []
        return
    page.wait_for_selector(f"{WORDS}.shaded")
    page.locator(WORDS).first.click()
    page.wait_for_selector(CHOICES)
    page.locator(".small").first.click()
    closed = page.locator("details:not([open]) > summary:visible")
    while closed.count():
        closed.first.click()
    # What waits for an answer is pale: a slow machine shows it so for long.
    page.wait_for_selector("[aria-busy=true]", state="detached")
    for view in ("Lines", "Text", "Map"):
        page.get_by_role("button", name=view, exact=True).click()
        assert violations(page) == []
    if model == "writer":
        page.select_option("[name=way]", "drawn")
        page.fill("[name=topK]", "11")
        page.wait_for_selector("#maps[aria-busy=false]")
        assert violations(page) == []


def test_a_language_model_writes_as_it_is_told(open_page, ask):
    page, seen = opened(open_page, "writer"), ask("writer", TEXT)
    given = seen["num_given"]
    own = re.compile(f"^{seen['continuation']} ")
    sync_api().expect(page.locator("#continuation")).to_have_text(own)
    # Each token is shaded by its probability, those of the prompt, too.
    probabilities = np.exp(seen["token_log_probabilities"])
    shades = page.locator(WORDS).evaluate_all(
        "all => all.map((n) => Number(n.style.getPropertyValue('--weight')))"
    )
    np.testing.assert_allclose(
        shades[:4], probabilities[given : given + 4], rtol=1e-5
    )
    assert page.locator("#prompted .unit").count() == given
    # A length of its own, shorter and longer than the model's.
    for most in (2, 9):
        page.fill("[name=most]", f"{most}")
        sync_api().expect(page.locator(f"{WORDS}:not(.mark)")).to_have_count(
            most
        )
    text = page.locator("#continuation").text_content()
    again = ask("writer", TEXT, text)
    best = [step[0] for step in again["best_tokens"][given : given + 9]]
    assert again["target_tokens"][given : given + 9] == best


def test_a_number_that_cannot_be_is_named_beside_its_box(open_page):
    page = opened(open_page, "writer")
    told = page.locator("#drawing .problem:visible")
    page.fill("[name=most]", "201")
    after = page.locator("label:has([name=most]) + .problem")
    whole = "Length is a whole number from 1 to 200."
    assert after.text_content().strip() == whole
    page.fill("[name=most]", "5")
    assert told.count() == 0
    page.fill("[name=most]", "2.5")
    assert after.text_content().strip() == whole
    words = page.locator(f"{WORDS}:not(.mark)")
    sync_api().expect(words).to_have_count(3)
    page.fill("[name=most]", "3")
    # What is not shown is not wrong.
    page.select_option("[name=way]", "drawn")
    page.fill("[name=topK]", "0")
    assert "Top k is a whole number from 1 to 10." in told.text_content()
    page.fill("[name=topK]", "3")
    page.fill("[name=temperature]", "0.55")
    assert told.count() == 0
    # The browser does not refuse what is off a step of 0.1.
    page.locator("#drawing").evaluate(
        "form => form.addEventListener('submit', () => form.id = 'drawn')"
    )
    page.get_by_role("button", name="Draw again").click()
    assert page.locator("#drawn").count() == 1
    page.locator("#drawn").evaluate("form => form.id = 'drawing'")
    page.fill("[name=temperature]", "11")
    assert "Temperature goes from 0.1 to 10." in told.text_content()
    page.select_option("[name=way]", "best")
    assert told.count() == 0


def test_a_language_model_draws(open_page, ask):
    page = opened(open_page, "writer")
    page.fill("[name=most]", "4")
    page.select_option("[name=way]", "drawn")
    # The last one that may be drawn, whatever the temperature.
    page.evaluate("Math.random = () => 1 - 1e-12")
    page.fill("[name=temperature]", "2")
    # The best alone, and the fewest with five percent, are no draw.
    for top_k, top_p, place in ((1, 1, 0), (10, 0.05, 0), (3, 1, 2)):
        page.fill("[name=topK]", f"{top_k}")
        page.fill("[name=topP]", f"{top_p}")
        page.get_by_role("button", name="Draw again").click()
        page.wait_for_selector("#maps[aria-busy=false]")
        text = page.locator("#continuation").text_content()
        seen = ask("writer", TEXT, text)
        given = seen["num_given"]
        steps = slice(given, given + 4)
        best = [
            usable(choices)[place] for choices in seen["best_tokens"][steps]
        ]
        assert seen["target_tokens"][steps] == best


def test_an_end_that_is_not_the_most_probable_opens(open_page):
    # The best of a beam need not be the best at its last step.
    def change(outputs):
        best = outputs["best_tokens"][0][-1]
        best.remove("[END]")
        best.insert(1, "[END]")

    page = open_page("small_en_de")
    alter(page, change)
    page.fill("#text", TEXT)
    page.wait_for_selector(f"{WORDS}.shaded")
    page.locator(WORDS).last.click()
    assert texts(page, f"{CHOICES} [aria-pressed=true]") == ["END"]
    assert page.get_by_role("button", name="The token after").is_disabled()


def test_a_model_that_looks_nowhere_is_not_said_to_look(open_page, ask):
    def change(outputs):
        for name in ("encoder", "decoder", "cross"):
            del outputs[name]

    page = open_page("small_en_de")
    alter(page, change)
    page.fill("#text", TEXT)
    page.wait_for_selector(f"{WORDS}.shaded")
    told = page.locator("#nowhere").text_content()
    assert told == "This model has no attention: it looks nowhere."
    assert texts(page, "#heard ~ .says") == [""]
    assert page.locator(".reads:visible").count() == 0
    seen = ask("small_en_de", TEXT)
    tokens = [token.strip("▁[]") for token in seen["target_tokens"]]
    assert texts(page, WORDS) == tokens
    names = page.locator(WORDS).evaluate_all(
        "all => all.map((n) => n.ariaLabel)"
    )
    assert names == [None] * len(tokens)
