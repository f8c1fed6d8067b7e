"""Each choice of a search is on each surface: no surface lacks one.

The surfaces are Python, the command line, exports, REST and the page.
"""

import dataclasses
import json
import re
from importlib import resources

import pytest

pytest.importorskip("h11", reason="the extra `serve` is not installed")

from keras_attention import Translator, evaluation  # noqa: E402
from keras_attention.commands import (  # noqa: E402
    evaluate,
    export,
    predict,
    train,
    translate,
)
from keras_attention.config import search  # noqa: E402
from keras_attention.server import model_configs  # noqa: E402
from keras_attention.serving import kinds  # noqa: E402

# Two searches that have all choices together. None is the default.
BY_BEAM = {
    "num_beams": 6,
    "length_penalty": 0.5,
    "coverage_penalty": 0.1,
    "no_repeat_ngram_size": 3,
    "min_length": 2,
    "num_groups": 2,
    "diversity": 0.3,
    "constraints": True,
    "minimum_risk": True,
}
DRAWN = {
    "num_beams": 3,
    "temperature": 0.9,
    "top_k": 9,
    "top_p": 0.8,
    "min_p": 0.01,
    "sampling_seed": 5,
}
COMMANDS = [train, evaluate, predict, translate, export]
TEXTS = ["one", "two three"]
HELD = {"prefix": "zwei", "terms": "neun\nacht"}


def holds(text):
    return text.startswith("zwei") and "neun" in text and "acht" in text


def test_these_are_all_choices():
    names = {field.name for field in dataclasses.fields(search.Search)}
    assert {*BY_BEAM, *DRAWN} == names
    for values in (BY_BEAM, DRAWN):
        others = search.of(**values).whole()
        assert others.given.items() >= values.items()
        assert not search.OTHERWISE.given.items() & values.items()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.__name__)
def test_each_is_a_flag(command):
    arguments = command.app.assemble_argument_collection()
    # A `meta` application names its flags when it is called.
    flags = {
        name.removeprefix("--").replace("-", "_")
        for argument in arguments
        for name in argument.names
    }
    assert flags >= {*search.NAMES}


def test_each_is_an_argument_in_python():
    """Of `ka.load`, `ka.Translator` and `runs.load_ensemble`."""
    assert {*search.Given.__annotations__} == {*search.NAMES}


@pytest.fixture(scope="module", params=[BY_BEAM, DRAWN], ids=["beam", "drawn"])
def choices(request):
    return request.param


@pytest.fixture(scope="module")
def translator(random_translator, choices):
    plain = random_translator("transformer")
    graph = plain.graph
    return Translator(
        plain.model,
        graph.source_tokenizer,
        graph.target_tokenizer,
        max_target_offset=4,
        **choices,
    )


def test_each_is_declared(translator, choices):
    kind = kinds.from_json(kinds.to_json(translator.kind))
    assert kind.search.items() >= choices.items()
    assert kind == translator.kind


@pytest.fixture(scope="module")
def client(run_server, translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("surfaces") / "model"
    translator.export(folder)
    with run_server([model_configs.ModelConfig("model", folder)]) as client:
        yield client


@pytest.fixture(scope="module")
def served(client):
    return f"http://127.0.0.1:{client.rest_port}/"


@pytest.mark.slow
def test_rest_tells_each_and_searches_so(client, translator, choices):
    status, _, found = client.request("/v1/models/model/metadata")
    assert status == 200
    assert found["metadata"]["kind"]["search"].items() >= choices.items()

    def ask(signature, rows):
        status, _, found = client.predict(
            "model", signature_name=signature, instances=rows
        )
        assert status == 200, found
        return found["predictions"]

    rows = [{"text": text} for text in TEXTS]
    assert ask("serving_default", rows) == translator(TEXTS)
    if choices is DRAWN:
        return
    found = evaluation.minimum_bayes_risk(
        [row["translations"] for row in ask("n_best", rows)]
    )
    assert ask("minimum_risk", rows) == found
    for row in ask("constrained", [{**row, **HELD} for row in rows]):
        assert holds(row["translation"])


def test_the_page_leaves_out_what_nobody_chose():
    folder = resources.files("keras_attention.server") / "page"
    text = (folder / "card.js").read_text("utf-8")
    (listed,) = re.findall(r"SILENT = ({[^}]*,)\n}", text)
    expected = search.OTHERWISE.given
    # These are told always.
    del expected["num_beams"], expected["length_penalty"]
    assert json.loads(listed[:-1] + "}") == expected


@pytest.mark.slow
def test_the_page_tells_each_and_asks_for_both(open_page, translator, choices):
    page = open_page("model")
    page.fill("#text", TEXTS[1])
    page.locator("#more").wait_for()
    told = page.locator("#search").text_content()
    for name, value in choices.items():
        assert f"{name} {json.dumps(value)}" in told
    shown = {*choices, "length_penalty"}
    assert not any(name in told for name in {*search.NAMES} - shown)
    held, risk = page.locator("#held"), page.locator("#risk")
    if choices is DRAWN:
        assert not held.is_visible() and not risk.is_visible()
        return
    risk.wait_for()
    (expected,) = translator.minimum_risk(TEXTS[1:])
    assert risk.locator("[dir]").text_content() == expected
    for name, text in HELD.items():
        page.fill(f"#held [name={name}]", text)
    held.locator("li data").wait_for()
    found = held.locator("li span").text_content()
    assert holds(found)
    held.locator("li button").click()
    assert page.input_value("#reference") == found
    page.fill("#held [name=terms]", "neun " * 40)
    held.get_by_text("found no translation").wait_for()
    for name in HELD:
        page.fill(f"#held [name={name}]", "")
    held.locator("li").wait_for(state="detached")
