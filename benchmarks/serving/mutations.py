"""Requests that are almost right: right ones, changed at random.

The models are those of `small_models`.
"""

import copy
import json

import tensorflow as tf
from hypothesis import strategies
from tensorflow_serving.apis import predict_pb2

_CAPITALS = (
    {"instances": ["one"]},
    {"instances": [{"text": "one"}, {"text": "two"}]},
    {"inputs": {"text": ["one", "two"]}, "signature_name": "serving_default"},
)
_NUMBERS = (
    {"instances": [{"x": [1, 2.5, 3], "k": 2}]},
    {"inputs": {"x": [[1, 2, 3], [4, 5, 6]], "k": [1, -1]}},
)
_BODIES = [("capitals", body) for body in _CAPITALS]
_BODIES += [("numbers", body) for body in _NUMBERS]
_ODD_TEXTS = strategies.sampled_from(
    ["", "NaN", "-Infinity", "\0", "../../etc/passwd", "a" * 70_000, "\ud800"]
)
_NAMES = strategies.sampled_from(
    ["instances", "inputs", "signature_name", "text", "x", "k", "b64"]
)
_VALUES = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats()
    | strategies.text(max_size=9)
    | strategies.sampled_from([10**400, -(2**63), 2**63])
    | _ODD_TEXTS,
    lambda inner: (
        strategies.lists(inner, max_size=4)
        | strategies.dictionaries(_NAMES, inner, max_size=3)
    ),
    max_leaves=9,
)
_HEADERS = strategies.sampled_from(
    [
        b"Content-Encoding: gzip",
        b"Content-Encoding: br",
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: identity, chunked",
        b"Content-Length: 0",
        b"Content-Length: -1",
        b"Content-Length: 99999999999999999999",
        b"Expect: 100-continue",
        b"Expect: nothing",
        b"Upgrade: websocket\r\nConnection: Upgrade",
        b"X-Request-Id: \xff\x00",
        b"Host: b",
        b": no name",
        b" folded",
    ]
)
_PATHS = strategies.sampled_from(
    [
        "/v1/models/../../etc/passwd",
        "/v1/models/..%2f..%2fetc%2fpasswd:predict",
        "/v1/models/capitals/versions/99999999999999999999:predict",
        "/v1/models/capitals/versions/-1:predict",
        "/v1/models/capitals/labels/x:predict",
        "/v1/models/capitals:regress",
        "/v1/models/capitals/metadata",
        "/v1/models//:predict",
        "/page/../settings.py",
        "/page/%2e%2e/settings.py",
        "*",
        "http://elsewhere/v1/models/capitals:predict",
    ]
)


def _changed(draw, value):
    """A value of JSON with one part replaced, removed or added."""
    keys = []
    if isinstance(value, dict):
        keys = sorted(value)
    elif isinstance(value, list):
        keys = [*range(len(value))]
    if not keys or draw(strategies.integers(0, 3)) == 0:
        return draw(_VALUES)
    key = draw(strategies.sampled_from(keys))
    action = draw(strategies.sampled_from(["change", "change", "del", "add"]))
    if action == "change":
        value[key] = _changed(draw, value[key])
    elif action == "del":
        del value[key]
    elif isinstance(value, dict):
        value[draw(_NAMES)] = draw(_VALUES)
    else:
        value.append(draw(_VALUES))
    return value


def _cut(draw, data: bytes) -> bytes:
    """Bytes of which some are lost and some are new."""
    start = draw(strategies.integers(0, len(data)))
    end = start + draw(strategies.integers(0, 9))
    return data[:start] + draw(strategies.binary(max_size=9)) + data[end:]


@strategies.composite
def http(draw) -> bytes:
    """A request over HTTP, head and body."""
    name, document = draw(strategies.sampled_from(_BODIES))
    kind = draw(
        strategies.sampled_from(["json", "json", "body", "path", "head", "all"])
    )
    path, headers = f"/v1/models/{name}:predict", []
    document = copy.deepcopy(document)
    if kind == "json":
        document = _changed(draw, document)
    if kind == "path":
        path = draw(_PATHS)
    if kind == "head":
        headers.append(draw(_HEADERS))
    body = json.dumps(document).encode()
    if kind == "body":
        body = _cut(draw, body)
    head = [f"POST {path} HTTP/1.1".encode(), b"Host: localhost", *headers]
    head += [b"Content-Length: %d" % len(body), b"Connection: close"]
    request = b"\r\n".join([*head, b"", body])
    return _cut(draw, request) if kind == "all" else request


@strategies.composite
def grpc(draw) -> bytes:
    """A `PredictRequest` as bytes."""
    request = predict_pb2.PredictRequest()
    name = draw(strategies.sampled_from(["capitals", "numbers"]))
    request.model_spec.name = name
    inputs = {
        "capitals": {"text": ["one", "two"]},
        "numbers": {"x": [[1.0, 2.0, 3.0]], "k": tf.constant([2], tf.int64)},
    }
    for key, value in inputs[name].items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
    kind = draw(
        strategies.sampled_from(["tensor", "tensor", "spec", "names", "bytes"])
    )
    if kind == "tensor":
        _change_tensor(draw, request.inputs[min(inputs[name])])
    if kind == "spec":
        text = draw(strategies.text(max_size=9) | strategies.just("x" * 9999))
        field = draw(strategies.sampled_from(["name", "signature_name"]))
        setattr(request.model_spec, field, text)
        request.model_spec.version.value = draw(strategies.integers(-9, 9))
    if kind == "names":
        request.output_filter.append(draw(strategies.text(max_size=9)))
        request.inputs[draw(_NAMES)].dtype = draw(strategies.integers(0, 30))
    data = request.SerializeToString()
    return _cut(draw, data) if kind == "bytes" else data


def _change_tensor(draw, proto):
    kind = draw(strategies.sampled_from(["dtype", "shape", "values", "bytes"]))
    if kind == "dtype":
        proto.dtype = draw(strategies.integers(0, 130))
    elif kind == "shape":
        sizes = strategies.integers(-2, 4) | strategies.integers(
            -(2**63), 2**63 - 1
        )
        del proto.tensor_shape.dim[:]
        for size in draw(strategies.lists(sizes, max_size=40)):
            proto.tensor_shape.dim.add(size=size)
        proto.tensor_shape.unknown_rank = draw(strategies.booleans())
    elif kind == "values":
        proto.float_val.extend(
            draw(strategies.lists(strategies.floats(width=32)))
        )
        proto.string_val.append(draw(strategies.binary(max_size=9)))
    else:
        proto.tensor_content = draw(strategies.binary(max_size=40))
