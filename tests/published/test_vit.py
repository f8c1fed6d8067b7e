"""ViT's weights give our model of pictures the logits of transformers."""

import pytest

from keras_attention import models

SIZES = {
    "image_size": 8,
    "patch_size": 2,
    "num_channels": 3,
    "hidden_size": 14,
    "num_hidden_layers": 2,
    "num_attention_heads": 7,
    "intermediate_size": 11,
    "num_labels": 5,
}


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_new"])
def test_logits_are_equal(reference, torch, equal, rng, hidden_act):
    theirs, folder = reference(
        "ViTForImageClassification",
        "ViTConfig",
        **SIZES,
        hidden_act=hidden_act,
    )
    ours = models.from_pretrained(folder)
    assert type(ours) is models.VisionTransformer
    pictures = rng.normal(size=(3, 8, 8, 3)).astype("float32")
    channels_first = torch.tensor(pictures.transpose(0, 3, 1, 2))
    equal(ours(pictures), theirs(channels_first).logits)


def test_a_body_without_a_head_is_refused(reference):
    _, folder = reference("ViTModel", "ViTConfig", **SIZES)
    with pytest.raises(
        ValueError, match=r"Missing: \S*classifier.weight \(our"
    ):
        models.from_pretrained(folder)
