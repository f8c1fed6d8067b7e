"""Folders of random weights, as the package transformers saves them."""

import json
import os
import sys

import numpy as np
import pytest
import sentencepiece

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
# PyTorch brings it along to compile, which nothing here does. On some machines
# its import ends a process in which TensorFlow is loaded.
sys.modules.setdefault("triton", None)


WORDS = "a the dog cat saw was it because curious two spaces and or 2 1".split()
GPT2 = {
    "model_type": "gpt2",
    "vocab_size": 31,
    "n_positions": 13,
    "n_embd": 14,
    "n_layer": 1,
    "n_head": 7,
    "bos_token_id": 30,
    "eos_token_id": 30,
}
GPT2_SHAPES = {
    "wte.weight": (31, 14),
    "wpe.weight": (13, 14),
    "h.0.ln_1.weight": (14,),
    "h.0.ln_1.bias": (14,),
    "h.0.attn.c_attn.weight": (14, 42),
    "h.0.attn.c_attn.bias": (42,),
    "h.0.attn.c_proj.weight": (14, 14),
    "h.0.attn.c_proj.bias": (14,),
    "h.0.ln_2.weight": (14,),
    "h.0.ln_2.bias": (14,),
    "h.0.mlp.c_fc.weight": (14, 56),
    "h.0.mlp.c_fc.bias": (56,),
    "h.0.mlp.c_proj.weight": (56, 14),
    "h.0.mlp.c_proj.bias": (14,),
    "ln_f.weight": (14,),
    "ln_f.bias": (14,),
}


@pytest.fixture
def tensors(rng):
    """GPT-2's, with names as on the hub."""
    return {
        name: rng.normal(size=shape).astype("float32")
        for name, shape in GPT2_SHAPES.items()
    }


@pytest.fixture
def write_gpt2(tmp_path):
    """A function of tensors and other choices: the folder with them."""
    numpy_files = pytest.importorskip(
        "safetensors.numpy", reason="It writes the folders of these tests."
    )

    def write(tensors, **choices):
        (tmp_path / "config.json").write_text(json.dumps(GPT2 | choices))
        numpy_files.save_file(tensors, tmp_path / "model.safetensors")
        return tmp_path

    return write


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A function: a random model of transformers, and its saved folder."""
    transformers = pytest.importorskip(
        "transformers", reason="The reference is the package transformers."
    )
    torch = pytest.importorskip(
        "torch", reason="The reference needs PyTorch, for a CPU."
    )
    pytest.importorskip("safetensors", reason="It reads the weights.")
    transformers.utils.logging.disable_progress_bar()

    def save(model_name, config_name, scale=0.3, **arguments):
        torch.manual_seed(0)
        config = getattr(transformers, config_name)(**arguments)
        model = getattr(transformers, model_name)(config).eval()
        with torch.no_grad():
            # All weights are large, and none is 1 or 0 as at first: no two
            # can be mixed up.
            for _, weight in sorted(model.named_parameters()):
                if weight.requires_grad:
                    weight.normal_(std=scale)
            if hasattr(model, "final_logits_bias"):
                model.final_logits_bias.normal_(std=scale)
        folder = tmp_path_factory.mktemp(config_name)
        model.save_pretrained(folder)
        return model, folder

    return save


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def equal():
    """Numbers of PyTorch and ours are equal, but for rounding."""

    def check(ours, theirs, tolerance=2e-5):
        theirs = theirs.detach().numpy()
        assert np.ptp(theirs) > 1000 * tolerance
        np.testing.assert_allclose(
            np.asarray(ours), theirs, rtol=tolerance, atol=tolerance
        )

    return check


def lines():
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, 7)) for _ in range(200)]


def train(path, **options):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines()),
        model_prefix=str(path),
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return path.with_suffix(".model")


def write_config(folder, **choices):
    (folder / "config.json").write_text(json.dumps(choices))


@pytest.fixture
def marian(tmp_path_factory):
    """Source and target share a vocabulary, in another order than theirs."""
    tmp_path = tmp_path_factory.mktemp("marian")
    pieces = {"</s>", "<unk>"}
    for name, size in (("source", 60), ("target", 50)):
        model = train(tmp_path / name, vocab_size=size)
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
        model.rename(tmp_path / f"{name}.spm")
        pieces |= {
            processor.id_to_piece(id)
            for id in range(3, processor.get_piece_size())
        }
    vocabulary = {"</s>": 0, "<unk>": 1, ">>fra<<": 2}
    for piece in sorted(pieces - {"</s>", "<unk>"}):
        vocabulary[piece] = len(vocabulary)
    vocabulary["<pad>"] = pad = len(vocabulary)
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    write_config(
        tmp_path, model_type="marian", pad_token_id=pad, eos_token_id=0
    )
    return tmp_path


@pytest.fixture
def t5(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("t5")
    train(
        tmp_path / "spiece",
        vocab_size=60,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
    )
    write_config(tmp_path, model_type="t5", pad_token_id=0, eos_token_id=1)
    return tmp_path


@pytest.fixture
def gpt2(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("gpt2")
    tokenizers = pytest.importorskip("tokenizers")
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(lines(), vocab_size=300)
    trained.save_model(str(tmp_path))
    vocabulary = json.loads((tmp_path / "vocab.json").read_text("utf-8"))
    vocabulary["<|endoftext|>"] = end = len(vocabulary)
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    write_config(tmp_path, model_type="gpt2", eos_token_id=end)
    return tmp_path
