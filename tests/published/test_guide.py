"""The programs of the guide run, on random models of its names."""

import json
import pathlib
import re

import pytest

GUIDE = pathlib.Path(__file__).parents[2] / "docs/guides/published_weights.md"
MARIAN = {
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "scale_embedding": True,
    "activation_function": "swish",
    "eos_token_id": 0,
}


@pytest.fixture
def folders(marian, t5, gpt2, reference, tmp_path):
    """The guide's folders, with vocabularies and random weights."""

    def add(name, vocabulary, model, config, **arguments):
        _, weights = reference(model, config, **arguments)
        folder = tmp_path / "guide" / name
        folder.mkdir(parents=True)
        for source in (vocabulary, weights):
            for path in source.iterdir() if source else ():
                (folder / path.name).write_bytes(path.read_bytes())

    def size(folder):
        return len(json.loads((folder / "vocab.json").read_text("utf-8")))

    pad = size(marian) - 1
    add(
        "opus-mt-en-de",
        marian,
        "MarianMTModel",
        "MarianConfig",
        vocab_size=pad + 1,
        pad_token_id=pad,
        decoder_start_token_id=pad,
        **MARIAN,
    )
    add(
        "gpt2",
        gpt2,
        "GPT2LMHeadModel",
        "GPT2Config",
        vocab_size=size(gpt2),
        n_embd=16,
        n_layer=1,
        n_head=2,
        bos_token_id=size(gpt2) - 1,
        eos_token_id=size(gpt2) - 1,
    )
    add(
        "t5-small",
        t5,
        "T5ForConditionalGeneration",
        "T5Config",
        vocab_size=200,
        d_model=16,
        d_kv=4,
        d_ff=16,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
    )
    add(
        "vit-base-patch16-224",
        None,
        "ViTForImageClassification",
        "ViTConfig",
        image_size=8,
        patch_size=4,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=3,
    )
    return tmp_path / "guide"


@pytest.mark.slow
@pytest.mark.usefixtures("without_garbage_search")
@pytest.mark.filterwarnings("ignore:.*a `quantize` method")
def test_the_programs_run(folders, monkeypatch, capsys):
    monkeypatch.chdir(folders)
    names = {}
    programs = re.findall(
        r"^```python\n(.*?)^```", GUIDE.read_text(), re.M | re.S
    )
    for program in programs:
        exec(program, names)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(programs) == 5
    assert printed[3].startswith("['LABEL_") and "(2, 1, 2, 5, 5)" in printed[3]
