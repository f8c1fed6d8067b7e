"""Tokenizers against Python SentencePiece, round trips, odd text, exports."""

import builtins
import pathlib
import random
import subprocess
import sys
import textwrap
import unicodedata

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from keras_attention import data
from keras_attention.data.vocabularies import text_operations
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


def visible(text):
    """A text without control characters, tabs and line ends as blanks."""
    return "".join(
        character
        for character in (" " if one.isspace() else one for one in text)
        if unicodedata.category(character) != "Cc"
    )


def test_ids_equal_those_of_sentencepiece(tokenizer, processor):
    texts = sentences(300, seed=1) + NASTY
    ids = tokenizer.tokenize(tf.constant(texts))
    assert ids.dtype == tf.int32
    assert ids.to_list() == processor.encode(list(map(visible, texts)))


def test_text_survives_a_round_trip(tokenizer):
    texts = sentences(300, seed=1)
    ids = tokenizer.tokenize(tf.constant(texts))
    for kept in (ids, ids.with_row_splits_dtype(tf.int32), ids.to_tensor()):
        again = [t.decode() for t in tokenizer.detokenize(kept).numpy()]
        assert again == [" ".join(t.split()) for t in texts]


def test_odd_text_survives_as_sentencepiece_reads_it(tokenizer, processor):
    ids = tokenizer.tokenize(tf.constant(NASTY))
    again = [t.decode() for t in tokenizer.detokenize(ids).numpy()]
    assert again == processor.decode(
        processor.encode(list(map(visible, NASTY)))
    )
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


@pytest.mark.parametrize("model_type", ["unigram", "bpe", "word", "char"])
def test_a_word_begins_behind_each_space(model_type):
    model = data.train_vocabulary(sentences(), 400, model_type)
    tokenizer = data.Tokenizer(model)
    texts = [*sentences(50, seed=1), "日本 語 日本", "unknown words 31"]
    assert tokenizer.begins_word.shape == (tokenizer.vocabulary_size,)
    rows = tokenizer.tokenize(tf.constant(texts)).to_list()
    for text, row in zip(texts, rows, strict=True):
        assert tokenizer.begins_word[row].sum() == len(text.split())


def test_vocabulary_size_is_that_of_the_model(tokenizer, processor):
    assert tokenizer.vocabulary_size == processor.vocab_size() <= 400


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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    "model_type, texts, counts",
    [
        (
            "word",
            [
                "qqq",
                "qqq www",
                "qqq  www\teee",
                "a qqq www cat eee",
                "",
                "[PAD]",
            ],
            [1, 2, 3, 5, 0, 1],
        ),
        ("char", ["q", "qqq", "cqqa wwt", "", "[PAD]"], [2, 4, 9, 0, 6]),
    ],
)
def test_each_unknown_word_or_character_is_a_token(model_type, texts, counts):
    """SentencePiece makes one token of all unknown ones in a row."""
    tokenizer = data.Tokenizer(
        data.train_vocabulary(["a cat", "a bat"], 100, model_type)
    )
    rows = tokenizer.tokenize(texts)
    assert (rows.dtype, rows.row_splits.dtype) == (tf.int32, tf.int64)
    for ids, count in zip(rows, counts, strict=True):
        assert len(ids) == count
        assert not set(ids.numpy()) & {PAD, START, END}
    (row,) = tokenizer.tokenize(["a qqq www"]).to_list()
    if model_type == "word":
        assert row[1:] == [UNK, UNK]
        pieces = tokenizer.pieces([row]).numpy()[0].tolist()
        assert pieces == ["▁a".encode(), b"[UNK]", b"[UNK]"]


@pytest.mark.parametrize("model_type", data.MODEL_TYPES)
@pytest.mark.parametrize("normalization", data.NORMALIZATIONS)
def test_control_characters_say_nothing(model_type, normalization):
    """Under "identity" this holds for NUL alone."""
    lines = [*sentences(100), "abc def"]
    tokenizer = data.Tokenizer(
        data.train_vocabulary(
            ["a\0b\x07c def", *lines],
            400,
            model_type,
            normalization=normalization,
        )
    )
    expected, blank = tokenizer.tokenize(["zwei drei", "zweidrei"]).to_list()
    controls = {chr(code) for code in (*range(32), *range(127, 160))}
    blanks = set("\t\n\v\f\r\x85")
    if normalization == "identity":
        controls, blanks = {"\0"}, set()
    for control in sorted(controls):
        joined = expected if control in blanks else blank
        texts = [
            f"zwei{control}drei",
            f"{control}zwei drei",
            f"zwei drei{control}",
            f"{control} zwei {control} drei",
        ]
        rows = [joined, expected, expected, expected]
        assert tokenizer.tokenize(texts).to_list() == rows
        if model_type == "unigram":
            drawn = tokenizer.sample(texts, seed=0, alpha=500.0)
            assert [row.tolist() for row in drawn] == rows


