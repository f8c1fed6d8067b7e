"""Vocabularies: what they are learned from, and how they read text."""

import unicodedata

import pytest
import sentencepiece
import tensorflow as tf

from keras_attention import data, evaluation
from keras_attention.data.vocabularies import vocabulary

LINES = ["der große hund schläft", "die katze läuft", "ein haus, 25 bäume"]
LINES = [f"{line} {number}" for line in LINES for number in range(40)]


def round_trip(tokenizer, texts):
    ids = tokenizer.tokenize(tf.constant(texts))
    return [text.decode() for text in tokenizer.detokenize(ids).numpy()]


def test_training_is_deterministic():
    assert data.train_vocabulary(LINES, 330) == data.train_vocabulary(
        iter(LINES), 330
    )


def test_size_is_an_upper_limit():
    for size in (310, 100_000):
        model = data.train_vocabulary(LINES, size)
        assert 260 < data.Tokenizer(model).vocabulary_size <= size


def test_only_the_first_sentences_are_read():
    def endless():
        yield from ["", " ", *LINES]
        pytest.fail("more than `max_sentences` were read")

    data.train_vocabulary(endless(), 400, max_sentences=50)


def test_another_model_type_is_refused():
    with pytest.raises(ValueError, match="Received: model_type='wordpiece'"):
        data.train_vocabulary(["a"], 100, "wordpiece")


def test_another_rule_is_refused():
    with pytest.raises(ValueError, match="one of .*Received: .*='nfx'"):
        data.train_vocabulary(["a"], 100, normalization="nfx")


@pytest.mark.parametrize("nothing", [[], ["", "  ", "\t\n"]], ids=repr)
def test_no_text_is_refused(nothing):
    with pytest.raises(ValueError, match="all sentences are blank"):
        data.train_vocabulary(nothing)


def test_one_text_instead_of_many_is_refused():
    with pytest.raises(
        ValueError, match="Put a single text in a list. Received: 'a text'"
    ):
        data.train_vocabulary("a text")


def test_a_vocabulary_too_small_for_its_characters_is_refused():
    with pytest.raises(ValueError, match="Received: vocabulary_size=40"):
        data.train_vocabulary(LINES, 40)


def test_training_says_nothing(capfd):
    for normalization in data.NORMALIZATIONS:
        data.train_vocabulary(LINES, 330, normalization=normalization)
    assert capfd.readouterr() == ("", "")


# What people write, and NFKC or its variant changes.
WRITTEN = [
    "你好，世界！（你 好？）",
    "東京　大阪 ｶﾅ と ガ が",  # An ideographic space, half-width kana.
    "می\u200cخواهم",  # The zero-width non-joiner of Persian,
    "क्\u200dष क्\u200cष",  # and both of Hindi.
    "ខ្ញុំ\u200bស្រឡាញ់",  # Khmer words, by zero-width spaces.
    "ทำน้ำ ນໍ້າ ຳ",  # The Thai and Lao sara am.
    "abc\u200e \u200fאבג ד\u05bcו\u05bc",  # Marks of direction; points.
    "10² m², H₂O, x⁻¹",
    "№ 5 … ™ ℃ ½ ﬁn Ⅳ ① µm",
    "1.º e 2.ª, l´amour, ¨",
    "5\u00a0€ : «\u202foui\u202f» \u2009!",  # No-break and thin spaces.
    "cafe\u0301 Å Å \u212b",  # Decomposed, composed, the sign.
    "র\u09dc রড\u09bc",  # Composed and not, in Bengali.
    "ㅋㅋ 한 한",  # Compatibility letters; syllables, in letters.
    "ſ ŀ ŉ ǆ 𝐀 ⓐ ㎏ ﷺ",
    "👩\u200d👩\u200d👧 ❤\ufe0f 🇩🇪 soft\u00adhyphen",
]


