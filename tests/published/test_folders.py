"""What a published folder may lack, and what the errors say."""

import json

import numpy as np
import pytest

from keras_attention import models, published

IDS = np.array([[30, 7, 11, 13, 3]])


@pytest.fixture
def folder(write_gpt2, tensors):
    return write_gpt2(tensors)


def test_the_file_itself_may_be_named(folder):
    expected = models.from_pretrained(folder)(IDS)
    ours = models.from_pretrained(str(folder / "model.safetensors"))(IDS)
    np.testing.assert_array_equal(ours, expected)
    assert published.is_published(folder)
    assert published.is_published(folder / "model.safetensors")
    assert not published.is_published(folder / "another")


def test_masks_and_a_copy_of_the_embedding_are_no_weights(
    folder, tensors, write_gpt2
):
    """Older files hold them."""
    expected = models.from_pretrained(folder)(IDS)
    tensors["h.0.attn.bias"] = np.ones((1, 1, 13, 13), "float32")
    tensors["lm_head.weight"] = tensors["wte.weight"].copy()
    write_gpt2(tensors)
    np.testing.assert_array_equal(models.from_pretrained(folder)(IDS), expected)
    tensors["lm_head.weight"] = tensors["lm_head.weight"] + 1
    write_gpt2(tensors)
    with pytest.raises(
        ValueError, match="lm_head.weight and wte.weight of .*eq"
    ):
        models.from_pretrained(folder)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_read(folder, tensors, dtype, write_gpt2):
    dtype = np.dtype(dtype) if dtype == "float16" else bfloat16()
    halves = {name: one.astype(dtype) for name, one in tensors.items()}
    expected = models.from_pretrained(
        write_gpt2({n: o.astype("float32") for n, o in halves.items()})
    )(IDS)
    ours = models.from_pretrained(write_gpt2(halves))
    assert {weight.dtype for weight in ours.trainable_weights} == {"float32"}
    np.testing.assert_array_equal(ours(IDS), expected)


def bfloat16():
    return pytest.importorskip("ml_dtypes").bfloat16


def test_files_in_parts_are_read(folder, tensors):
    numpy_files = pytest.importorskip("safetensors.numpy")
    expected = models.from_pretrained(folder)(IDS)
    (folder / "model.safetensors").unlink()
    places = {}
    for number, names in enumerate((list(tensors)[:5], list(tensors)[5:])):
        part = f"model-0000{number}-of-00002.safetensors"
        numpy_files.save_file({n: tensors[n] for n in names}, folder / part)
        places |= dict.fromkeys(names, part)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    np.testing.assert_array_equal(models.from_pretrained(folder)(IDS), expected)


def test_all_that_does_not_fit_is_named_with_its_shape(
    folder, tensors, write_gpt2
):
    del tensors["h.0.ln_1.bias"]
    tensors["h.1.ln_1.bias"] = np.zeros(14, "float32")
    tensors["h.0.mlp.c_fc.bias"] = np.zeros(55, "float32")
    write_gpt2(tensors)
    with pytest.raises(ValueError) as raised:
        models.from_pretrained(folder)
    message = str(raised.value)
    assert f"{folder / 'model.safetensors'} does not fit" in message
    missing = "h.0.ln_1.bias (our layer_0/self_attention_residual/norm/beta"
    assert f"Missing: transformer.{missing} [14])." in message
    assert "Left over: h.1.ln_1.bias [14]." in message
    other = "h.0.mlp.c_fc.bias gives [55] (our layer_0/feed_forward/expand/bias"
    assert f"Of another shape: {other} [56])." in message


def test_more_layers_than_the_configuration_says(folder, tensors, write_gpt2):
    """The message names four tensors and counts the others."""
    second = {
        name.replace("h.0", "h.1"): one
        for name, one in tensors.items()
        if name.startswith("h.0")
    }
    write_gpt2(tensors | second)
    with pytest.raises(ValueError, match=r"Left over: .* and 8 more\."):
        models.from_pretrained(folder)


@pytest.mark.parametrize(
    "choices, message",
    [
        ({"model_type": "bert"}, "'bert'. Families .*: gpt2, marian, mt5, t5"),
        ({"model_type": None}, "family None"),
        ({"activation_function": "mish"}, "activation 'mish'. Those that"),
    ],
)
def test_other_models_are_refused(
    folder, tensors, choices, message, write_gpt2
):
    write_gpt2(tensors, **choices)
    with pytest.raises(ValueError, match=message):
        models.from_pretrained(folder)


def test_a_choice_that_is_not_there_is_named(folder):
    config = json.loads((folder / "config.json").read_text())
    del config["n_layer"]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="config.json does not say n_layer"):
        models.from_pretrained(folder)


def test_what_is_no_folder_is_refused(tmp_path, tensors, write_gpt2):
    with pytest.raises(ValueError, match="no folder gpt2. Nothing is downl"):
        models.from_pretrained("gpt2")
    with pytest.raises(ValueError, match="has no config.json. Give a folder"):
        models.from_pretrained(tmp_path)
    folder = write_gpt2(tensors)
    (folder / "model.safetensors").write_bytes(b"no")
    with pytest.raises(ValueError, match="model.safetensors cannot be read"):
        models.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").touch()
    with pytest.raises(ValueError, match="pytorch_model.bin is of an older"):
        models.from_pretrained(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(ValueError, match="config.json cannot be read"):
        models.from_pretrained(folder)
