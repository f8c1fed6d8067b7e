"""One pipeline for any columns: what its batches hold, in which order."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import data
from keras_attention.data import columns, corpora, pipeline
from keras_attention.tokens import END, START

CLASSES = ["high", "low", "odd"]
COLUMNS = {
    "label": columns.Class(),
    "source": columns.Text(),
    "pair": columns.Text(),
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    words = "one two three four five".split()

    def drawn(count):
        return [
            (
                CLASSES[rng.integers(3)],
                " ".join(rng.choice(words, rng.integers(1, 9))),
                " ".join(rng.choice(words, rng.integers(1, 4))),
            )
            for _ in range(count)
        ]

    blank = [("odd", "one", ""), ("odd", " ".join(["one"] * 12), "two")]
    return {"train": drawn(101) + blank, "validation": drawn(7)}


@pytest.fixture(scope="module")
def tokenizer(rows):
    texts = [text for _, text, _ in rows["train"]]
    model = data.train_vocabulary(texts, 100, model_type="word")
    return data.Tokenizer(model, "texts")


def make(rows, tokenizer, of_rows=COLUMNS, classes=tuple(CLASSES), **options):
    """The pipeline of rows whose texts all have one tokenizer."""
    keras.utils.set_random_seed(1)
    arguments = {"max_length": 10, "max_tokens": 40, "seed": 3} | options
    encoders = {
        name: classes if isinstance(column, columns.Class) else tokenizer
        for name, column in of_rows.items()
    }
    corpus = corpora.Corpus.of_rows("mine", of_rows, rows)
    return pipeline.Pipeline(corpus, of_rows, encoders, **arguments)


@pytest.fixture(scope="module")
def made(rows, tokenizer):
    """A pipeline, and the batches of three epochs."""
    batches = make(rows, tokenizer)
    return batches, [list(batches.training(n)) for n in range(3)]


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


@pytest.mark.parametrize("replicas", [1, 4])
def test_every_text_comes_once_with_its_label(rows, tokenizer, made, replicas):
    batches, epochs = made
    if replicas > 1:
        batches = make(rows, tokenizer, replicas=replicas)
        epochs = [list(batches.training(n)) for n in range(2)]
    found = [rows_of(epoch, tokenizer) for epoch in epochs]
    for epoch in found:
        assert sorted(epoch) == sorted(rows["train"][:101])
    assert found[0] != found[1]
    validation = rows_of(batches.validation(), tokenizer)
    assert sorted(validation) == sorted(rows["validation"])
    for inputs, labels, weights in epochs[0]:
        assert len(labels) % replicas == 0
        assert np.sum(weights) == pytest.approx(1)
        lengths = [ids.shape[1] for ids in inputs.values()]
        assert len(labels) * max(lengths) <= 40 or len(labels) <= replicas
        for ids in inputs.values():
            # Rows that are added have an END, too.
            assert np.all(np.sum(ids == 3, axis=1) == 1)


def test_an_epoch_goes_on_where_it_stopped(rows, tokenizer, made):
    batches, (*_, whole) = made
    assert len(whole) == batches.report.batches
    rest = list(make(rows, tokenizer).training(2, start=4, limit=3))
    assert len(rest) == 3
    for one, other in zip(whole[4:7], rest, strict=True):
        for a, b in zip(*map(keras.tree.flatten, (one, other)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_report_counts_what_is_left_out(rows, made):
    report = made[0].report
    assert (report.kept, report.too_long, report.blank) == (101, 1, 1)
    assert "101 rows kept, 1 too long, 1 blank" in str(report)
    words = sum(
        len(text.split()) for _, *pair in rows["train"][:101] for text in pair
    )
    assert report.tokens == words + 2 * 101


def test_another_label_is_another_corpus(rows, tokenizer, made):
    (label, *texts), *rest = rows["train"]
    other = ("low" if label != "low" else "odd", *texts)
    changed = rows | {"train": [other, *rest]}
    first, second = made[0].checksums, make(changed, tokenizer).checksums
    assert first[0] != second[0] and first[1] == second[1]


def test_texts_that_do_not_fit_are_refused(rows, tokenizer):
    with pytest.raises(ValueError, match="fits max_length=2: 7 are too long"):
        make(rows, tokenizer, max_length=2)


def test_a_label_that_the_run_does_not_know_is_refused(rows, tokenizer):
    with pytest.raises(
        ValueError, match="not begin with: 'odd'. .*: 'high', 'low'"
    ):
        make(rows, tokenizer, classes=CLASSES[:2])


def test_a_text_alone_is_the_only_input(rows, tokenizer):
    texts = {
        split: [(text,) for _, text, _ in of_split]
        for split, of_split in rows.items()
    }
    batches = make(texts, tokenizer, {"text": columns.Text(start=True)})
    found = []
    for ids, labels, weights in batches.training(0):
        labels = labels.numpy()
        assert np.all(ids[:, 0] == START)
        # Each label is the next input, but END, which is none.
        following = np.where(labels[:, 1:] > 0, labels[:, :-1], 0)
        np.testing.assert_array_equal(ids[:, 1:], following)
        assert np.sum(weights) == pytest.approx(1)
        found += [t.decode() for t in tokenizer.detokenize(labels).numpy()]
    fitting = [text for (text,) in texts["train"] if len(text.split()) < 9]
    assert sorted(found) == sorted(fitting)


def test_numbers_are_inputs_beside_a_class(rows, tokenizer):
    def with_numbers(of_split):
        return [
            (label, text, np.array([number, number / 2]))
            for number, (label, text, _) in enumerate(of_split)
        ]

    of_rows = {
        "label": columns.Class(),
        "source": columns.Text(),
        "sizes": columns.Numbers(),
    }
    numbered = {split: with_numbers(one) for split, one in rows.items()}
    batches = make(numbered, tokenizer, of_rows, replicas=2)
    found = []
    for inputs, labels, weights in batches.training(0):
        assert inputs["sizes"].dtype == "float32"
        for row in np.flatnonzero(weights.numpy()):
            (text,) = tokenizer.detokenize(inputs["source_ids"][row][None])
            label = CLASSES[labels.numpy()[row]]
            found.append(
                (label, text.numpy().decode(), *inputs["sizes"][row].numpy())
            )
    expected = [
        (label, text, *numbers)
        for label, text, numbers in numbered["train"]
        if len(text.split()) < 10
    ]
    assert sorted(found) == sorted(expected)
    changed = rows_with_first_number(numbered, 99.0)
    assert (
        make(changed, tokenizer, of_rows).checksums[0] != batches.checksums[0]
    )


def rows_with_first_number(rows, number):
    (label, text, _), *rest = rows["train"]
    return rows | {"train": [(label, text, np.array([number, 0.0])), *rest]}


def test_a_sampled_epoch_has_other_pieces_of_the_same_rows(rows):
    texts = [text for _, *pair in rows["train"] for text in pair]
    subwords = data.Tokenizer(data.train_vocabulary(texts, 300), "texts")
    batches = make(rows, subwords, subword_sampling=0.1, max_length=60)
    epochs = [list(batches.training(n)) for n in range(2)]
    kept = [row for row in rows["train"] if row[2]]
    for epoch in epochs:
        assert sorted(rows_of(epoch, subwords)) == sorted(kept)
    sizes = [
        sum(int(np.sum(inputs["source_ids"] > 0)) for inputs, _, _ in epoch)
        for epoch in epochs
    ]
    assert sizes[0] != sizes[1]


def test_inputs_may_be_several_columns_in_a_row(rows, tokenizer):
    def joined(block):
        ids = tf.concat([block["source_ids"], block["pair_ids"]], axis=1)
        return {"label": block["label"], "source_ids": ids}

    batches = make(rows, tokenizer, inputs=joined, max_tokens=80)
    found = []
    for inputs, labels, weights in batches.training(0):
        assert list(inputs) == ["source_ids"]
        for row in np.flatnonzero(weights.numpy()):
            ids = inputs["source_ids"].numpy()[row]
            end = ids.tolist().index(END)
            pair = (
                tokenizer.detokenize([ids[:end]]),
                tokenizer.detokenize([ids[end:]]),
            )
            label = CLASSES[labels.numpy()[row]]
            found.append((label, *(text.numpy()[0].decode() for text in pair)))
    assert sorted(found) == sorted(rows["train"][:101])


def cut_by_hand(ids, max_length, keep):
    """Tokens of one row, by the words of `columns.cut`."""
    if len(ids) <= max_length:
        return ids
    if keep == "start":
        return [*ids[: max_length - 1], END]
    begins = [0, *(i + 1 for i, one in enumerate(ids[:-1]) if one == END)]
    fitting = [i for i in begins if len(ids) - i <= max_length]
    return ids[fitting[0] :] if fitting else ids[-max_length:]


@pytest.mark.parametrize("keep", ["start", "end"])
@pytest.mark.parametrize("max_length", [2, 3, 5, 8])
def test_a_long_text_keeps_one_end(keep, max_length):
    rng = np.random.default_rng(2)
    texts = [
        [
            one
            for _ in range(rng.integers(1, 5))
            for one in (*rng.integers(4, 9, rng.integers(1, 5)).tolist(), END)
        ]
        for _ in range(60)
    ]
    ids = tf.ragged.constant(texts, tf.int32)
    kept = columns.cut(ids, max_length, keep).to_list()
    assert kept == [cut_by_hand(one, max_length, keep) for one in texts]
    assert max(map(len, kept)) <= max_length
    assert all(one[-1] == END for one in kept)


@pytest.mark.parametrize("keep", ["start", "end"])
def test_no_texts_are_cut_to_no_texts(keep):
    splits = tf.zeros([1], tf.int64)
    none = tf.RaggedTensor.from_row_splits(tf.zeros([0], tf.int32), splits)
    assert columns.cut(none, 3, keep).to_list() == []


def test_long_stories_lose_their_first_sentences_and_are_counted(tokenizer):
    of_rows = {
        "story": columns.Text(sentences=True, keep="end"),
        "question": columns.Text(),
        "answer": columns.Class(),
    }
    stories = ["one two\nthree", "one\ntwo two\nthree four five"] * 3
    rows = {
        split: [(story, "four", "odd") for story in stories]
        for split in ("train", "validation")
    }
    batches = make(rows, tokenizer, of_rows, max_length=8)
    assert (batches.report.kept, batches.report.cut) == (6, 3)
    assert "6 rows kept (3 of them cut)" in str(batches.report)
    inputs, _, _ = next(iter(batches.training(0)))
    one, two, three, four, five = (
        int(tokenizer.tokenize([word]).flat_values[0])
        for word in "one two three four five".split()
    )
    found = {tuple(row) for row in inputs["story_ids"].numpy().tolist()}
    assert found == {
        (one, two, END, three, END, 0, 0),
        (two, two, END, three, four, five, END),
    }


def test_a_text_that_is_written_is_never_cut():
    with pytest.raises(ValueError, match="learn to stop there"):
        columns.Text(start=True, keep="end")
