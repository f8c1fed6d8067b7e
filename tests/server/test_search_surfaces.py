"""Each choice of a search is on each surface: no surface lacks one.

The surfaces are Python, the command line, exports, REST, gRPC and the page. A
table of the guide promises which choice is where. Signatures are called; of
Python and the command line, the names are looked for.
"""

import dataclasses
import functools
import json
import math
import pathlib
import pkgutil
import re
from importlib import resources

import pytest
import search_limits
import tensorflow as tf
from browsing import sync_api

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
from keras_attention.serving import kinds, sentences  # noqa: E402

grpc = pytest.importorskip("grpc")
from tensorflow_serving.apis import (  # noqa: E402
    predict_pb2,
    prediction_service_pb2_grpc,
)

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
    "per_request": True,
}
DRAWN = {
    "num_beams": 3,
    "temperature": 0.9,
    "top_k": 9,
    "top_p": 0.8,
    "min_p": 0.01,
    "sampling_seed": 5,
    "per_request": True,
}
NO_BEAMS = "A search that draws has no beams."
COMMANDS = [train, evaluate, predict, translate, export]
TEXTS = ["one", "two three"]
HELD = {"prefix": "zwei", "terms": "neun\nacht"}
GUIDE = pathlib.Path(__file__).parents[2] / "docs/guides/choose_the_search.md"
# What a request asks for: a value that no model here has.
ASKED = {
    "num_beams": 2,
    "length_penalty": 0.0,
    "coverage_penalty": 0.5,
    "no_repeat_ngram_size": 1,
    "min_length": 4,
    "temperature": 0.5,
    "top_k": 3,
    "top_p": 0.5,
    "min_p": 0.3,
    "sampling_seed": 11,
    "prefix": "zwei",
    "terms": "neun",
}
OPTIONS = {"keep": ["number"], "split_sentences": True}


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
    assert flags_of(command) >= {*search.NAMES}


def flags_of(command):
    arguments = command.app.assemble_argument_collection()
    # A `meta` application names its flags when it is called.
    return {
        name.removeprefix("--").replace("-", "_")
        for argument in arguments
        for name in argument.names
    }


@functools.cache
def promises():
    """The guide's table: what -> column -> the words in code there."""
    if not GUIDE.is_file():
        pytest.skip("needs the repository")
    lines = GUIDE.read_text("utf-8").splitlines()
    first = next(n for n, line in enumerate(lines) if "| what | Py" in line)
    _, *columns = cells(lines[first])
    found = {}
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            return found
        what, *others = cells(line)
        found[what.strip("`")] = {
            column: re.findall("`(.*?)`", cell) or [cell]
            for column, cell in zip(columns, others, strict=True)
            if cell
        }


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def of_column(column):
    """Each row's name with one promise of a column."""
    return [
        (what, word)
        for what, row in promises().items()
        for word in row.get(column, ())
    ]


def test_the_table_has_each_choice():
    signatures = {"constraints", "minimum_risk", "per_request"}
    assert {*promises()} >= {*search.NAMES} - signatures
    assert {*promises()} >= {*ASKED}
    columns = ["Python", "command line", "signature over REST"]
    columns += ["signature over gRPC", "option of REST", "page"]
    assert {name for row in promises().values() for name in row} == {*columns}
    # What is a signature is one for both protocols.
    for row in promises().values():
        assert row.get(columns[2]) == row.get(columns[3])


def test_the_table_names_flags_and_python():
    flags = flags_of(predict)
    for what, flag in of_column("command line"):
        assert flag.removeprefix("--") in flags, what
    for what, path in of_column("Python"):
        if path == "ka.load":
            assert what in search.Given.__annotations__
        elif path.startswith("translator."):
            assert callable(getattr(Translator, path.partition(".")[2]))
        else:
            assert callable(pkgutil.resolve_name(f"keras_attention.{path}"))


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


def in_python(translator, signature, what):
    """What a method of the signature's name answers to a choice."""
    if signature == "constrained":
        rows = constraints_of(what)
        return [text for text, _ in translator.constrained(TEXTS, **rows)]
    if signature == "minimum_risk":
        return translator.minimum_risk(TEXTS)
    choices = constraints_of(what)
    if what in ASKED and not choices:
        choices = {what: ASKED[what]}
    found = getattr(translator, signature)(TEXTS, **choices)
    return [[text for text, _ in row] for row in found]


def constraints_of(what):
    """A prefix or a term as Python takes it, else nothing."""
    if what == "prefix":
        return {"prefixes": [ASKED[what]] * len(TEXTS)}
    return {"terms": [[ASKED[what]]] * len(TEXTS)} if what == "terms" else {}


def texts_of(row):
    """The texts of an answer of any of the signatures."""
    if isinstance(row, str):
        return row
    if "translation" in row:
        return row["translation"]
    pairs = zip(row["translations"], row["scores"], strict=True)
    return [text for text, score in pairs if score > -math.inf]


def inputs_of(signature, what):
    """The columns of a request for `TEXTS` with a choice."""
    columns = {"text": TEXTS}
    if signature == "constrained":
        columns |= {"prefix": [""] * 2, "terms": [""] * 2}
    if what in ASKED:
        columns[what] = [ASKED[what]] * 2
    return columns


