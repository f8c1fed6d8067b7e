"""Requests in one call: each answer is that of the request alone."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from keras_attention.server import errors, execution, json_inputs, versions


@pytest.fixture(scope="module")
def version(model_folders):
    return versions.load(model_folders["shout"] / "1", 1)


def texts(*values):
    return {"text": np.array([v.encode() for v in values], object)}


REQUESTS = [
    texts("one"),
    texts("a b c", ""),
    texts(),
    texts("zwölf", "two  words"),
]


@pytest.mark.parametrize(
    "name", ["serving_default", "with_attention", "n_best"]
)
def test_an_answer_does_not_depend_on_other_texts(version, name):
    signature = version.signatures[name]
    assert signature.is_batched
    together = execution.split_on_failure(version, signature, REQUESTS)
    for request, answer in zip(REQUESTS, together, strict=True):
        (alone,) = execution.split_on_failure(version, signature, [request])
        assert answer.keys() == alone.keys()
        for output, array in alone.items():
            np.testing.assert_array_equal(answer[output], array)


def test_padding_is_that_of_the_request(version):
    signature = version.signatures["with_attention"]
    first, second, *_ = execution.split_on_failure(version, signature, REQUESTS)
    assert first["source_tokens"].tolist() == [[b"one", b"</s>"]]
    assert first["attention"].shape == (1, 2, 2)
    assert second["attention"].shape == (2, 4, 4)


def test_a_bad_row_fails_alone(version):
    signature = version.signatures["serving_default"]
    good, bad, last = execution.split_on_failure(
        version, signature, [texts("a"), texts("b", "fail"), texts("c")]
    )
    assert good["translation"].tolist() == [b"A"]
    assert last["translation"].tolist() == [b"C"]
    assert bad.code == errors.Code.INVALID_ARGUMENT
    assert "I cannot" in bad.message
    # Nothing of the graph, whose other lines name its nodes.
    assert "\n" not in bad.message


def test_a_long_text_is_refused_by_its_line(version):
    signature = version.signatures["serving_default"]
    good, long = execution.split_on_failure(
        version, signature, [texts("a"), texts("b", "1 2 3 4 5")]
    )
    assert good["translation"].tolist() == [b"A"]
    assert long.code == errors.Code.INVALID_ARGUMENT
    assert long.message == (
        "The text in row 2 has 6 tokens, and the model takes at most 5. Split "
        "it into sentences."
    )


def test_a_long_reference_is_refused_by_its_line(version):
    signature = version.signatures["score"]
    pair = texts("a", "b")
    good = pair | {"reference": texts("x", "1 2 3 4")["text"]}
    bad = pair | {"reference": texts("x", "1 2 3 4 5")["text"]}
    answer, refused = execution.split_on_failure(
        version, signature, [good, bad]
    )
    assert answer["num_tokens"].tolist() == [2, 5]
    assert "The reference in row 2 is longer" in refused.message


def test_tokens_are_counted_whatever_they_are(version):
    signature = version.signatures["num_tokens"]
    (answer,) = execution.split_on_failure(
        version, signature, [texts("1 2 3 4 5 6")]
    )
    assert answer["num_tokens"].tolist() == [7]


def test_what_may_depend_on_other_rows_is_not_batched(model_folders):
    numbers = versions.load(model_folders["numbers"] / "7", 7)
    assert not numbers.has_manifest
    is_batched = {n: s.is_batched for n, s in numbers.signatures.items()}
    assert is_batched == {
        "serving_default": True,
        "padded": False,
        "scalar": False,
    }
    request = {"x": np.array(1.0, np.float32)}
    signature = numbers.signatures["scalar"]
    assert signature.check(request, 1) == 1
    (answer,) = execution.split_on_failure(numbers, signature, [request])
    assert answer["y"] == 2.0


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({}, "Missing but required: {k,x}"),
        ({"x": np.zeros((1, 3)), "z": np.zeros(1)}, "Sent extra: {z}"),
        ({"x": np.zeros((9, 3)), "k": np.zeros(9)}, "at most 8 are taken"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(model_folders, arrays, message):
    numbers = versions.load(model_folders["numbers"] / "7", 7)
    with pytest.raises(errors.RequestError, match=message):
        numbers.signatures["serving_default"].check(arrays, 8)


@pytest.mark.parametrize("values", [[["a"]], "a"])
def test_a_model_of_this_package_takes_no_other_shape(version, values):
    signature = version.signatures["serving_default"]
    with pytest.raises(errors.RequestError, match=r"of shape \[-1\]"):
        signature.check({"text": np.array(values, object)})


def test_another_shape_is_answered_alone(model_folders):
    """TensorFlow broadcasts. A batch with others would mix them up."""
    numbers = versions.load(model_folders["numbers"] / "7", 7)
    signature = numbers.signatures["serving_default"]
    x = np.ones(4, np.float32)
    arrays = {"x": x, "k": np.array([2, 3])}
    assert signature.check(arrays, 8) == 4
    assert not signature.can_merge(arrays)
    (answer,) = execution.split_on_failure(numbers, signature, [arrays])
    assert answer["y"].tolist() == [[2] * 4, [3] * 4]
    assert answer["raw_bytes"].tolist() == [b"2", b"3"]


class Uneven(tf.Module):
    """Outputs whose rows are not those of the input."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def twice(self, x):
        return {"a": x, "b": tf.concat([x, x], 0)}

    @tf.function(input_signature=[tf.TensorSpec(None, tf.string, name="s")])
    def same(self, s):
        return {"s": tf.identity(s)}


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    model = Uneven()
    path = tmp_path_factory.mktemp("uneven") / "1"
    signatures = {"twice": model.twice, "same": model.same}
    tf.saved_model.save(model, str(path), signatures=signatures)
    return versions.load(path, 1)


