"""Padding: declared axes are cut to the longest row, and no other is."""

import numpy as np

from keras_attention.serving import kinds, padding

SHOWN = kinds.TRANSLATION.signatures["with_attention"]


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
    cut = padding.cut(outputs, SHOWN.padded)
    assert cut["source_tokens"].tolist() == source[:, :3].tolist()
    assert cut["target_tokens"].tolist() == target[:, :2].tolist()
    np.testing.assert_array_equal(cut["attention"], attention[:, :2, :3])
    first = padding.cut({n: a[:1] for n, a in outputs.items()}, SHOWN.padded)
    # A blank text has no target.
    assert first["attention"].shape == (1, 0, 1)


def test_an_axis_that_no_output_names_is_left_alone():
    kind = kinds.with_attention_axes(kinds.CLASSIFICATION, 5)
    assert kind.signatures["with_attention"].padded == {
        "source_tokens": {1: "source_tokens"},
        "attention": {3: "source_tokens", 4: "source_tokens"},
    }
    assert kind.signatures[kinds.DEFAULT].padded == {}
