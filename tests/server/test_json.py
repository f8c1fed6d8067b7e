"""JSON to arrays and back, beside what TensorFlow Serving documents."""

import json
import time

import numpy as np
import pytest
import tensorflow as tf

from keras_attention.server import (
    errors,
    json_inputs,
    json_outputs,
    signatures,
)

SPECS = {
    "text": signatures.Spec(tf.string, (None,)),
    "x": signatures.Spec(tf.float32, (None, 3)),
}


def arrays(document, **specs):
    parsed = json_inputs.parse(json.dumps(document).encode())
    return json_inputs.to_arrays(parsed, specs or SPECS)


def refusal(document, **specs):
    with pytest.raises(errors.RequestError) as refused:
        arrays(document, **specs)
    assert refused.value.http_status == 400
    return refused.value.message


@pytest.mark.parametrize(
    "document",
    [
        {"instances": [{"text": "a", "x": [1, 2, 3]}] * 2},
        {"inputs": {"text": ["a", "a"], "x": [[1, 2, 3], [1.0, 2, 3]]}},
        {"inputs": {"text": [{"b64": "YQ=="}] * 2, "x": [[1, 2, 3]] * 2}},
    ],
)
def test_rows_columns_and_base64_are_the_same_arrays(document):
    found = arrays(document)
    assert found["text"].tolist() == [b"a", b"a"]
    assert found["x"].dtype == np.float32
    np.testing.assert_array_equal(found["x"], [[1, 2, 3]] * 2)


@pytest.mark.parametrize("key", ["instances", "inputs"])
def test_an_only_input_needs_no_name(key):
    found = arrays({key: ["a", {"b64": "/w"}, "\ud800"]}, text=SPECS["text"])
    assert found["text"].tolist() == [b"a", b"\xff", b"?"]


@pytest.mark.parametrize(
    "document, message",
    [
        ({}, "'inputs' or 'instances'"),
        ({"instances": [], "inputs": []}, "'inputs' or 'instances' keys"),
        ([], "JSON object"),
        ({"instances": ["a"], "signature_name": 3}, "must be a string"),
        ({"instances": []}, "No values"),
        ({"instances": "a"}, "list/array"),
        ({"instances": ["a"]}, "expecting list of objects"),
        ({"inputs": ["a"]}, "expecting an object"),
        ({"instances": [{"text": "a"}]}, "keys must be equal to: text,x"),
        ({"instances": [{"text": "a", "x": [1, 2, 3]}, "a"]}, "item 1"),
        ({"inputs": {"text": ["a"]}}, "Missing named input: x"),
    ],
)
def test_what_is_no_request_is_refused(document, message):
    assert message in refusal(document)


@pytest.mark.parametrize(
    "dtype, values",
    [
        (tf.string, [1]),
        (tf.string, [None]),
        (tf.string, [{"b64": "!"}]),
        (tf.string, [["a"], "b"]),
        (tf.string, [["a"], ["b", "c"]]),
        (tf.float32, ["a"]),
        (tf.float32, [True]),
        (tf.float32, [10**400]),
        (tf.int32, [1.0]),
        (tf.int32, [2**31]),
        (tf.uint8, [-1]),
        (tf.bool, [1]),
    ],
)
def test_values_of_another_type_or_shape_are_refused(dtype, values):
    spec = signatures.Spec(dtype, None)
    assert refusal({"inputs": values}, v=spec)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b"[" * 100_000, b"1" * 5000]
)
def test_what_is_no_json_is_refused_without_its_text(body):
    with pytest.raises(errors.RequestError, match="JSON"):
        json_inputs.parse(body)


def test_lists_are_not_nested_without_end():
    values = 0.0
    for _ in range(100):
        values = [values]
    spec = signatures.Spec(tf.float32, None)
    assert "in each other" in refusal({"inputs": values}, x=spec)


