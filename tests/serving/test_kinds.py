"""Kinds: what exports carry, how older ones are told, and what is padded."""

import numpy as np
import pytest
import tensorflow as tf

from keras_attention.serving import kinds, loading, savedmodel


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"name": 1}', '{"signatures": {"x": {}}}']
)
def test_a_damaged_declaration(text):
    with pytest.raises(ValueError, match="export the model again"):
        kinds.from_json(text)


def test_the_declaration_of_another_model_is_refused(tmp_path):
    path = tmp_path / kinds.ASSET
    path.parent.mkdir()
    path.write_text(kinds.to_json(kinds.CLASSIFICATION))
    shapes = {"serving_default": (["text"], {"label": (None,)})}
    with pytest.raises(ValueError, match="describes another model"):
        kinds.of(tmp_path, shapes)


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: kind.name)
def test_a_model_without_a_declaration_is_told_by_its_signatures(
    kind, tmp_path
):
    """As an older version of the package exported it."""
    shapes = {
        name: (
            list(signature.inputs),
            {
                key: (None, *[4] * len(axes))
                for key, axes in signature.outputs.items()
                if key != "labels"
            },
        )
        for name, signature in kind.signatures.items()
    }
    found = kinds.of(tmp_path, shapes)
    assert found.name == kind.name and found.inputs == kind.inputs
    assert "labels" not in found.signatures["serving_default"].outputs
    assert found.num_beams == (4 if "n_best" in kind.signatures else 1)
    for name, signature in found.signatures.items():
        assert signature.padded == kind.signatures[name].padded
    del shapes["num_tokens"]
    assert "num_tokens" not in kinds.of(tmp_path, shapes).signatures


def test_a_model_of_another_package_is_no_kind(tmp_path):
    module = tf.Module()
    module.f = tf.function(
        lambda x: {"y": x}, input_signature=[tf.TensorSpec([None], name="x")]
    )
    tf.saved_model.save(module, str(tmp_path / "1"), module.f)
    (tmp_path / savedmodel.MANIFEST).write_text("")
    with pytest.raises(ValueError, match="no MANIFEST.sha256 with the files"):
        loading.load(tmp_path)


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
    cut = kinds.cut(outputs, SHOWN.padded)
    assert cut["source_tokens"].tolist() == source[:, :3].tolist()
    assert cut["target_tokens"].tolist() == target[:, :2].tolist()
    np.testing.assert_array_equal(cut["attention"], attention[:, :2, :3])
    first = kinds.cut({n: a[:1] for n, a in outputs.items()}, SHOWN.padded)
    # A blank text has no target.
    assert first["attention"].shape == (1, 0, 1)


def test_an_axis_that_no_output_names_is_left_alone():
    kind = kinds.with_attention_axes(kinds.CLASSIFICATION, 5)
    assert kind.signatures["with_attention"].padded == {
        "source_tokens": {1: "source_tokens"},
        "attention": {3: "source_tokens", 4: "source_tokens"},
    }
    assert kind.signatures[kinds.DEFAULT].padded == {}
