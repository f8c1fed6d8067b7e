"""Tokenizers against Python SentencePiece, round trips, odd text, exports."""

import builtins
import collections
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import textwrap
import types

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from keras_attention import data
from keras_attention.tokens import CONTROL_TEXTS, END, PAD, START, UNK

ROOT = pathlib.Path(data.__file__).parents[2]
WORDS = (
    "ab bären bauen der die das ein eine haus hunde katze klein große über "
    "unter grün straße zwanzig einund zwei drei vierzehn läuft schläft isst "
    "niemand morgen abend 1984 25 3,50 € café naïve señor"
).split()


def sentences(num_sentences=600, seed=0):
    generator = random.Random(seed)
    return [
        " ".join(generator.choices(WORDS, k=generator.randint(1, 9)))
        + generator.choice(" . ! ?,".split(" "))
        for _ in range(num_sentences)
    ]


NASTY = [
    "",
    " ",
    "   \t  ",
    "😀 emoji 👩‍👩‍👧 🇩🇪",
    "שלום עולם",
    "مرحبا بالعالم",
    "a\u0301 o\u0308 z\u030c\u0323",
    "NUL \x00 inside",
    "\x07 bell",
    "[END]",
    "[PAD] [UNK] [START] [END]",
    "</s> <s> <unk> <pad>",
    "<0x03> <0x00>",
    "▁ low line ▁▁",
    "\ufffd",
    "\ufeffbyte order mark",
    "line\nbreak\r\n",
    "漢字かな交じり文",
    "ﬁ ligature ② ½",
    "x" * 2000,
]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def model(request):
    return data.train_vocabulary(sentences(), 400, request.param)


@pytest.fixture(scope="module")
def tokenizer(model):
    return data.Tokenizer(model)


@pytest.fixture(scope="module")
def unigram():
    return data.Tokenizer(data.train_vocabulary(sentences(), 400))


@pytest.fixture(scope="module")
def processor(model):
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def test_ids_equal_those_of_sentencepiece(tokenizer, processor):
    texts = sentences(300, seed=1) + NASTY
    ids = tokenizer.tokenize(tf.constant(texts))
    assert ids.dtype == tf.int32
    assert ids.to_list() == processor.encode(texts)


def test_text_survives_a_round_trip(tokenizer):
    texts = sentences(300, seed=1)
    ids = tokenizer.tokenize(tf.constant(texts))
    for kept in (ids, ids.with_row_splits_dtype(tf.int32), ids.to_tensor()):
        again = [t.decode() for t in tokenizer.detokenize(kept).numpy()]
        assert again == [" ".join(t.split()) for t in texts]


def test_odd_text_survives_as_sentencepiece_normalises_it(tokenizer, processor):
    # SentencePiece applies NFKC and joins blanks; nothing else may be lost.
    ids = tokenizer.tokenize(tf.constant(NASTY))
    again = [t.decode() for t in tokenizer.detokenize(ids).numpy()]
    assert again == processor.decode(processor.encode(NASTY))
    for letters in (
        "😀",
        "🇩🇪",
        "שלום עולם",
        "漢字かな交じり文",
        "[END]",
        "</s>",
    ):
        assert any(letters in t for t in again)


def test_no_text_gives_a_control_id(tokenizer):
    texts = [*NASTY, *(f"a{t}b {t}" for t in CONTROL_TEXTS)]
    ids = set(tokenizer.tokenize(tf.constant(texts)).flat_values.numpy())
    # Bytes spell what is unknown, so that there is no UNK either.
    assert not ids & {PAD, UNK, START, END}


BROKEN = [b"\xff", b"ab \xc3", b"\xc3( der", b"\xed\xa0\x80", b"\x80 und"]


def test_invalid_utf8_becomes_replacement_characters():
    for before, after in zip(
        BROKEN, data.valid_utf8(tf.constant(BROKEN)).numpy(), strict=True
    ):
        # How many stand for one run of bytes is left open.
        expected = before.decode("utf-8", "replace")
        assert set(expected) == set(after.decode("utf-8"))
        assert expected.replace("\ufffd", "") == (
            after.decode("utf-8").replace("\ufffd", "")
        )


def test_invalid_utf8_is_read_like_its_replacement(tokenizer, processor):
    ids = tokenizer.tokenize(tf.constant(BROKEN))
    assert ids.to_list() == processor.encode(
        [before.decode("utf-8", "replace") for before in BROKEN]
    )
    assert not set(ids.flat_values.numpy()) & {PAD, UNK, START, END}
    for before, after in zip(
        BROKEN, tokenizer.detokenize(ids).numpy(), strict=True
    ):
        assert before.decode("utf-8", "ignore").strip() in after.decode("utf-8")


