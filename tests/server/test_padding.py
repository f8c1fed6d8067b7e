"""Outputs of a batch cut to those of one request."""

import numpy as np
import pytest

from keras_attention.server import padding


@pytest.mark.parametrize(
    "ranks, expected",
    [
        (
            {"source_tokens": 2, "target_tokens": 2, "attention": 3},
            {"attention": {1: "target_tokens", 2: "source_tokens"}},
        ),
        (
            {
                "source_tokens": 2,
                "pair_tokens": 2,
                "attention": 3,
                "attention_pair": 3,
            },
            {
                "attention": {1: "source_tokens", 2: "pair_tokens"},
                "attention_pair": {1: "pair_tokens", 2: "source_tokens"},
            },
        ),
        (
            {"source_tokens": 2, "attention": 3},
            {"attention": {2: "source_tokens"}},
        ),
        (
            {"source_tokens": 2, "attention": 5},
            {"attention": {3: "source_tokens", 4: "source_tokens"}},
        ),
        ({"attention": 3}, {}),
    ],
)
def test_axes_of_tokens(ranks, expected):
    tokens = {name: {1: name} for name in ranks if name.endswith("_tokens")}
    assert padding.axes(ranks) == tokens | expected


def test_cut_keeps_the_tokens_of_the_longest_row():
    source = np.array([[b"a", b"", b"", b""], [b"a", b"b", b"c", b""]], object)
    target = np.array([[b"", b"", b""], [b"x", b"y", b""]], object)
    attention = np.arange(24.0).reshape(2, 3, 4)
    outputs = {
        "source_tokens": source,
        "target_tokens": target,
        "attention": attention,
        "score": np.zeros(2),
    }
    padded = padding.axes({n: a.ndim for n, a in outputs.items()})
    cut = padding.cut(outputs, padded)
    assert cut["source_tokens"].tolist() == source[:, :3].tolist()
    assert cut["target_tokens"].tolist() == target[:, :2].tolist()
    np.testing.assert_array_equal(cut["attention"], attention[:, :2, :3])
    first = padding.cut({n: a[:1] for n, a in outputs.items()}, padded)
    # A blank text has no target.
    assert first["attention"].shape == (1, 0, 1)
