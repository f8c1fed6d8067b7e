"""Letters and sounds: Italian words as a dictionary says them."""

import pytest

from keras_attention import config, data
from keras_attention.data import corpora
from keras_attention.data.embedded import pronunciations
from keras_attention.tasks import translation
from keras_attention.tokens import UNK
from keras_attention.training import run_directory


@pytest.fixture(scope="module")
def splits():
    return pronunciations.generate()


@pytest.mark.parametrize(
    "word, sounds",
    [
        ("chiave", "k j a v e"),
        ("ciao", "tʃ a o"),
        ("giorno", "dʒ o r n o"),
        ("ghiro", "g i r o"),
        ("gnocchi", "ɲ o kː i"),
        ("famiglia", "f a m i ʎ a"),
        ("figli", "f i ʎ i"),
        ("gloria", "g l o r j a"),
        ("pesce", "p e ʃ e"),
        ("sciarpa", "ʃ a r p a"),
        ("schema", "s k e m a"),
        ("scala", "s k a l a"),
        ("casa", "k a z a"),
        ("passo", "p a sː o"),
        ("acqua", "a kː w a"),
        ("pizza", "p i tsː a"),
        ("oggi", "o dʒː i"),
        ("faccia", "f a tʃː a"),
        ("uomo", "w o m o"),
        ("taxi", "t a k s i"),
    ],
)
def test_italian_words(word, sounds):
    assert pronunciations.pronounce(word) == sounds


@pytest.mark.parametrize("word", ["whisky", "hotel", "città", "Roma"])
def test_a_letter_without_a_rule_is_refused(word):
    with pytest.raises(ValueError, match=f"There is no rule for .*'{word}'"):
        pronunciations.pronounce(word)


def test_each_pair_is_a_word_and_its_sounds(splits):
    assert {split: len(pairs) for split, pairs in splits.items()} == {
        "train": 20_000,
        "validation": 500,
        "test": 500,
    }
    words = [word for pairs in splits.values() for word, _ in pairs]
    assert len(set(words)) == len(words)
    for pairs in splits.values():
        for word, sounds in pairs:
            assert pronunciations.pronounce(word) == sounds


def test_training_has_each_rule_often(splits):
    """The rules that held-out words need can be learned."""
    sounds = [sound for _, said in splits["train"] for sound in said.split()]
    for split in ("validation", "test"):
        held_out = {
            sound for _, said in splits[split] for sound in said.split()
        }
        assert min(sounds.count(sound) for sound in held_out) > 100
    for letters in ("gn", "gli", "sci", "cch", "cci", "ggh", "ggi", "zz", "x"):
        assert sum(letters in word for word, _ in splits["train"]) > 100


def test_it_is_the_same_at_every_call(splits):
    assert pronunciations.generate() == splits
    assert pronunciations.generate(seed=1) != splits


def test_a_source_piece_is_a_letter_and_a_target_piece_a_sound(tmp_path):
    choices = config.resolve(config.make(model="rnn_transducer"))
    assert choices.data.corpus == "pronunciations"
    corpus = corpora.load("pronunciations", "letters", "sounds")
    directory = run_directory.at(tmp_path)
    source, target = translation.Translation().tokenizers(
        choices.vocabulary, directory, corpus
    )
    letters = source.pieces(source.tokenize("chiave")).numpy()
    assert [piece.decode() for piece in letters] == [*"▁chiave"]
    sounds = target.pieces(target.tokenize("tʃ a tsː")).numpy()
    assert [piece.decode() for piece in sounds] == ["▁tʃ", "▁a", "▁tsː"]
    ids = target.tokenize(
        [said for _, said in pronunciations.generate()["test"]]
    )
    assert UNK not in ids.flat_values.numpy()
    assert isinstance(target, data.Tokenizer)