def test_invalid_byte_pieces_give_valid_text(tokenizer, processor):
    # What an untrained model may say: half a character.
    ids = [[processor.piece_to_id("<0xC3>")], [processor.piece_to_id("<0xFF>")]]
    for result in tokenizer.detokenize(tf.constant(ids)).numpy():
        assert "\ufffd" in result.decode("utf-8")


def test_control_ids_say_nothing(tokenizer):
    ids = tokenizer.tokenize(tf.constant(["der große hund"])).to_list()[0]
    dense = [START, *ids[:2], PAD, *ids[2:], END, PAD]
    ragged = tf.ragged.constant([dense, [], [END]], tf.int32)
    expected = tokenizer.detokenize(tf.constant([ids])).numpy()[0]
    assert tokenizer.detokenize(ragged).numpy().tolist() == [expected, b"", b""]
    wide = tf.constant([dense], tf.int64)
    assert tokenizer.detokenize(wide).numpy().tolist() == [expected]


def test_no_rows_give_no_rows(tokenizer):
    ids = tokenizer.tokenize(tf.constant([], tf.string))
    assert ids.to_list() == []
    assert tokenizer.detokenize(ids).shape == (0,)


def test_the_four_control_ids(tokenizer, processor):
    assert (PAD, UNK, START, END) == (0, 1, 2, 3)
    assert processor.pad_id() == 0
    assert processor.unk_id() == 1
    assert processor.bos_id() == 2
    assert processor.eos_id() == 3
    assert [processor.id_to_piece(i) for i in range(4)] == list(CONTROL_TEXTS)


def test_pieces_label_ids(tokenizer, processor):
    ids = processor.encode("der große hund")
    labels = tokenizer.pieces(tf.constant([[START, *ids, END, PAD]]))
    expected = ["[START]", *map(processor.id_to_piece, ids), "[END]", ""]
    assert [label.decode() for label in labels.numpy()[0]] == expected


def test_vocabulary_size_is_that_of_the_model(tokenizer, processor):
    assert tokenizer.vocabulary_size == processor.vocab_size() <= 400


def sampled(tokenizer, *arguments, **options):
    """What `sample` draws, as lists that can be compared."""
    return [row.tolist() for row in tokenizer.sample(*arguments, **options)]


def test_a_seed_draws_the_segmentation(unigram):
    processor = sentencepiece.SentencePieceProcessor(model_proto=unigram.model)
    texts = sentences(50, seed=2)
    first = sampled(unigram, texts, seed=7)
    assert sampled(unigram, texts, seed=7) == first
    assert sampled(unigram, texts, seed=8) != first
    plain = processor.encode(texts)
    assert first != plain
    assert processor.decode(first) == processor.decode(plain)
    assert not {i for row in first for i in row} & {PAD, UNK, START, END}


def test_another_process_draws_the_same(unigram, tmp_path):
    """A run that is resumed elsewhere must see the same segmentations."""
    (tmp_path / "model").write_bytes(unigram.model)
    code = (
        "import json, sys; from keras_attention import text\n"
        "model = open(sys.argv[1], 'rb').read()\n"
        "texts = json.loads(sys.argv[2])\n"
        "rows = data.Tokenizer(model).sample(texts, seed=7)\n"
        "print(json.dumps([row.tolist() for row in rows]))"
    )
    texts = sentences(20, seed=2)
    result = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "model", json.dumps(texts)],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert json.loads(result.stdout) == sampled(unigram, texts, seed=7)


def test_segmentations_are_drawn_by_their_probability():
    """Against all segmentations of a word, found by trying every cut."""
    generator = random.Random(0)
    words = ["".join(generator.choices(WORDS[:8], k=3)) for _ in range(600)]
    tokenizer = data.Tokenizer(data.train_vocabulary(words, 330))
    processor = sentencepiece.SentencePieceProcessor(
        model_proto=tokenizer.model
    )
    pieces = {
        processor.id_to_piece(i): i for i in range(processor.vocab_size())
    }
    word, alpha, draws = "▁dasein", 0.3, 20_000
    weights = {}
    for cuts in itertools.product([False, True], repeat=len(word) - 1):
        parts = [word[0]]
        for letter, cut in zip(word[1:], cuts, strict=True):
            if cut:
                parts.append(letter)
            else:
                parts[-1] += letter
        if all(part in pieces for part in parts):
            ids = tuple(pieces[part] for part in parts)
            score = sum(processor.get_score(i) for i in ids)
            weights[ids] = np.exp(alpha * score)
    assert len(weights) > 5
    drawn = collections.Counter(
        map(tuple, sampled(tokenizer, ["dasein"] * draws, 1, alpha))
    )
    assert set(drawn) <= set(weights)
    total = sum(weights.values())
    for ids, weight in weights.items():
        expected = weight / total
        deviation = np.sqrt(expected * (1 - expected) / draws)
        assert abs(drawn[ids] / draws - expected) < 5 * deviation + 1e-9


