"""Kinds: what exports carry, and how older ones are told."""

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
