"""The embedded labelled corpora: their labels follow from their texts."""

import collections
import itertools

import pytest

from keras_attention.data.embedded import colours, multisets, referents

SIZES = {"train": 3000, "validation": 200, "test": 500}
CORPORA = (referents, colours, multisets)
each_corpus = pytest.mark.parametrize(
    "corpus", CORPORA, ids=lambda corpus: corpus.__name__.rpartition(".")[2]
)


def rows(corpus):
    return [row for split in corpus.generate(**SIZES).values() for row in split]


@each_corpus
def test_each_call_draws_the_same(corpus):
    splits = corpus.generate(**SIZES)
    assert splits == corpus.generate(**SIZES)
    assert splits != corpus.generate(**SIZES, seed=1)
    assert {name: len(rows) for name, rows in splits.items()} == SIZES


@each_corpus
def test_no_text_is_in_two_splits(corpus):
    texts = [
        {row[1] for row in split} for split in corpus.generate(**SIZES).values()
    ]
    for one, other in itertools.combinations(texts, 2):
        assert not one & other


@each_corpus
def test_labels_are_balanced(corpus):
    counts = collections.Counter(row[0] for row in rows(corpus))
    assert max(counts.values()) < 2 * min(counts.values())


def actor_and_other(sentence):
    """The two animals of a sentence, by its grammar."""
    clause = sentence.split(" because ")[0].split()
    animals = [word for word in clause if word in referents.ANIMALS]
    assert len(animals) == 2
    return animals[::-1] if "was" in clause else animals


def test_a_referent_is_who_the_reason_explains():
    for label, sentence in rows(referents):
        actor, other = actor_and_other(sentence)
        reason = sentence.split()[-1]
        if reason in referents.OF_ACTOR:
            assert label == actor
        else:
            assert reason in referents.OF_OTHER and label == other
        assert sentence.split()[-4:-1] == ["because", "it", "was"]


def test_a_pair_of_animals_is_in_one_split():
    pairs = [
        {tuple(actor_and_other(sentence)) for _, sentence in split}
        for split in referents.generate(**SIZES).values()
    ]
    for one, other in itertools.combinations(pairs, 2):
        assert not one & other


def test_my_colours_are_the_label():
    for label, text in rows(colours):
        words = text.split()
        mine = [
            colour
            for owner, colour in itertools.pairwise(words)
            if owner == "my"
        ]
        assert label == " and ".join(sorted(mine)) and len(set(mine)) == 2


def test_a_hypothesis_follows_if_its_words_are_in_the_premise():
    assert len(set(multisets.WORDS)) == 200
    for label, premise, hypothesis in rows(multisets):
        left = collections.Counter(hypothesis.split())
        left -= collections.Counter(premise.split())
        assert label == ("neutral" if left else "entailment")
