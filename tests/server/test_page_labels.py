"""What the page shows of models that choose a label, in a browser."""

import functools
import json

import keras
import numpy as np
import pytest
import tiny
from browsing import (
    FAULTS,
    NAME,
    PALE,
    quoted,
    sync_api,
    texts,
    violations,
    wait_for_text,
)

pytest.importorskip("h11", reason="the extra `serve` is not installed")

from keras_attention import data  # noqa: E402
from keras_attention.server import model_configs  # noqa: E402
from keras_attention.serving import kinds, labeller  # noqa: E402

LABELS = ["cat", "dog", "fox", "owl", "rat"]
SHAPE = (14, 2)
# Name of a model -> what it reads, by the ids of the fields.
TEXTS = {
    "encoder_classifier": {"text": "one two three"},
    "decomposable_attention": {"text": "one two", "text-pair": "four five one"},
    "end_to_end_memory_network": {
        "story": "one two\nthree four",
        "question": "two four",
    },
}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(run_server, tmp_path_factory):
    """A server of a model of each kind, before any training."""
    words = data.train_vocabulary(["one two three four five"], 300, "word")
    tokenizer = data.Tokenizer(words, "words")
    root = tmp_path_factory.mktemp("labels")
    chosen = {
        "encoder_classifier": kinds.CLASSIFICATION,
        "decomposable_attention": kinds.ENTAILMENT,
        "end_to_end_memory_network": kinds.QUESTION_ANSWERING,
    }
    for name in (*chosen, "vision_transformer"):
        keras.utils.set_random_seed(3)
        model = tiny.create(name, tokenizer.vocabulary_size)
        model.build()
        for variable in model.trainable_variables:
            variable.assign(3 * variable)
        labels = (
            labeller.Labeller(model, tokenizer, LABELS, 9, chosen[name])
            if name in chosen
            else labeller.Labeller.of_images(model, LABELS, SHAPE)
        )
        labels.export(root / name)
    configs = [
        model_configs.ModelConfig(folder.name, folder)
        for folder in sorted(root.iterdir())
    ]
    with run_server(configs) as client:
        yield client


@pytest.fixture(scope="module")
def served(client, chromium):
    return f"http://127.0.0.1:{client.rest_port}/"


@pytest.fixture
def ask(client):
    """A function of a model and its inputs: what `inspect` says of a row."""

    def inspect(name, **inputs):
        request = {"signature_name": "inspect", "inputs": inputs}
        status, _, found = client.predict(name, **request)
        assert status == 200
        return {key: rows[0] for key, rows in found["outputs"].items()}

    return inspect


def opened(open_page, model, **options):
    page = open_page(model, **options)
    for field, text in TEXTS[model].items():
        page.fill(f"#{field}", text)
    page.wait_for_selector(".small")
    return page


def table(page):
    """The numbers of the map that is open."""
    page.locator("#opened summary").click()
    rows = page.locator("#opened tbody tr").all()
    return [row.locator("td").all_text_contents() for row in rows]


def written(weights):
    return [[f"{weight:.2f}" for weight in row] for row in weights]


def test_each_layer_and_head_is_a_map(open_page, ask):
    page = opened(open_page, "encoder_classifier")
    seen = ask("encoder_classifier", text=["one two three"])
    wait_for_text(page, "#label", seen["label"])
    shares = [f"{100 * share:.0f} %" for share in seen["probabilities"]]
    assert texts(page, "#probabilities li") == [
        label + share for label, share in zip(LABELS, shares, strict=True)
    ]
    encoder = np.array(seen["encoder"])
    layers, heads, length, _ = encoder.shape
    # The mean of the heads beside them, and the rollout below the layers.
    assert page.locator(".small").count() == layers * (heads + 1) + 1
    assert texts(page, "#opened h3") == ["encoder, layer 2, mean of the heads"]
    assert table(page) == written(encoder[1].mean(0))
    page.get_by_role("button", name="encoder, layer 1, head 3").click()
    page.wait_for_selector("#opened details")
    page.locator("#opened details").evaluate("node => { node.open = false; }")
    assert table(page) == written(encoder[0, 2])
    rolled = np.eye(length)
    for weights in encoder:  # Abnar and Zuidema 2020, equation 1.
        rolled = (0.5 * weights.mean(0) + 0.5 * np.eye(length)) @ rolled
    page.get_by_role("button", name="encoder, rollout").click()
    page.locator("#opened details").evaluate("node => { node.open = false; }")
    assert table(page) == written(rolled)


