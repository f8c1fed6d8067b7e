"""The vocabularies of published folders give the ids of transformers."""

import json

import numpy as np
import pytest
import sentencepiece

from keras_attention import data

TEXTS = [
    "a dog saw the cat",
    "",
    "the cat, because it was curious: 21!",
    "Zwölf 日本語 </s> <unk> <pad>",
    "  two  spaces ",
]
WORDS = "a the dog cat saw was it because curious two spaces and or 2 1".split()


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip(
        "transformers", reason="The reference is the package transformers."
    )


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
def marian(tmp_path):
    """Source and target share a vocabulary, in another order than theirs."""
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


def assert_rows_are(ids, rows, pad_id):
    assert ids.dtype == "int32" and ids.shape[1] == max(map(len, rows))
    for found, expected in zip(ids.tolist(), rows, strict=True):
        padding = [pad_id] * (len(found) - len(expected))
        assert found == [*expected, *padding]


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_marian(marian, transformers):
    theirs = transformers.MarianTokenizer.from_pretrained(marian)
    ours = data.published_tokenizer(marian)
    # They take a control token in a text for one, and we do not.
    texts = [text for text in TEXTS if "</s>" not in text]
    texts.append(">>fra<< a dog")
    ids = ours.encode(texts)
    assert_rows_are(ids, theirs(texts)["input_ids"], ours.pad_id)
    expected = ["a dog saw the cat", ""]
    assert ours.decode(ids)[:2] == expected
    assert theirs.batch_decode(ids[:2], skip_special_tokens=True) == expected


def test_marian_reads_no_control_token_in_a_text(marian):
    ours = data.published_tokenizer(marian)
    (ids,) = ours.encode(["</s> <pad> a"]).tolist()
    assert ids.index(0) == len(ids) - 1 and ours.pad_id not in ids


@pytest.fixture
def t5(tmp_path):
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


def test_t5(t5, transformers):
    theirs = transformers.T5Tokenizer.from_pretrained(t5)
    ours = data.published_tokenizer(t5)
    texts = [text for text in TEXTS if "</s>" not in text]
    texts.append("the <extra_id_0> saw the <extra_id_99>")
    ids = ours.encode(texts)
    assert_rows_are(ids, theirs(texts)["input_ids"], 0)
    assert ours.decode(ids)[0] == "a dog saw the cat"
    assert ours.decode(ids)[-1] == texts[-1]
    size = ours.encode(["<extra_id_0>"])[0, 0]
    assert (ours.encode(["<extra_id_100> <extra_id_7>"]) <= size).all()


@pytest.fixture
def gpt2(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(lines(), vocab_size=300)
    trained.save_model(str(tmp_path))
    vocabulary = json.loads((tmp_path / "vocab.json").read_text("utf-8"))
    vocabulary["<|endoftext|>"] = end = len(vocabulary)
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    write_config(tmp_path, model_type="gpt2", eos_token_id=end)
    return tmp_path


@pytest.mark.parametrize("as_one_file", [False, True])
def test_gpt2(gpt2, transformers, as_one_file):
    theirs = transformers.GPT2Tokenizer.from_pretrained(gpt2)
    if as_one_file:
        theirs.save_pretrained(gpt2)
        assert (gpt2 / "tokenizer.json").is_file()
        (gpt2 / "vocab.json").unlink(missing_ok=True)
    ours = data.published_tokenizer(gpt2)
    ids = ours.encode(TEXTS)
    assert_rows_are(ids, theirs(TEXTS)["input_ids"], ours.pad_id)
    assert ours.decode(ids) == TEXTS  # Bytes lose nothing.
    assert ours.end_id not in ours.encode(["a<|endoftext|>"])


def test_a_missing_file_is_named(gpt2):
    write_config(gpt2, model_type="marian", pad_token_id=1, eos_token_id=0)
    with pytest.raises(ValueError, match="has no source.spm, which its voc"):
        data.published_tokenizer(gpt2)


@pytest.mark.parametrize("family", ["vit", None])
def test_a_family_without_a_vocabulary_is_refused(tmp_path, family):
    write_config(tmp_path, model_type=family)
    with pytest.raises(ValueError, match="can be read: gpt2, marian, t5, mt5"):
        data.published_tokenizer(tmp_path)