def test_another_kind_of_vocabulary_cannot_be_sampled():
    model = data.train_vocabulary(sentences(), 400, model_type="bpe")
    with pytest.raises(ValueError, match="unigram"):
        data.Tokenizer(model).sample(["der"], seed=0)


def test_sampling_does_not_change_tokenize(unigram):
    texts = sentences(20, seed=2)
    before = unigram.tokenize(tf.constant(texts)).to_list()
    unigram.sample(texts, seed=1)
    assert unigram.tokenize(tf.constant(texts)).to_list() == before


def test_low_alpha_draws_more_varied_segmentations(unigram):
    texts = ["große straße zwanzig"] * 200

    def variety(alpha):
        return len({tuple(row) for row in sampled(unigram, texts, 0, alpha)})

    assert variety(0.01) > variety(2.0) > 0


def test_empty_texts_sample_to_nothing(unigram):
    assert sampled(unigram, ["", "der", ""], seed=0)[::2] == [[], []]


# Two vocabularies at a time.


@pytest.fixture(scope="module")
def pair():
    """Two tokenizers that must disagree, with what each must answer."""
    tokenizers, expected = [], []
    for name, corpus in (
        ("source", sentences(400, 3)),
        ("target", [t[::-1] for t in sentences(400, 4)]),
    ):
        model = data.train_vocabulary(corpus, 350)
        tokenizers.append(data.Tokenizer(model, name=name))
        expected.append(
            sentencepiece.SentencePieceProcessor(model_proto=model).encode(
                sentences(30, 5)
            )
        )
    assert expected[0] != expected[1]
    return tokenizers, expected


def test_two_tokenizers_keep_apart(pair):
    texts = tf.constant(sentences(30, 5))
    (source, target), expected = pair
    for _ in range(2):
        assert source.tokenize(texts).to_list() == expected[0]
        assert target.tokenize(texts).to_list() == expected[1]
        keras.utils.set_random_seed(0)  # it empties TensorFlow's tables


def test_two_tokenizers_in_one_graph(pair):
    (source, target), expected = pair

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def both(texts):
        return source.tokenize(texts), target.tokenize(texts)

    for _ in range(2):
        ids = both(tf.constant(sentences(30, 5)))
        assert [side.to_list() for side in ids] == expected


RELOAD = """
    import sys
    import tensorflow as tf
    import tensorflow_text

    loaded = tf.saved_model.load(sys.argv[1])
    texts = tf.constant(open(sys.argv[2], encoding="utf-8").read().split("\\n"))
    assert "keras_attention" not in sys.modules
    for function in (loaded.source, loaded.target):
        flat, lengths, again = function(texts)
        ids = tf.RaggedTensor.from_row_lengths(flat, lengths)
        print(ids.to_list())
        print([t.decode() for t in again.numpy()])
"""


def answer(tokenizer):
    """A function of what a reloaded tokenizer is asked."""

    def function(texts):
        ids = tokenizer.tokenize(texts)
        again = tokenizer.detokenize(ids)
        return ids.flat_values, ids.row_lengths(), again

    return function


def test_two_tokenizers_after_an_export(pair, tmp_path):
    tokenizers, expected = pair
    texts = sentences(30, 5)
    module = tf.Module()
    for tokenizer in tokenizers:
        spec = tf.TensorSpec([None], tf.string)
        function = tf.function(answer(tokenizer), input_signature=[spec])
        setattr(module, tokenizer.name, function)
    module.tokenizers = tokenizers
    tf.saved_model.save(module, str(tmp_path / "export"))
    (tmp_path / "texts").write_text("\n".join(texts), encoding="utf-8")
    output = subprocess.run(
        [
            *(sys.executable, "-X", "utf8", "-c", textwrap.dedent(RELOAD)),
            *(str(tmp_path / "export"), str(tmp_path / "texts")),
        ],
        check=True,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        cwd=tmp_path,
    ).stdout.splitlines()
    again = [" ".join(t.split()) for t in texts]
    assert output == [
        *(str(expected[0]), str(again)),
        *(str(expected[1]), str(again)),
    ]