def test_lines_and_text_of_a_head(open_page, ask):
    page = opened(open_page, "encoder_classifier")
    seen = ask("encoder_classifier", text=["one two three"])
    page.get_by_role("button", name="encoder, layer 1, head 3").click()
    weights = np.array(seen["encoder"][0][2])
    page.get_by_role("button", name="Lines", exact=True).click()
    seen_lines = weights >= weights.max() / 100
    assert page.locator(".arcs line").count() == seen_lines.sum()
    # Nothing is written here, so nothing is written once more.
    assert page.locator(".play").count() == 0
    page.get_by_role("button", name="Text", exact=True).click()
    legend = page.locator("#opened .legend").text_content()
    assert legend == f"0{weights.max():.2f}, the largest weight. Linear."
    row = page.locator("#opened .rows button").nth(1)
    row.focus()
    shades = page.locator("#opened .columns .unit").evaluate_all(
        "all => all.map((n) => Number(n.style.getPropertyValue('--weight')))"
    )
    np.testing.assert_allclose(shades, weights[1] / weights.max(), rtol=1e-4)
    told = page.locator("#opened .says").text_content()
    assert told.startswith(f"{quoted('two')} looked at ")
    page.keyboard.press("ArrowRight")
    told = page.locator("#opened .says").text_content()
    assert told.startswith(f"{quoted('three')} looked at ")


@pytest.mark.parametrize(
    ("model", "names", "rows"),
    [
        (
            "decomposable_attention",
            ["attention", "attention_pair"],
            ["four", "five", "one", "END"],
        ),
        ("end_to_end_memory_network", ["hops"], ["hop 1", "hop 2"]),
    ],
)
def test_other_labellers_have_maps(open_page, ask, model, names, rows):
    page = opened(open_page, model)
    inputs = {key.replace("-", "_"): [x] for key, x in TEXTS[model].items()}
    seen = ask(model, **inputs)
    names = [f"{name}, layer 1, head 1" for name in names]
    assert names == page.locator(".small").evaluate_all(
        "all => all.map((n) => n.title)"
    )
    assert texts(page, "#opened h3") == names[-1:]
    assert table(page) == written(seen[names[-1].split(",")[0]][0][0])
    assert texts(page, "#opened tbody th") == rows


def test_an_error_stands_beside_the_text_that_it_is_about(open_page):
    page = opened(open_page, "decomposable_attention")
    for field, other in (("text", "text-pair"), ("text-pair", "text")):
        page.fill(f"#{other}", "one")
        page.fill(f"#{field}", "one " * 20)
        told = page.locator(f"#{field} + .problem")
        sync_api().expect(told).to_contain_text("takes at most 9")
        assert page.locator(".problem:visible").count() == 1
        assert page.locator("#looked:visible").count() == 0
    page.fill("#text-pair", "one")
    page.wait_for_selector(".problem:visible", state="detached")
    page.wait_for_selector("#looked:visible")


def test_a_model_of_pictures_has_maps_below_its_form(open_page, ask):
    page = open_page("vision_transformer")
    pictures = np.random.default_rng(5).random((2, *SHAPE)).round(3).tolist()
    seen = ask("vision_transformer", image=pictures)
    page.select_option("#signature", "inspect")
    page.fill("#inputs textarea", json.dumps(pictures[:1]))
    page.click("#plain button")
    page.wait_for_selector(".small")
    assert page.locator("#which:visible").count() == 0
    page.get_by_role("button", name="encoder, layer 2, head 7").click()
    assert table(page) == written(seen["encoder"][1][6])
    assert texts(page, "#opened tbody th")[0] == "place 0"
    page.fill("#inputs textarea", json.dumps(pictures))
    page.click("#plain button")
    page.wait_for_selector("#which:visible")
    # Other signatures look nowhere.
    page.select_option("#signature", "serving_default")
    assert page.locator("#looked:visible").count() == 0
    page.fill("#inputs textarea", "[")
    page.click("#plain button")
    told = page.locator("label:has(textarea) + .problem")
    sync_api().expect(told).to_contain_text("Expected JSON for image")


@functools.cache
def _pictures():
    return json.dumps(np.full((1, *SHAPE), 0.5).tolist())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("model", [*TEXTS, "vision_transformer"])
def test_it_can_be_read(open_page, model, scheme):
    page = open_page(model, width=360, color_scheme=scheme)
    assert violations(page) == []
    if model in TEXTS:
        for field, text in TEXTS[model].items():
            page.fill(f"#{field}", text)
    else:
        page.select_option("#signature", "inspect")
        page.fill("#inputs textarea", _pictures())
        page.click("#plain button")
    page.locator(".small").first.click()
    page.locator("#opened summary").click()
    for view in ("Lines", "Text", "Map"):
        page.get_by_role("button", name=view, exact=True).click()
        if view == "Text":
            page.locator("#opened .rows button").first.focus()
        elif view == "Lines":
            page.locator(".arcs button").first.click()
        wide = "document.documentElement.scrollWidth"
        assert page.evaluate(wide) <= 360
        page.wait_for_timeout(300)  # Colours change slowly.
        assert page.evaluate(PALE) == []
        assert page.evaluate(FAULTS) == []
        assert violations(page) == []
        parts = "textarea, select, input, button, svg:not([aria-hidden])"
        for part in page.locator(parts).all():
            assert page.evaluate(NAME, part.element_handle())
