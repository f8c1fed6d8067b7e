"""The batches of a stream in parallel rows."""

import numpy as np
import pytest

import keras_attention as ka
from keras_attention.data import carried, corpora
from keras_attention.tokens import END, PAD, START

LINES = ["a b c", "", "b", "c c a b a", "  ", "b a", "a"]
TOKENIZER = ka.data.Tokenizer(
    ka.data.train_vocabulary(["a b c"], vocabulary_size=7, model_type="word")
)


def pipeline(num_rows, context_length, lines=LINES, validation=("a b",)):
    rows = {"train": lines, "validation": validation}
    corpus = corpora.Corpus.of_rows(
        "",
        ["target"],
        {name: [(line,) for line in texts] for name, texts in rows.items()},
    )
    return carried.CarriedPipeline(corpus, TOKENIZER, num_rows, context_length)


def whole(batches):
    """Inputs and labels of all batches side by side."""
    sides = [(x["target_ids"], y) for x, y, _ in batches]
    return [np.concatenate(side, axis=1) for side in zip(*sides, strict=True)]


@pytest.mark.parametrize("num_rows", [1, 2, 3, 5, 16])
@pytest.mark.fast_for(3)
@pytest.mark.parametrize("context_length", [1, 3, 50])
def test_each_row_goes_on_where_it_ended(num_rows, context_length):
    inputs, labels = [], []
    for line in LINES:
        if line.strip():
            ids = [*TOKENIZER.tokenize(line).numpy()]
            inputs += [START, *ids]
            labels += [*ids, END]
    made = pipeline(num_rows, context_length)
    batches = list(made.training(0).as_numpy_iterator())
    read, written = whole(batches)
    length = -(-len(labels) // num_rows)
    assert read.shape == written.shape == (num_rows, length)
    missing = num_rows * length - len(labels)
    assert 0 <= missing < num_rows
    np.testing.assert_array_equal(read.flatten(), inputs + [PAD] * missing)
    np.testing.assert_array_equal(written.flatten(), labels + [PAD] * missing)
    for index, (batch, of_batch, weights) in enumerate(batches):
        assert of_batch.shape[1] <= context_length
        np.testing.assert_array_equal(batch["rows"], range(num_rows))
        assert (batch["goes_on"] == (index > 0)).all()
        real = of_batch != PAD
        np.testing.assert_allclose(weights, real / max(real.sum(), 1))
    report = made.report
    assert (report.kept, report.blank, report.tokens) == (5, 2, len(labels))
    assert report.batches == len(batches) == -(-length // context_length)
    assert report.padding_share == missing / read.size


def test_what_is_left_of_an_epoch():
    made = pipeline(2, 3)
    batches = list(made.training(0).as_numpy_iterator())
    assert len(batches) == 3
    left = made.training(epoch=4, start=1, limit=1)
    assert left.cardinality() == 1
    ((inputs, labels, _),) = left.as_numpy_iterator()
    np.testing.assert_array_equal(labels, batches[1][1])
    assert inputs["goes_on"].all()
    assert made.training(0, start=3).cardinality() == 0


def test_the_checksums_are_those_of_the_lines():
    """In other rows they are the same, with other line ends they are not."""
    first = pipeline(2, 3).checksums
    assert pipeline(3, 2).checksums == first
    others = pipeline(2, 3, ["a b c b", *LINES[3:]]).checksums
    assert others[0] != first[0] and others[1] == first[1]


def test_a_split_without_text_is_refused():
    with pytest.raises(ValueError, match="All lines of validation are blank"):
        pipeline(2, 3, validation=[" "])