def test_outputs_with_other_rows_are_each_requests_own(uneven):
    signature = uneven.signatures["twice"]
    requests = [{"x": np.array(x, np.float32)} for x in ([1, 2], [3])]
    one, two = execution.split_on_failure(uneven, signature, requests)
    assert one["b"].tolist() == [1, 2, 1, 2] and two["b"].tolist() == [3, 3]


def test_a_string_without_axes_is_an_array(uneven):
    request = {"s": np.array(b"hello", object)}
    signature = uneven.signatures["same"]
    (answer,) = execution.split_on_failure(uneven, signature, [request])
    assert answer["s"].shape == () and answer["s"].item() == b"hello"


class Spy:
    """A version whose calls are counted."""

    def __init__(self, version):
        self._version = version
        self.counted = []

    def may_be_too_long(self, signature, requests):
        return True

    def has_text_limit(self, signature):
        return self._version.has_text_limit(signature)

    def count_tokens(self, arrays):
        self.counted.append(len(arrays["text"]))
        if b"poison" in arrays["text"]:
            raise ValueError(f"cannot count {arrays['text']}")
        return self._version.count_tokens(arrays)


def test_tokens_that_cannot_be_counted_fail_alone(version):
    spy = Spy(version)
    names = [*"abcdefg", "poison"]
    signature = version.signatures["serving_default"]
    requests = [texts(name) for name in names]
    *good, bad = execution.split_on_failure(spy, signature, requests)
    assert [one["translation"].item() for one in good] == [
        *map(str.encode, "ABCDEFG")
    ]
    assert bad.code == errors.Code.INTERNAL
    assert "cannot count" not in bad.message
    # In halves, and not one by one.
    assert spy.counted == [8, 4, 4, 2, 2, 1, 1]


def test_nobody_tries_again_for_a_client_that_is_gone(version):
    spy = Spy(version)
    signature = version.signatures["serving_default"]
    requests = [texts("a"), texts("poison"), texts("b")]
    gone, _, kept = execution.split_on_failure(
        spy, signature, requests, lambda place: place == 0
    )
    assert gone is None and kept["translation"].tolist() == [b"B"]


def test_a_text_has_a_limit_in_bytes(version):
    signature = version.signatures["serving_default"]
    assert signature.check(texts("a" * 9), 1, 9) == 1
    with pytest.raises(errors.RequestError, match="10 bytes, and at most 9"):
        signature.check(texts("a" * 10), 1, 9)


class Scaled(tf.Module):
    """A signature with a default, and one without inputs."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.float32, name="x"),
            tf.TensorSpec([], tf.float32, name="k"),
        ]
    )
    def scale(self, x, k):
        return {"y": x * k}

    @tf.function(input_signature=[])
    def nothing(self):
        return {"y": tf.constant([2.0])}


def test_defaults_may_be_left_out_and_inputs_be_none(tmp_path):
    model, path = Scaled(), tmp_path / "1"
    tf.saved_model.save(
        model,
        str(path),
        signatures={"serving_default": model.scale, "nothing": model.nothing},
    )
    file = path / "saved_model.pb"
    proto = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    definition = proto.meta_graphs[0].signature_def["serving_default"]
    definition.defaults["k"].CopyFrom(tf.make_tensor_proto(3.0))
    file.write_bytes(proto.SerializeToString())
    version = versions.load(path, 1)
    signature = version.signatures["serving_default"]
    request = {"x": np.array([1, 2], np.float32)}
    assert signature.check(request) == 2
    (answer,) = execution.split_on_failure(version, signature, [request])
    assert answer["y"].tolist() == [3, 6]
    document = {"instances": [1.0, 2.0]}
    arrays = json_inputs.to_arrays(document, signature.inputs, {"k"})
    assert arrays["x"].tolist() == [1, 2] and len(arrays) == 1
    nothing = version.signatures["nothing"]
    assert nothing.check({}) == 1
    (answer,) = execution.split_on_failure(version, nothing, [{}])
    assert answer["y"].tolist() == [2]