def test_an_export_reads_as_its_tokenizer(tmp_path):
    """Control characters, and unknown words in a row."""
    module = tf.Module()
    module.tokenizer = data.Tokenizer(
        data.train_vocabulary(["der hund", "die katze"], 100, "word")
    )
    module.ids = tf.function(
        lambda texts: module.tokenizer.tokenize(texts).to_tensor(-1),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    tf.saved_model.save(module, str(tmp_path / "model"))
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    ids = loaded.ids(tf.constant(["der\0 hund", "\0der\x07\thund", "x y hund"]))
    known = loaded.ids(tf.constant(["der hund"])).numpy()[0].tolist()
    assert ids.numpy().tolist() == [
        [*known, -1],
        [*known, -1],
        [UNK, UNK, known[1]],
    ]


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


# TensorFlow and tensorflow-text are a pair.


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
        text_operations.module()
    assert str(caught.value).endswith(f"({error})")
    assert caught.value.__cause__ is error


def test_blocks_of_text_keep_their_order(tokenizer):
    texts = sentences(40, seed=9)
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(4)
    rows = []
    for ids in dataset.map(tokenizer.tokenize, num_parallel_calls=4):
        rows += ids.to_list()
    assert rows == tokenizer.tokenize(tf.constant(texts)).to_list()
    assert sum(map(len, rows)) > 40


# One text, one row, and what is neither.


def test_one_text_gives_one_row(tokenizer):
    (expected,) = tokenizer.tokenize(["der große hund"]).to_list()
    for text in ("der große hund", "der große hund".encode()):
        ids = tokenizer.tokenize(text)
        assert ids.dtype == tf.int32
        assert ids.numpy().tolist() == expected
        assert tokenizer.detokenize(ids).numpy().decode() == "der große hund"
    assert tokenizer.tokenize("").shape == (0,)
    assert tokenizer.detokenize([]).numpy() == b""


def test_a_dataset_of_texts_one_by_one(tokenizer):
    texts = sentences(10, seed=9)
    dataset = tf.data.Dataset.from_tensor_slices(texts)
    ids = dataset.map(tokenizer.tokenize)
    assert ids.element_spec == tf.TensorSpec([None], tf.int32)
    rows = [row.tolist() for row in ids.as_numpy_iterator()]
    assert rows == tokenizer.tokenize(texts).to_list()
    again = ids.map(tokenizer.detokenize).as_numpy_iterator()
    assert [text.decode() for text in again] == [
        " ".join(text.split()) for text in texts
    ]


def test_rows_of_several_lengths(tokenizer):
    texts = ["der", "", "die große straße"]
    rows = tokenizer.tokenize(texts).to_list()
    arrays = [np.array(row, "int64") for row in rows]
    for ids in (rows, arrays):
        again = tokenizer.detokenize(ids).numpy()
        assert [text.decode() for text in again] == texts


@pytest.mark.parametrize(
    "text", [3, None, ["a", 3], [["a"]], tf.ragged.constant([["a"]])], ids=repr
)
def test_what_is_no_text_is_refused(tokenizer, text):
    with pytest.raises(ValueError, match="Give a string.*Received: "):
        tokenizer.tokenize(text)


@pytest.mark.parametrize(
    "ids",
    [5, None, [5.5], ["a"], [True], [[[5]]], [5, [6]], tf.ragged.range([1.5])],
    ids=repr,
)
def test_what_are_no_ids_is_refused(tokenizer, ids):
    with pytest.raises(ValueError, match="Give ids.*Received: "):
        tokenizer.detokenize(ids)


@pytest.mark.parametrize("id", [-100, 400, 2**40])
def test_ids_of_no_piece_are_refused(tokenizer, id):
    with pytest.raises(ValueError, match=f"Expected ids from 0.*: {id}"):
        tokenizer.detokenize([[5, id]])


def test_texts_with_nothing_to_see_give_no_ids(tokenizer):
    texts = ["\u3000", "\u00a0 \u202f", "\ufeff\u200b\u200d", "\x00", b"\xff"]
    assert tokenizer.tokenize(texts).to_list() == [[]] * len(texts)
    assert len(tokenizer.tokenize("\u00a05\u00a0€")) > 0


# Models and where they are.


def test_a_path_is_read(model, tmp_path, monkeypatch):
    (tmp_path / "vocabulary").write_bytes(model)
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in (
        tmp_path / "vocabulary",
        str(tmp_path / "vocabulary"),
        "~/vocabulary",
    ):
        assert data.Tokenizer(path).model == model


@pytest.mark.parametrize("other", ["nowhere", ".", None, 3], ids=repr)
def test_what_is_no_model_is_refused(other):
    with pytest.raises(ValueError, match="train_vocabulary"):
        data.Tokenizer(other)


@pytest.mark.parametrize("other", [b"", b"no model"], ids=repr)
def test_other_bytes_are_refused(other):
    with pytest.raises(ValueError, match="Received: no bytes|not a vocabulary"):
        data.Tokenizer(other)
