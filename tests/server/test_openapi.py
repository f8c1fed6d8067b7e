"""`/openapi.json` describes what the server takes and gives."""

import jsonschema
import pytest

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")


@pytest.fixture(scope="module")
def described(server):
    status, headers, document = server.request("/openapi.json")
    assert status == 200 and headers["content-type"] == "application/json"
    return document


def validator(document, path, *keys):
    """Of a schema in an operation of the document."""
    schema = document["paths"][path]["post"]
    for key in keys:
        schema = schema[key]
    schema = schema["content"]["application/json"]["schema"]
    rooted = {**schema, "components": document["components"]}
    return jsonschema.Draft202012Validator(rooted)


def test_it_is_an_openapi_document(described):
    spec = pytest.importorskip(
        "openapi_spec_validator",
        reason="openapi-spec-validator is in the extra `test`",
    )
    spec.validate(described)


def test_every_model_has_its_paths(described):
    for place in ("", "/versions/{version}", "/labels/{label}"):
        for item in ("", "/metadata", ":predict"):
            assert f"/v1/models/shout{place}{item}" in described["paths"]
    labels = described["paths"]["/v1/models/shout/labels/{label}"]
    assert labels["parameters"][0]["schema"] == {"enum": ["stable"]}
    assert "/v1/models/numbers:predict" in described["paths"]
    assert "/v1/models/numbers/labels/{label}" not in described["paths"]


def test_every_path_that_is_described_is_there(described, server):
    ready = server.request("/readyz")[2]["models"]
    for path, operations in described["paths"].items():
        name = path.removeprefix("/v1/models/").partition("/")[0]
        path = path.format(version=max(ready.get(name, [0])), label="stable")
        method = "post" if "post" in operations else "get"
        status, _, answer = server.request(path, method=method.upper())
        assert status == (400 if method == "post" else 200), (path, answer)


@pytest.mark.parametrize(
    "model, request_body",
    [
        ("shout", {"instances": ["a"]}),
        ("shout", {"instances": [{"text": "a"}, {"text": {"b64": "YQ=="}}]}),
        ("shout", {"inputs": ["a", "b"]}),
        ("shout", {"inputs": {"text": ["a"]}}),
        ("shout", {"instances": ["a"], "signature_name": "n_best"}),
        ("shout", {"inputs": ["a"], "signature_name": "with_attention"}),
        ("shout", {"instances": []}),
        ("shout", {"instances": [3]}),
        ("shout", {"instances": [["a"]]}),
        ("shout", {"instances": [{"txt": "a"}]}),
        ("shout", {"inputs": {"txt": ["a"]}}),
        ("shout", {"inputs": "a"}),
        ("shout", {"instances": ["a"], "signature_name": "n_bests"}),
        ("shout", {"instances": ["a"], "split_sentences": True}),
        ("shout", {"instances": ["a"], "split_sentences": 1}),
        ("shout", {"inputs": ["a"], "keep": ["url", "a"]}),
        ("shout", {"instances": ["a"], "keep": "url"}),
        ("shout", {"instances": ["a"], "keep": [""]}),
        ("shout", {"instances": ["a"], "keep": ["b"] * 20}),
        ("shout", {"instances": ["a"], "keep": ["b"] * 21}),
        ("shout", {"instances": ["a"], "keep": ["b" * 200]}),
        ("shout", {"instances": ["a"], "keep": ["b" * 201]}),
        ("shout", {"rows": ["a"]}),
        ("shout", {}),
    ],
)
def test_what_is_described_is_what_is_taken(
    model, request_body, described, server
):
    path = f"/v1/models/{model}:predict"
    status, _, answer = server.request(path, request_body)
    accepted = validator(described, path, "requestBody")
    assert accepted.is_valid(request_body) == (status == 200), answer
    if status == 200:
        validator(described, path, "responses", "200").validate(answer)
    else:
        assert str(status) in described["components"]["responses"]
        jsonschema.validate(answer, described["components"]["schemas"]["Error"])
