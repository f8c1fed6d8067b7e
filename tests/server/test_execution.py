"""Requests in one call: each answer is that of the request alone."""

import numpy as np
import pytest

from keras_attention.server import errors, execution, versions


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
    together = execution.answers(version, signature, REQUESTS)
    for request, answer in zip(REQUESTS, together, strict=True):
        (alone,) = execution.answers(version, signature, [request])
        assert answer.keys() == alone.keys()
        for output, array in alone.items():
            np.testing.assert_array_equal(answer[output], array)


def test_padding_is_that_of_the_request(version):
    signature = version.signatures["with_attention"]
    first, second, *_ = execution.answers(version, signature, REQUESTS)
    assert first["source_tokens"].tolist() == [[b"one", b"</s>"]]
    assert first["attention"].shape == (1, 2, 2)
    assert second["attention"].shape == (2, 4, 4)


def test_a_bad_row_fails_alone(version):
    signature = version.signatures["serving_default"]
    good, bad, last = execution.answers(
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
    good, long = execution.answers(
        version, signature, [texts("a"), texts("b", "1 2 3 4 5")]
    )
    assert good["translation"].tolist() == [b"A"]
    assert long.code == errors.Code.INVALID_ARGUMENT
    for part in ("at most 5 tokens", "6 tokens in line 2"):
        assert part in long.message


def test_a_long_reference_is_refused_by_its_line(version):
    signature = version.signatures["score"]
    pair = texts("a", "b")
    good = pair | {"reference": texts("x", "1 2 3 4")["text"]}
    bad = pair | {"reference": texts("x", "1 2 3 4 5")["text"]}
    answer, refused = execution.answers(version, signature, [good, bad])
    assert answer["num_tokens"].tolist() == [2, 5]
    assert "more than 5 tokens in line 2" in refused.message


def test_tokens_are_counted_whatever_they_are(version):
    signature = version.signatures["num_tokens"]
    (answer,) = execution.answers(version, signature, [texts("1 2 3 4 5 6")])
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
    (answer,) = execution.answers(numbers, signature, [request])
    assert answer["y"] == 2.0


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({}, r"none for \['k', 'x'\]"),
        ({"x": np.zeros((1, 3)), "z": np.zeros(1)}, "alias not found.*: z"),
        ({"x": np.zeros((1, 4)), "k": np.zeros(1)}, r"\[-1,3\].*\[1,4\]"),
        ({"x": np.zeros((1, 3)), "k": np.zeros(2)}, "same number of rows"),
        ({"x": np.zeros((9, 3)), "k": np.zeros(9)}, "at most 8 rows"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(model_folders, arrays, message):
    numbers = versions.load(model_folders["numbers"] / "7", 7)
    with pytest.raises(errors.RequestError, match=message):
        numbers.signatures["serving_default"].check(arrays, 8)
