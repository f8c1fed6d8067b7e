"""The behaviours that TensorFlow Serving's own tests of REST ask for.

They are those of its model server, its handler of REST and its tensors in
JSON. Each row of the table has what TensorFlow Serving answers. A row with a
reason is one where this server answers something else.
"""

import contextlib
import http.client
import json

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

import tf_serving_models  # noqa: E402

from keras_attention.server import (  # noqa: E402
    errors,
    examples,
    model_configs,
)

NAN = float("nan")
INF = float("inf")
HALF = tf_serving_models.HALF
# Method, path below /v1/models/, body.
HALF_2 = ("POST", f"{HALF}:predict")
ANY = ("POST", "any:predict")


def row(name, how, body, status, answer, reason=None):
    return pytest.param(how, body, status, answer, reason, id=name)


def of(signature, **body):
    return {"signature_name": signature} | body


def get(path):
    return "GET", path


def post(path):
    return "POST", path


REGRESS = of("regress_x_to_y", examples=[{"x": 80.0}])
CLASSIFY = of("classify_x_to_y", examples=[{"x": 20.0}])
MALFORMED = "Malformed request"
STATUS_123 = {
    "version": "123",
    "state": "AVAILABLE",
    "status": {"error_code": "OK", "error_message": ""},
}
RESERVED = "modelname!#$%&'()*+,/:;=?@[]"
ESCAPED = "modelname%21%23%24%25%26%27%28%29%2A%2B%2C%2F%3A%3B%3D%3F%40%5B%5D"

