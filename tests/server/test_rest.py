"""The REST API of a server that runs, as clients see it."""

import base64
import concurrent.futures
import http.client
import json
import logging
import math
import socket
import time

import hypothesis
import pytest
from hypothesis import strategies

pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")

PREDICT = "/v1/models/shout:predict"
LEAVES = strategies.one_of(
    strategies.none(),
    strategies.booleans(),
    strategies.integers(),
    strategies.floats(),
    strategies.text(max_size=9),
)
KEYS = strategies.sampled_from(["text", "x", "k", "b64", "ids", ""])
VALUES = strategies.recursive(
    LEAVES,
    lambda inner: (
        strategies.lists(inner, max_size=4)
        | strategies.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=9,
)
REQUESTS = strategies.fixed_dictionaries(
    {},
    optional={
        "instances": VALUES,
        "inputs": VALUES,
        "signature_name": LEAVES
        | strategies.sampled_from(["", "padded", "scalar", "with_attention"]),
    },
)


def test_rows_and_columns(server):
    for request, expected in (
        ({"instances": ["a", {"text": "b"}][:1]}, {"predictions": ["A"]}),
        ({"instances": [{"text": "b"}]}, {"predictions": ["B"]}),
        ({"inputs": ["a", "b"]}, {"outputs": ["A", "B"]}),
        ({"inputs": {"text": ["zwölf"]}}, {"outputs": ["ZWöLF"]}),
    ):
        status, headers, answer = server.predict("shout", **request)
        assert (status, answer) == (200, expected)
        assert headers["content-type"] == "application/json"


def test_nul_is_left_out_of_texts_for_models_of_this_package(server):
    """Graphs that an older version exported do not leave it out."""
    answer = server.predict("shout", instances=["a\0b", "\0", "c"])[2]
    assert answer == {"predictions": ["AB", "", "C"]}


def test_named_outputs_of_several_rows(server):
    request = {
        "signature_name": "with_attention",
        "instances": ["a b", "", "c"],
    }
    _, _, answer = server.predict("shout", **request)
    rows = answer["predictions"]
    assert [row["translation"] for row in rows] == ["A B", "", "C"]
    assert rows[0]["source_tokens"] == ["a", "b", "</s>"]
    request["instances"] = ["c"]
    _, _, alone = server.predict("shout", **request)
    assert alone["predictions"][0]["source_tokens"] == ["c", "</s>"]


def test_what_is_not_finite_is_a_bare_word(server):
    _, _, answer = server.predict(
        "shout", signature_name="n_best", instances=["a"]
    )
    assert answer["predictions"] == [
        {"translations": ["a", ""], "scores": [-0.1, -math.inf]}
    ]


def test_any_savedmodel(server):
    rows = [{"x": [1, 2, 3], "k": 2}, {"x": [0.5, "Infinity", 0], "k": 3}]
    _, _, answer = server.predict("numbers", instances=rows)
    assert answer["predictions"] == [
        {"y": [2.0, 4.0, 6.0], "raw_bytes": {"b64": _b64("2")}},
        {"y": [1.5, math.inf, 0.0], "raw_bytes": {"b64": _b64("3")}},
    ]
    _, _, answer = server.predict(
        "numbers", signature_name="padded", inputs=[[1, 2]]
    )
    assert answer == {"outputs": [[1, 2, 1, 2]]}
    _, _, answer = server.predict("numbers", signature_name="scalar", inputs=1)
    assert answer == {"outputs": 2.0}


def _b64(text):
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "path", ["shout", "shout/versions/1", "shout/labels/stable"]
)
def test_versions_and_labels(server, path):
    status, _, answer = server.request(
        f"/v1/models/{path}:predict", {"instances": ["a"]}
    )
    assert (status, answer) == (200, {"predictions": ["A"]})
    status, _, answer = server.request(f"/v1/models/{path}")
    assert (status, answer) == (
        200,
        {
            "model_version_status": [
                {
                    "version": "1",
                    "state": "AVAILABLE",
                    "status": {"error_code": "OK", "error_message": ""},
                }
            ]
        },
    )
    _, _, answer = server.request(f"/v1/models/{path}/metadata")
    assert answer["model_spec"] == {
        "name": "shout",
        "signature_name": "",
        "version": "1",
    }
    definitions = answer["metadata"]["signature_def"]["signature_def"]
    text = definitions["serving_default"]["inputs"]["text"]
    assert text["dtype"] == "DT_STRING"
    assert text["tensor_shape"] == {
        "dim": [{"size": "-1", "name": ""}],
        "unknown_rank": False,
    }


@pytest.mark.parametrize(
    "method, path, body, status",
    [
        ("POST", "/v1/models/x:predict", "{}", 404),
        ("POST", "/v1/models/x:predict", '{"instances": [1]}', 404),
        ("POST", "/v1/models/shout/versions/9:predict", '{"inputs": 1}', 404),
        ("POST", "/v1/models/shout/labels/x:predict", '{"inputs": 1}', 400),
        ("POST", PREDICT, '{"instances": ["a"], "signature_name": "x"}', 400),
        ("POST", PREDICT, '{"instances": ["1 2 3 4 5"]}', 400),
        ("POST", PREDICT, '{"instances": ["fail"]}', 400),
        ("POST", PREDICT, '{"instances": [["a"]]}', 400),
        ("POST", PREDICT, json.dumps({"instances": ["a"] * 51}), 400),
        ("POST", "/v1/models/shout:classify", "{}", 400),
        ("GET", PREDICT, None, 400),
        ("DELETE", "/v1/models/shout", None, 400),
        ("GET", "/v1/models/", None, 400),
        ("GET", "/v1/models/x", None, 404),
        ("GET", "/v1/models/shout/versions/9", None, 404),
        ("GET", f"/v1/models/shout/versions/{9**30}", None, 400),
        ("GET", "/v1/models/x/metadata", None, 404),
        ("GET", "/v1/models/..%2f..%2fetc%2fpasswd", None, 404),
        ("GET", "/v1/models/../../etc/passwd", None, 400),
        ("GET", "/page/..%2f__init__.py", None, 404),
        ("GET", "/page/__init__.py", None, 404),
        ("GET", "/etc/passwd", None, 404),
        ("POST", "/v1?x", "{}", 404),
        ("GET", "/healthz/", None, 404),
        ("PUT", "/healthz", None, 405),
    ],
)
def test_errors_are_json_with_their_status(server, method, path, body, status):
    found, _, answer = server.request(path, body, method)
    assert found == status
    assert [*answer] == ["error"]
    assert "Traceback" not in answer["error"]


