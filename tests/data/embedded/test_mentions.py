"""Names in any order, and each of them once."""

from keras_attention import config
from keras_attention.data.embedded import mentions


def test_a_name_is_written_at_its_first_mention():
    text = "bola remi bola tuso remi"
    assert mentions.summary(text) == "bola remi tuso"


def test_texts_are_unlike_and_short():
    splits = mentions.generate(train=2000, held_out=100)
    sizes = {split: len(pairs) for split, pairs in splits.items()}
    assert sizes == {"train": 2000, "validation": 100, "test": 100}
    known = set(mentions.names())
    assert len(known) == mentions.NUM_NAMES
    pairs = [pair for of_split in splits.values() for pair in of_split]
    assert len({text for text, _ in pairs}) == len(pairs)
    repeated = 0
    for text, names in pairs:
        written = names.split()
        assert len(set(written)) == len(written) and set(written) <= known
        assert 2 <= len(written) <= 4
        places = [text.split().index(name) for name in written]
        assert places == sorted(places)
        repeated += len(text.split()) > len(written)
    # Whoever copies without a memory is wrong in most texts.
    assert repeated > 0.8 * len(pairs)
    assert mentions.generate(2000, 100) == splits
    assert mentions.generate(2000, 100, seed=1) != splits


def test_words_are_the_pieces_of_one_vocabulary():
    choices = config.make(model="intra_attention_summarizer")
    choices = config.resolve(choices)
    assert choices.data.corpus == "mentions"
    assert choices.vocabulary.is_joint
    assert choices.vocabulary.vocabulary_type == "word"
    assert choices.vocabulary.vocabulary_size > mentions.NUM_NAMES + 4
