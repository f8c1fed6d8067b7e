"""The batches of labelled texts: what they hold, and in which order."""

import keras
import numpy as np
import pytest

from keras_attention import data
from keras_attention.data import labelled_batches

CLASSES = ["high", "low", "odd"]


@pytest.fixture(scope="module")
def corpus():
    rng = np.random.default_rng(1)
    words = "one two three four five".split()

    def rows(count):
        return [
            (
                CLASSES[rng.integers(3)],
                " ".join(rng.choice(words, rng.integers(1, 9))),
                " ".join(rng.choice(words, rng.integers(1, 4))),
            )
            for _ in range(count)
        ]

    blank = [("odd", "one", ""), ("odd", "one " * 12, "two")]
    splits = {"train": rows(101) + blank, "validation": rows(7)}
    return labelled_batches.LabelledCorpus(
        "mine",
        {
            name: labelled_batches.LabelledTexts.of(one)
            for name, one in splits.items()
        },
    )


@pytest.fixture(scope="module")
def tokenizer(corpus):
    texts = corpus.splits["train"].texts[0]
    model = data.train_vocabulary(texts, 100, model_type="word")
    return data.Tokenizer(model, "texts")


def make(corpus, tokenizer, **options):
    keras.utils.set_random_seed(1)
    arguments = {"max_length": 10, "max_tokens": 40, "seed": 3} | options
    return labelled_batches.LabelledBatches(
        corpus, tokenizer, CLASSES, **arguments
    )


def rows_of(batches, tokenizer):
    """Every row with a weight: its label and its texts."""
    found = []
    for inputs, labels, weights in batches:
        texts = [
            tokenizer.detokenize(inputs[name]).numpy()
            for name in ("source_ids", "pair_ids")
        ]
        for row in np.flatnonzero(weights.numpy()):
            label = CLASSES[labels.numpy()[row]]
            found.append((label, *(text[row].decode() for text in texts)))
    return found


def expected_rows(corpus, split, count):
    texts = corpus.splits[split]
    columns = [texts.labels, *texts.texts]
    return list(zip(*(column[:count] for column in columns), strict=True))


@pytest.mark.parametrize("replicas", [1, 4])
def test_every_text_comes_once_with_its_label(corpus, tokenizer, replicas):
    pipeline = make(corpus, tokenizer, replicas=replicas)
    expected = expected_rows(corpus, "train", 101)
    epochs = [rows_of(pipeline.training(n), tokenizer) for n in range(2)]
    for epoch in epochs:
        assert sorted(epoch) == sorted(expected)
    assert epochs[0] != epochs[1]
    validation = rows_of(pipeline.validation(), tokenizer)
    assert sorted(validation) == sorted(
        expected_rows(corpus, "validation", None)
    )
    for inputs, labels, weights in pipeline.training(0):
        assert len(labels) % replicas == 0
        assert np.sum(weights) == pytest.approx(1)
        lengths = [ids.shape[1] for ids in inputs.values()]
        assert len(labels) * max(lengths) <= 40 or len(labels) <= replicas
        for ids in inputs.values():
            # Rows that are added have an END, too.
            assert np.all(np.sum(ids == 3, axis=1) == 1)


def test_an_epoch_goes_on_where_it_stopped(corpus, tokenizer):
    pipeline = make(corpus, tokenizer)
    whole = list(pipeline.training(2))
    assert len(whole) == pipeline.report.batches
    rest = list(make(corpus, tokenizer).training(2, start=4, limit=3))
    assert len(rest) == 3
    for one, other in zip(whole[4:7], rest, strict=True):
        for a, b in zip(*map(keras.tree.flatten, (one, other)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_report_counts_what_is_left_out(corpus, tokenizer):
    report = make(corpus, tokenizer).report
    assert (report.kept, report.too_long, report.blank) == (101, 1, 1)
    assert "101 texts of 3 labels kept, 1 too long, 1 blank" in str(report)
    columns = corpus.splits["train"].texts
    words = sum(len(t.split()) for texts in columns for t in texts[:101])
    assert report.tokens == words + 2 * 101


def test_another_label_is_another_corpus(corpus, tokenizer):
    texts = corpus.splits["train"]
    labels = ["low" if texts.labels[0] != "low" else "odd", *texts.labels[1:]]
    changed = labelled_batches.LabelledCorpus(
        "mine",
        corpus.splits
        | {"train": labelled_batches.LabelledTexts(texts.texts, labels)},
    )
    first, second = (
        make(one, tokenizer).checksums for one in (corpus, changed)
    )
    assert first[0] != second[0] and first[1] == second[1]


def test_texts_that_do_not_fit_are_refused(corpus, tokenizer):
    with pytest.raises(ValueError, match="`max_length`=2. Received: "):
        make(corpus, tokenizer, max_length=2)


def test_a_label_that_the_run_does_not_know_is_refused(corpus, tokenizer):
    with pytest.raises(ValueError, match="high, low. Received: 'odd'"):
        labelled_batches.LabelledBatches(
            corpus, tokenizer, CLASSES[:2], max_length=10, max_tokens=40, seed=3
        )