@pytest.mark.slow
def test_rest_takes_what_the_table_promises(client, translator, choices):
    if choices is DRAWN:
        pytest.skip(NO_BEAMS)
    kept = translator.kind.search
    for what, signature in of_column("signature over REST"):
        if signature == "at export":
            assert kept[what] == choices[what]
            continue
        columns = inputs_of(signature, what)
        rows = [
            dict(zip(columns, row, strict=True))
            for row in zip(*columns.values(), strict=True)
        ]
        status, _, found = client.predict(
            "model", signature_name=signature, instances=rows
        )
        assert status == 200, (what, found)
        found = [texts_of(row) for row in found["predictions"]]
        assert found == in_python(translator, signature, what), what
    for _, option in of_column("option of REST"):
        request = {"instances": ["one. 7."], option: OPTIONS[option]}
        status, _, found = client.predict("model", **request)
        assert status == 200, found
        if option == "keep":
            assert "7" in found["predictions"][0]
        else:
            assert found["predictions"] == sentences.by_sentences(
                translator, request["instances"]
            )


@pytest.mark.slow
@pytest.mark.parametrize("signature, choice", search_limits.ROWS)
def test_rest_refuses_what_is_just_out_of_bounds(
    client, translator, choices, signature, choice
):
    """One row of two is wrong. The answer is one line, which names it."""
    if choices is DRAWN:
        pytest.skip(NO_BEAMS)

    def ask(value, other):
        values = zip(TEXTS, (value, other), strict=True)
        status, _, found = client.predict(
            "model",
            signature_name=signature,
            instances=[{"text": text, choice: one} for text, one in values],
        )
        return status, found

    words, limits, others = search_limits.of(translator.kind, signature, choice)
    status, found = ask(*limits)
    assert status == 200 and len(found["predictions"]) == 2, found
    for value in others:
        status, found = ask(limits[0], value)
        assert status == 400 and re.search(words, found["error"]), found
        assert "\n" not in found["error"]
        assert found["error"].count("must be") == 1


@pytest.mark.slow
def test_grpc_takes_what_the_table_promises(client, translator, choices):
    if choices is DRAWN:
        pytest.skip(NO_BEAMS)
    address = f"127.0.0.1:{client.grpc_port}"
    with grpc.insecure_channel(address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        for what, signature in of_column("signature over gRPC"):
            if signature == "at export":
                continue
            request = predict_pb2.PredictRequest()
            request.model_spec.name = "model"
            request.model_spec.signature_name = signature
            specs = translator.signatures[signature].input_signature
            types = {spec.name: spec.dtype for spec in specs}
            for name, values in inputs_of(signature, what).items():
                proto = tf.make_tensor_proto(values, types[name])
                request.inputs[name].CopyFrom(proto)
            outputs = stub.Predict(request, timeout=60).outputs
            key = "translations"
            if key not in outputs:
                found = tf.make_ndarray(outputs["translation"])
                found = [text.decode() for text in found]
            else:
                found = [
                    [
                        text.decode()
                        for text, score in zip(*row, strict=True)
                        if score > -math.inf
                    ]
                    for row in zip(
                        tf.make_ndarray(outputs[key]),
                        tf.make_ndarray(outputs["scores"]),
                        strict=True,
                    )
                ]
            assert found == in_python(translator, signature, what), what


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


@pytest.mark.slow
def test_the_page_takes_what_the_table_promises(open_page, translator, choices):
    if choices is DRAWN:
        pytest.skip(NO_BEAMS)
    page = open_page("model")
    page.fill("#text", TEXTS[1])
    for what, place in of_column("page"):
        page.locator(place).wait_for(state="attached")
        if place == "#search":
            assert what in page.locator(place).text_content()
    asked = page.locator("#asked")
    asked.wait_for()
    asked.locator("summary").click()
    (first, *_) = translator.search(TEXTS[1:])[0]
    asked.locator("li span").first.wait_for()
    assert asked.locator("li span").first.text_content() == first[0]
    for way in ("search", "sample"):
        page.select_option("#asked [name=way]", way)
        for what, place in of_column("page"):
            if place == "#asked" and way in [
                word
                for one, word in of_column("signature over REST")
                if one == what
            ]:
                assert asked.locator(f"[name={what}]").is_visible(), what
    page.select_option("#asked [name=way]", "search")
    page.fill("#asked [name=min_length]", "6")
    page.fill("#asked [name=num_beams]", "1")
    expected = translator.search(TEXTS[1:], min_length=6, num_beams=1)
    texts = [text for text, _ in expected[0]]
    sync_api().expect(asked.locator("li span")).to_have_text(texts)
    page.fill("#asked [name=num_beams]", "99")
    asked.get_by_text("num_beams must be from 1 to 6").wait_for()


@pytest.mark.slow
def test_the_page_keeps_strings_and_splits(open_page, choices):
    if choices is DRAWN:
        pytest.skip(NO_BEAMS)
    page = open_page("model")
    page.fill("#text", "one. See www.a.org/x and 7.")
    kept = page.locator("#kept")
    kept.locator("summary").click()
    kept.get_by_label("URLs").check()
    kept.get_by_label("Each sentence for itself").check()
    expect = sync_api().expect(kept.locator(".large"))
    expect.to_contain_text("www.a.org/x")
    page.fill("#kept textarea", "See")
    expect.to_contain_text("See")
    page.fill("#text", "7 " * 101)
    kept.get_by_label("numbers").check()
    kept.get_by_text("more than 100 strings in row 1").wait_for()
    page.fill("#text", "")
    kept.wait_for(state="hidden")