@pytest.mark.parametrize("model_type", data.MODEL_TYPES)
def test_what_was_learned_from_is_written(model_type):
    tokenizer = data.Tokenizer(
        data.train_vocabulary(WRITTEN * 20, 1000, model_type)
    )
    again = round_trip(tokenizer, WRITTEN)
    assert again == WRITTEN
    scores = evaluation.corpus_scores(again, WRITTEN)
    assert scores["exact_match"] == scores["bleu"]["score"] == 100


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_what_is_unknown_is_written(model_type):
    tokenizer = data.Tokenizer(data.train_vocabulary(LINES, 400, model_type))
    assert round_trip(tokenizer, WRITTEN) == WRITTEN


def test_the_other_rules_change_what_is_written():
    tokenizer = data.Tokenizer(
        data.train_vocabulary(LINES, 400, normalization="nfkc")
    )
    again = round_trip(tokenizer, WRITTEN)
    for text, changed in zip(WRITTEN, again, strict=True):
        words = unicodedata.normalize("NFKC", text).split(" ")
        assert changed == " ".join(filter(None, words))
    assert again[0] == "你好,世界!(你 好?)"
    assert again[7] == "102 m2, H2O, x−1"
    tokenizer = data.Tokenizer(
        data.train_vocabulary(LINES, 400, normalization="nmt_nfkc")
    )
    assert round_trip(tokenizer, WRITTEN[2:3]) == ["می خواهم"]


def test_blanks_count_as_one():
    tokenizer = data.Tokenizer(data.train_vocabulary(LINES, 400))
    for blank in vocabulary.BLANKS:
        text = f"{blank}der {blank} hund{blank}schläft{blank}"
        assert round_trip(tokenizer, [text]) == ["der hund schläft"]


def test_control_characters_and_byte_order_marks_are_left_out():
    tokenizer = data.Tokenizer(data.train_vocabulary(LINES, 400))
    controls = [
        character
        for character in map(chr, range(0x10000))
        if unicodedata.category(character) == "Cc"
        and character not in vocabulary.BLANKS
    ]
    assert len(controls) == 65 - 6  # Six are blanks.
    for character in [*controls, "\ufeff"]:
        assert round_trip(tokenizer, [f"{character}hu{character}nd"]) == [
            "hund"
        ]


def test_identity_keeps_tabs():
    lines = [line.replace(" ", "\t", 1) for line in LINES]
    tokenizer = data.Tokenizer(
        data.train_vocabulary(LINES + lines, 400, normalization="identity")
    )
    texts = ["der\thund", "a\nb", "\ufeffein  haus ", "é e\u0301"]
    assert round_trip(tokenizer, texts) == [
        "der\thund",
        "a\nb",
        "\ufeffein haus",
        "é e\u0301",
    ]


@pytest.mark.parametrize("normalization", ["nfkc_cf", "nmt_nfkc_cf"])
def test_letters_are_lowered(normalization):
    tokenizer = data.Tokenizer(
        data.train_vocabulary(LINES, 400, normalization=normalization)
    )
    assert round_trip(tokenizer, ["Der HUND, ４"]) == ["der hund, 4"]


@pytest.mark.parametrize("normalization", data.NORMALIZATIONS)
def test_ids_are_those_of_sentencepiece_under_every_rule(normalization):
    model = data.train_vocabulary(
        [*LINES, *WRITTEN * 20], 1000, normalization=normalization
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    texts = [*LINES, *WRITTEN, "  a\ufeff ▁b ", "\ufffd x"]
    ids = data.Tokenizer(model).tokenize(texts)
    assert ids.to_list() == processor.encode(texts)


def test_plain_text_has_the_same_pieces_under_every_rule():
    """Where a rule changes nothing, nothing depends on it."""
    plain = [line.lower().replace("ß", "ss") for line in LINES]

    def pieces(normalization):
        processor = sentencepiece.SentencePieceProcessor(
            model_proto=data.train_vocabulary(
                plain, 330, normalization=normalization
            )
        )
        return [
            (processor.id_to_piece(id), processor.get_score(id))
            for id in range(processor.vocab_size())
        ]

    expected = pieces("as_written")
    for normalization in data.NORMALIZATIONS:
        assert pieces(normalization) == expected