def test_a_body_is_not_too_large_however_it_comes(server):
    body = b'{"instances": ["' + b"a" * 30_000 + b'"]}'
    assert server.request(PREDICT, body)[0] == 413
    pieces = (body[start : start + 1000] for start in range(0, len(body), 1000))
    connection = http.client.HTTPConnection("127.0.0.1", server.rest_port, 60)
    try:
        connection.request(
            "POST",
            PREDICT,
            pieces,
            encode_chunked=True,
            headers={"Transfer-Encoding": "chunked"},
        )
        assert connection.getresponse().status == 413
    except (ConnectionResetError, BrokenPipeError):
        pass  # The server does not read the rest.
    finally:
        connection.close()


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(
    strategies.sampled_from(["shout", "numbers"]), REQUESTS, strategies.data()
)
def test_no_body_is_the_servers_fault(server, name, request, data):
    body = json.dumps(request).encode()
    if data.draw(strategies.booleans()):
        place = data.draw(strategies.integers(0, len(body)))
        body = body[:place] + data.draw(strategies.binary(max_size=3))
    status, _, answer = server.request(f"/v1/models/{name}:predict", body)
    assert status in (200, 400)
    assert status == 200 or [*answer] == ["error"]


def test_a_head_without_end_is_refused(server):
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ".ljust(2**16 + 1, b"a")
    # Sooner than the server's timeout of 30 seconds.
    answer = server.raw(head, timeout=20)
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_request_id_is_taken_over_if_it_is_sane(server):
    _, headers, _ = server.request(PREDICT, headers={"X-Request-Id": "a-1"})
    assert headers["x-request-id"] == "a-1"
    _, headers, _ = server.request(
        PREDICT, headers={"X-Request-Id": "a b" + "c" * 99}
    )
    assert len(headers["x-request-id"]) == 32


def test_the_log_has_no_texts(server):
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.fields)
    logger = logging.getLogger("keras_attention.server")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        headers = {"X-Request-Id": "mine"}
        for text in ("private", "private 2 3 4 5 6"):
            body = {"instances": [text]}
            server.request(PREDICT, body, headers=headers)
    finally:
        logger.removeHandler(handler)
    first, second = [line for line in lines if line.get("id") == "mine"]
    assert first["code"] == "OK" and first["rows"] == 1
    assert second["code"] == "INVALID_ARGUMENT"
    assert "private" not in str(lines)


def test_health_metrics_and_page(server):
    assert server.request("/healthz")[0] == 200
    status, _, answer = server.request("/readyz")
    assert (status, answer["ready"]) == (200, True)
    assert server.request("/")[0] == 200
    server.predict("shout", instances=["a"])
    _, headers, text = server.request("/monitoring/prometheus/metrics")
    assert headers["content-type"].startswith("text/plain")
    assert (
        ':tensorflow:serving:request_count{model_name="shout",status="OK"}'
        in text
    )
    assert "_total" not in text


def test_many_rows_are_answered_in_parts(server):
    texts = [" ".join("ab"[: 1 + n % 2]) for n in range(50)]
    request = {"signature_name": "with_attention", "inputs": texts}
    _, _, answer = server.predict("shout", **request)
    outputs = answer["outputs"]
    assert outputs["translation"] == [text.upper() for text in texts]
    assert outputs["source_tokens"][0] == ["a", "</s>", ""]
    assert outputs["attention"][0][0] == [0.5, 0.5, 0.0]
    # The row of the request, and not that of its part.
    request["inputs"] = [*texts[:40], "1 2 3 4 5"]
    status, _, answer = server.predict("shout", **request)
    assert status == 400
    assert answer["error"].startswith("The text in row 41 has 6 tokens")


def test_many_clients_get_their_own_answers(server):
    def ask(number):
        text = f"{number} " * (number % 3 + 1)
        _, _, answer = server.predict(
            "shout", signature_name="with_attention", instances=[text]
        )
        (row,) = answer["predictions"]
        assert row["source_tokens"] == [*text.split(), "</s>"]
        assert len(row["attention"]) == number % 3 + 2

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(ask, range(60)))


def test_a_client_that_is_gone_harms_nobody(server):
    body = b'{"instances": ["a"]}'
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
    for length in (len(body), 500):
        with socket.create_connection(("127.0.0.1", server.rest_port)) as one:
            one.sendall(f"{head}{length}\r\n\r\n".encode() + body)
    cancelled = 'model_name="shout",status="CANCELLED"'
    while cancelled not in server.request("/monitoring/prometheus/metrics")[2]:
        time.sleep(0.01)
    assert server.predict("shout", instances=["a"])[0] == 200