# Words and characters.


def test_words_are_the_pieces():
    tokenizer = data.Tokenizer(
        data.train_vocabulary(["a cat", "a dog", "a cat"], 100, "word")
    )
    ids = tokenizer.tokenize(tf.constant(["a cat", "cat zebra dog"]))
    pieces = [
        [piece.decode() for piece in tokenizer.pieces(tf.constant(row)).numpy()]
        for row in ids.to_list()
    ]
    assert pieces == [["▁a", "▁cat"], ["▁cat", "[UNK]", "▁dog"]]
    assert tokenizer.vocabulary_size == 4 + 3


def test_characters_are_the_pieces():
    tokenizer = data.Tokenizer(
        data.train_vocabulary(["abc cab", "bca"], 100, "char")
    )
    ids = tokenizer.tokenize(tf.constant(["cab", "azb"]))
    pieces = [
        [piece.decode() for piece in tokenizer.pieces(tf.constant(row)).numpy()]
        for row in ids.to_list()
    ]
    assert pieces == [["▁", "c", "a", "b"], ["▁", "a", "[UNK]", "b"]]
    assert tokenizer.detokenize(ids[:1]).numpy().tolist() == [b"cab"]


@pytest.mark.parametrize("model_type", data.MODEL_TYPES)
def test_every_model_type_knows_its_controls(model_type):
    tokenizer = data.Tokenizer(
        data.train_vocabulary(sentences(), 400, model_type)
    )
    texts = [*sentences(50, 6), *NASTY]
    ids = tokenizer.tokenize(tf.constant(texts))
    assert not set(ids.flat_values.numpy()) & {PAD, START, END}
    known = sentences(50, 0)
    again = tokenizer.detokenize(tokenizer.tokenize(tf.constant(known)))
    assert [t.decode() for t in again.numpy()] == [
        " ".join(t.split()) for t in known
    ]


# Training a vocabulary.


def test_training_is_deterministic():
    assert data.train_vocabulary(sentences(), 350) == data.train_vocabulary(
        iter(sentences()), 350
    )


def test_size_is_an_upper_limit():
    for size in (330, 100_000):
        model = data.train_vocabulary(sentences(100), size)
        assert 260 < data.Tokenizer(model).vocabulary_size <= size


def test_only_the_first_sentences_are_read():
    def endless():
        yield from ["", " ", *sentences()]
        pytest.fail("more than `max_sentences` were read")

    data.train_vocabulary(endless(), 400, max_sentences=50)


def test_another_model_type_is_refused():
    with pytest.raises(ValueError, match="Received: model_type='wordpiece'"):
        data.train_vocabulary(["a"], 100, "wordpiece")


@pytest.mark.parametrize("nothing", [[], ["", "  ", "\t\n"]], ids=repr)
def test_no_text_is_refused(nothing):
    with pytest.raises(ValueError, match="no sentence that is not blank"):
        data.train_vocabulary(nothing)


def test_a_vocabulary_too_small_for_its_characters_is_refused():
    with pytest.raises(ValueError, match="Received: vocabulary_size=40"):
        data.train_vocabulary(sentences(), 40)


# TensorFlow and tensorflow-text are a pair.


def test_another_minor_version_is_refused(monkeypatch):
    other = types.ModuleType("tensorflow_text")
    other.__version__ = "2.0.0"
    monkeypatch.setitem(sys.modules, "tensorflow_text", other)
    with pytest.raises(ImportError, match="tensorflow-text 2.0.0") as caught:
        tokenizer._import_tensorflow_text()
    assert f"tensorflow {tf.__version__}" in str(caught.value)


@pytest.mark.parametrize(
    "error", [ImportError("undefined symbol"), RuntimeError("no op")]
)
def test_a_broken_pair_says_how_to_repair_it(monkeypatch, error):
    real_import = builtins.__import__

    def broken(name, *args, **kwargs):
        if name == "tensorflow_text":
            raise error
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", broken)
    with pytest.raises(ImportError, match="python -m pip install") as caught:
        tokenizer._import_tensorflow_text()
    assert str(caught.value).endswith(f"Received: {error}")
    assert caught.value.__cause__ is error


def test_blocks_of_text_keep_their_order(tokenizer):
    texts = sentences(40, seed=9)
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(4)
    rows = []
    for ids in dataset.map(tokenizer.tokenize, num_parallel_calls=4):
        rows += ids.to_list()
    assert rows == tokenizer.tokenize(tf.constant(texts)).to_list()
    assert sum(map(len, rows)) > 40