PATHS = [
    row(f"{method} {path}", (method, path), body, 400, MALFORMED)
    for method, path, body in (
        ("GET", "/v1/foo", None),
        ("POST", "/v1/foo", {}),
        ("GET", "debug/model_name", None),
        ("POST", "/v1/models", {}),
        ("GET", "foo:predict", None),
        ("GET", "foo/version/50:predict", None),
        ("POST", "foo/version/50:regress", {}),
        ("POST", "foo/versions/HELLO:regress", {}),
        ("POST", "foo/metadata", {}),
        ("POST", "foo/label/some_label:regress", {}),
        ("POST", "foo/versions/50/labels/some_label:regress", {}),
        ("POST", "foo/versions/some_label:regress", {}),
        ("GET", f"{HALF}/", None),
        ("OPTIONS", f"{HALF}:predict", None),
        ("HEAD", HALF, None),
    )
]
MODELS = [
    row("no name", get("/v1/models"), None, 400, "Missing model name"),
    row(
        "a number that is no version",
        post("foo/versions/18446744073709551615:regress"),
        {},
        400,
        "Failed to convert version",
    ),
    *(
        row(
            f"predict {path}",
            post(f"{path}:predict"),
            {"instances": [1]},
            404,
            "Servable not found for request",
        )
        for path in ("foo", "foo/versions/50", f"{HALF}/versions/99")
    ),
    row(
        "no such label",
        post(f"{HALF}/labels/nope:predict"),
        {"instances": [1]},
        400,
        "Unrecognized servable version label",
    ),
    row(
        "status of a version",
        get(f"{HALF}/versions/123"),
        None,
        200,
        {"model_version_status": [STATUS_123]},
    ),
    row(
        "status by label",
        get(f"{HALF}/labels/label"),
        None,
        200,
        {"model_version_status": [STATUS_123]},
    ),
    row(
        "status of all versions",
        get(HALF),
        None,
        200,
        {
            "model_version_status": [
                STATUS_123 | {"version": "124"},
                STATUS_123,
            ]
        },
    ),
    row("unknown model", get("foo"), None, 404, "Could not find any versions"),
    row(
        "unknown version",
        get(f"{HALF}/versions/99"),
        None,
        404,
        "Could not find version 99 of model",
    ),
    row("reserved", get(ESCAPED), None, 404, RESERVED),
    row(
        "reserved :predict",
        post(f"{ESCAPED}:predict"),
        {"instances": [1]},
        404,
        RESERVED,
    ),
    row("a query", get(f"{HALF}/versions/123?a=b"), None, 200, None),
    row(
        "capitals in the path",
        get(f"/V1/Models/{HALF}/VERSIONS/123"),
        None,
        200,
        None,
    ),
    row(
        "two slashes",
        get(f"//v1/models/{HALF}"),
        None,
        404,
        "Not found",
    ),
    row("no such page", get("/nope"), None, 404, "Not found"),
    row("metrics", get("/monitoring/prometheus/metrics"), None, 200, None),
    row("/", get("/"), None, 200, None, "The page is there, and no 404."),
]
HALF_PLUS_TWO = [
    row(
        "latest",
        HALF_2,
        {"instances": [[1.0, 2.0], [3.0, 4.0]]},
        200,
        {"predictions": [[2.5, 3.0], [3.5, 4.0]]},
    ),
    *(
        row(
            f"predict by {path}",
            post(f"{HALF}/{path}:predict"),
            {"instances": [1.0, 2.0]},
            200,
            {"predictions": [2.5, 3.0]},
        )
        for path in ("versions/123", "labels/label")
    ),
    row(
        "explicit signature",
        HALF_2,
        of("serving_default", instances=[3.0, 4.0]),
        200,
        {"predictions": [3.5, 4.0]},
    ),
    row(
        "columns", HALF_2, {"inputs": [3.0, 4.0]}, 200, {"outputs": [3.5, 4.0]}
    ),
    *(
        row(
            f"{api} {path}",
            post(f"{HALF}{path}:{api}"),
            body,
            200,
            {"results": results},
        )
        for api, body, results in (
            ("regress", REGRESS, [42]),
            ("classify", CLASSIFY, [[["", 12]]]),
        )
        for path in ("", "/versions/123", "/labels/label")
    ),
    row(
        "a context",
        post(f"{HALF}:regress"),
        of("regress_x_to_y", context={"x": 2.0}, examples=[{}, {"x": 4.0}]),
        200,
        {"results": [3, 4]},
    ),
    row(
        "a context that is large",
        post(f"{HALF}:regress"),
        of("regress_x_to_y", context={"x": "a" * 65_536}, examples=[{}]),
        400,
        "The context has more than 65536 bytes.",
    ),
    row(
        "a large context of many examples",
        post(f"{HALF}:regress"),
        of("regress_x_to_y", context={"x": "a" * 65_536}, examples=[{}] * 257),
        400,
        "The request has 257 rows, and at most 256 are taken.",
    ),
    row(
        "no examples",
        post(f"{HALF}:classify"),
        of("classify_x_to_y"),
        400,
        "Expecting 'examples' value to be an list/array",
    ),
    row(
        "a feature of two kinds",
        post(f"{HALF}:classify"),
        of("classify_x_to_y", examples=[{"x": [1, "a"]}]),
        400,
        "Unexpected element type in feature: x",
    ),
    row(
        "another method's signature",
        post(f"{HALF}:classify"),
        REGRESS,
        400,
        "Expected classification signature method_name to be "
        "tensorflow/serving/classify. Was: tensorflow/serving/regress",
    ),
    row("empty", HALF_2, b"", 400, "JSON Parse error: The document is empty"),
    row("bad", HALF_2, b"instances", 400, "JSON Parse error: Invalid value"),
    row(
        "wrong type",
        HALF_2,
        {"instances": ["x", "y"]},
        400,
        "not of expected type: float",
    ),
    row(
        "signature_name a number",
        HALF_2,
        {"signature_name": 5},
        400,
        "'signature_name' key must be a string value.",
    ),
    row(
        "unknown signature",
        HALF_2,
        of("nope", instances=[1]),
        400,
        'Serving signature name: "nope" not found in signature def',
    ),
]
I3 = [[1, 2], [3, 4], [5, 6]]
TENSORS = [
    row("ints", ANY, of("int", instances=[I3]), 200, {"predictions": [I3]}),
    row(
        "500,000 lists in each other for a name",
        ANY,
        b'{"signature_name": ' + b"[" * 500_000 + b"]" * 500_000 + b"}",
        400,
        "JSON Parse error",
        "The parser has a limit: it ends before it knows the key.",
    ),
    row(
        "deep",
        ANY,
        of("int", instances=[[[[[[[[1]]]]]]]]),
        200,
        {"predictions": [[[[[[[[1]]]]]]]]},
    ),
    *(
        row(
            f"ints and floats to {name}",
            ANY,
            of(name, instances=[1, 2.0, 3, 4, 5.003, 0.007, 0]),
            200,
            {"predictions": [1.0, 2.0, 3.0, 4.0, 5.003, 0.007, 0.0]},
        )
        for name in ("float", "double")
    ),
    *(
        row(
            f"{number} to float",
            ANY,
            of("float", instances=[number]),
            200,
            # TensorFlow Serving writes 1435774336.0: the same float.
            {"predictions": [1435774300.0]},
        )
        for number in (1435774380, 1435774380.0)
    ),
    *(
        row(
            f"{number} to float",
            ANY,
            f'{{"signature_name": "float", "instances": [{number}]}}'.encode(),
            200,
            {"predictions": [expected]},
        )
        for number, expected in (
            ("1.8e308", INF),
            ("-1.8e308", -INF),
            ("2.2e-309", 0.0),
        )
    ),
    row(
        "base64 scalars",
        ANY,
        of("text", instances=[{"b64": "aGVsbG8="}, {"b64": "d29ybGQ="}]),
        200,
        {"predictions": ["hello", "world"]},
    ),
    row(
        "base64 lists",
        ANY,
        of("text", instances=[[{"b64": "aGVsbG8="}], [{"b64": "d29ybGQ="}]]),
        200,
        {"predictions": [["hello"], ["world"]]},
    ),
    row(
        "named base64",
        ANY,
        of("text", instances=[{"s": [[{"b64": "aGVsbG8="}]]}]),
        200,
        {"predictions": [[["hello"]]]},
    ),
    row(
        "bad base64",
        ANY,
        of("text", instances=[{"b64": "!"}]),
        400,
        "Unable to base64 decode",
    ),
    row(
        "bare words",
        ANY,
        b'{"signature_name": "double", "instances": [NaN, Infinity]}',
        200,
        {"predictions": [NAN, INF]},
    ),
    row(
        "named columns",
        ANY,
        of("int", inputs={"i": [I3]}),
        200,
        {"outputs": [I3]},
    ),
    row("unnamed columns", ANY, of("int", inputs=[I3]), 200, {"outputs": [I3]}),
    row(
        "three names, scalar base64",
        ANY,
        of("three", inputs={"i": [I3], "s": ["foo"], "b": {"b64": "aGk="}}),
        200,
        {"outputs": {"i": [I3], "s": ["foo"], "b": "hi"}},
    ),
    row(
        "columns of other lengths",
        ANY,
        of("three", inputs={"i": [I3], "s": ["foo", "bar"], "b": "hi"}),
        200,
        {"outputs": {"i": [I3], "s": ["foo", "bar"], "b": "hi"}},
    ),
    row(
        "signature_name a number",
        ANY,
        {"signature_name": 5, "instances": [1]},
        400,
        "must be a string value",
    ),
    row(
        "instances and inputs",
        ANY,
        of("int", instances=[1], inputs=[1]),
        400,
        "Not formatted correctly",
    ),
    *(
        row(name, ANY, of("int", instances=values), 400, text)
        for name, values, text in (
            ("ragged", [[1, 2], [3, 4, 5]], "Expecting tensor size"),
            ("another rank", [[1, 2], [[3, 4]]], "Expecting shape"),
            ("value then list", [1, [1]], "Expecting shape"),
            ("strings", ["a"], "not of expected type: int32"),
            ("empty", [], "No values in 'instances' array"),
            ("no list", 1, "Expected 'instances' to be an list/array"),
            ("null", None, "Expected 'instances' to be an list/array"),
        )
    ),
    *(
        row(name, ANY, of("named", instances=values), 400, text)
        for name, values, text in (
            (
                "rows of other ranks",
                [{"i": [1, 2], "s": "a"}, {"i": [[1, 2]], "s": "a"}],
                "Expecting shape",
            ),
            (
                "rows of other lengths",
                [{"i": [1], "s": "a"}, {"i": [1, 2], "s": "a"}],
                "Expecting tensor size",
            ),
            (
                "a list among objects",
                [{"i": 1, "s": "a"}, [1]],
                "Expecting object but got list",
            ),
            (
                "unnamed",
                [1],
                "instances is a plain list, but expecting list of objects as "
                "multiple input tensors required as per tensorinfo_map",
            ),
            (
                "a name is missing",
                [{"i": 1}],
                "Failed to process element: 0 of 'instances' list.",
            ),
        )
    ),
    row(
        "an object among lists",
        ANY,
        of("int", instances=[[1], {"i": 1}]),
        400,
        "Expecting value/list but got object",
    ),
    row(
        "no instances",
        ANY,
        of("int"),
        400,
        "Missing 'inputs' or 'instances' key",
    ),
    row("a list", ANY, [], 400, "Expected JSON object"),
    row(
        "a column is missing",
        ANY,
        of("named", inputs={"i": 1}),
        400,
        "Missing named input: s in 'inputs' object.",
    ),
    row(
        "NUL in a text",
        ANY,
        of("text", instances=["a\0b"]),
        200,
        {"predictions": ["a\0b"]},
    ),
    row(
        "_bytes",
        ANY,
        of("raw", instances=["hello"]),
        200,
        {"predictions": [{"b64": "aGVsbG8="}]},
    ),
    row(
        "digits",
        ANY,
        of("float", instances=[9000000, 999999.0, 0.0003, 3e-5, 555557.5]),
        200,
        {"predictions": [9e6, 999999.0, 0.0003, 3e-05, 555557.5]},
    ),
    row(
        "not finite",
        ANY,
        of("logarithm", inputs=[-1, 0]),
        200,
        {"outputs": [NAN, -INF]},
    ),
    row(
        "complex",
        ANY,
        of("complex", inputs=[1]),
        400,
        "tensor type: complex64",
    ),
    row(
        "rows of outputs of other lengths",
        ANY,
        of("uneven", instances=[1, 2]),
        400,
        "inconsistent batch size",
    ),
    row(
        "columns of outputs of other lengths",
        ANY,
        of("uneven", inputs=[1, 2]),
        200,
        {"outputs": {"a": [1.0, 2.0], "b": [1.0, 2.0, 1.0, 2.0]}},
    ),
    row(
        "no rows",
        ANY,
        of("empty", instances=[1, 2]),
        200,
        {"predictions": []},
    ),
    row(
        "a scalar as rows",
        ANY,
        of("total", instances=[1, 2]),
        400,
        "no shape information",
    ),
    row("a scalar", ANY, of("total", inputs=[1, 2]), 200, {"outputs": 3.0}),
    row(
        "bool",
        ANY,
        of("bool", instances=[False, True]),
        200,
        {"predictions": [False, True]},
    ),
    row(
        "other keys",
        ANY,
        of("int", instances=[1], other=None),
        200,
        {"predictions": [1]},
    ),
    row("a text", ANY, of("text", inputs="hello"), 200, {"outputs": "hello"}),
]


