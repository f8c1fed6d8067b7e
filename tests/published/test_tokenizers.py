"""The vocabularies of published folders give the ids of transformers."""

import json

import pytest

from keras_attention import data

TEXTS = [
    "a dog saw the cat",
    "",
    "the cat, because it was curious: 21!",
    "Zwölf 日本語 </s> <unk> <pad>",
    "  two  spaces ",
]


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip(
        "transformers", reason="The reference is the package transformers."
    )


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
    (gpt2 / "config.json").write_text('{"model_type": "marian"}')
    with pytest.raises(ValueError, match="has no source.spm, which its voc"):
        data.published_tokenizer(gpt2)


@pytest.mark.parametrize("family", ["vit", None])
def test_a_family_without_a_vocabulary_is_refused(tmp_path, family):
    config = json.dumps({"model_type": family})
    (tmp_path / "config.json").write_text(config)
    with pytest.raises(ValueError, match="can be read: gpt2, marian, t5, mt5"):
        data.published_tokenizer(tmp_path)