def test_numbers_that_are_not_finite_go_both_ways():
    words = ["NaN", "Infinity", "-Infinity"]
    spec = signatures.Spec(tf.float32, (None,))
    body = b'{"inputs": [NaN, Infinity, -Infinity]}'
    bare = json_inputs.to_arrays(json_inputs.parse(body), {"x": spec})
    np.testing.assert_array_equal(bare["x"], [np.nan, np.inf, -np.inf])
    found = arrays({"inputs": words}, x=spec)
    np.testing.assert_array_equal(found["x"], bare["x"])
    assert json_outputs.dump(json_outputs.from_arrays(found, False)) == (
        b'{"outputs": [NaN, Infinity, -Infinity]}'
    )


def test_answers_have_the_shape_of_their_request():
    one = {"y": np.array([[1, 2], [3, 4]], np.int32)}
    two = one | {"t": np.array([b"a", b"\xff"], object)}
    assert json_outputs.from_arrays(one, True) == {
        "predictions": [[1, 2], [3, 4]]
    }
    assert json_outputs.from_arrays(one, False) == {"outputs": [[1, 2], [3, 4]]}
    assert json_outputs.from_arrays(two, True) == {
        "predictions": [
            {"y": [1, 2], "t": "a"},
            {"y": [3, 4], "t": "\ufffd"},
        ]
    }
    assert json_outputs.from_arrays(two, False) == {
        "outputs": {"y": [[1, 2], [3, 4]], "t": ["a", "\ufffd"]}
    }


def test_bytes_and_floats_are_written_as_tensorflow_serving_does():
    outputs = {
        "a_bytes": np.array([b"\xff"], object),
        "x": np.array([0.1], np.float32),
        "z": np.array([True]),
    }
    answer = json_outputs.from_arrays(outputs, True)
    assert json_outputs.dump(answer) == (
        b'{"predictions": [{"a_bytes": {"b64": "/w=="}, "x": 0.1, "z": true}]}'
    )


def test_rows_need_outputs_with_rows():
    outputs = {"y": np.array([1.0]), "s": np.array(2.0)}
    with pytest.raises(errors.RequestError, match="no shape information"):
        json_outputs.from_arrays(outputs, True)
    assert json_outputs.from_arrays(outputs, False) == {
        "outputs": {"y": [1.0], "s": 2.0}
    }


def test_many_integers_are_converted_quickly():
    values = [[0] * 100_000]
    spec = signatures.Spec(tf.int32, (None, None))
    start = time.monotonic()
    json_inputs.to_arrays({"inputs": values}, {"x": spec})
    # With the type's bounds looked up for each, more than that.
    assert time.monotonic() - start < 1


def test_rows_and_shape_are_looked_at_before_values():
    text = signatures.Spec(tf.int32, (None, 3), is_exact=True)
    for values, message in (([[0] * 4], "of shape"), ([[0] * 3] * 9, "most 8")):
        values[-1] = ["no number", *values[-1][1:]]
        with pytest.raises(errors.RequestError, match=message):
            json_inputs.to_arrays({"inputs": values}, {"x": text}, (), 8)


def test_a_float_takes_any_number():
    spec = signatures.Spec(tf.float32, (None,))
    found = arrays({"inputs": [2**24 + 1, 1.8e308, -1e39, 1e-50]}, x=spec)
    assert found["x"].tolist() == [2.0**24, np.inf, -np.inf, 0.0]
    assert "precision" in refusal({"inputs": [10**400]}, x=spec)


def test_base64_may_have_line_breaks():
    found = arrays({"inputs": [{"b64": "YW\nJj\r\n"}]}, text=SPECS["text"])
    assert found["text"].tolist() == [b"abc"]


def test_an_answer_has_a_limit(monkeypatch):
    monkeypatch.setattr(json_outputs, "_MOST_VALUES", 5)
    with pytest.raises(errors.RequestError, match="would have 6 values"):
        json_outputs.from_arrays({"y": np.zeros(6)}, True)
    found = json_outputs.from_arrays({"y": np.zeros(2)}, True)
    assert found == {"predictions": [0.0, 0.0]}


def test_a_message_is_one_that_grpc_can_send():
    message = errors.invalid("ä" * 5000).message
    assert len(message.encode()) <= 1003 and message.endswith("ä...")