@pytest.fixture(scope="module")
def port(run_server, tmp_path_factory):
    folders = tf_serving_models.write(tmp_path_factory.mktemp("models"))
    configs = [
        model_configs.ModelConfig(
            HALF, folders[HALF], num_latest=None, labels={"label": 123}
        ),
        model_configs.ModelConfig("any", folders["any"]),
    ]
    with run_server(configs) as server:
        yield server.rest_port


@pytest.mark.parametrize(
    "api, outputs, told",
    [
        ("classify", {"classes": np.array([[1]])}, "classes Tensor of DT_STR"),
        ("regress", {"outputs": np.array([b"a"], object)}, "of DT_FLOAT"),
    ],
)
def test_results_of_another_type_are_no_fault_of_the_server(api, outputs, told):
    with pytest.raises(errors.RequestError, match=told) as refused:
        examples.result(api, outputs, 1)
    assert refused.value.code == errors.Code.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "how, body, status, answer, reason",
    PATHS + MODELS + HALF_PLUS_TWO + TENSORS,
)
def test_as_tensorflow_serving(port, how, body, status, answer, reason):
    method, path = how
    path = path if path.startswith("/") else f"/v1/models/{path}"
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
    connection = http.client.HTTPConnection("127.0.0.1", port, 60)
    with contextlib.closing(connection):
        connection.request(method, path, body)
        response = connection.getresponse()
        text = response.read().decode()
    assert response.status == status, text
    if method == "HEAD" or answer is None:
        return
    found = json.loads(text)
    if isinstance(answer, str):
        assert answer in found["error"]
    else:
        # Not a number is not equal to itself.
        assert repr(found) == repr(answer) or found == answer
