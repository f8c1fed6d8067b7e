"""Links of words: read, found, carried to tokens, and followed."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import small_runs

from keras_attention import config, data, runs, tasks
from keras_attention.data import corpora
from keras_attention.evaluation import gold_alignment
from keras_attention.tasks import guided_alignment
from keras_attention.tokens import START, UNK

PAIRS = [
    ("the grey cats sat", "die grauen katzen sassen"),
    ("a dog", "ein hund"),
    ("cats", "katzen"),
    ("the dog sat", "sass der hund"),
]
LINKS = ["0-0 1-1 2-2 3-3 3-0", "0-0 1-1", "", "2-0 0-1 1-2"]


def corpus_of(pairs=PAIRS):
    rows = {"train": pairs, "validation": PAIRS[:2], "test": PAIRS[:1]}
    return corpora.Corpus.of_rows("mine", ("source", "target"), rows)


def vocabularies(model_type="unigram", texts=None, **options):
    texts = texts or [text for pair in PAIRS for text in pair]
    size = 300 if model_type in ("unigram", "bpe") else 60
    model = data.train_vocabulary(texts, size, model_type, **options)
    return tuple(data.Tokenizer(model, name) for name in ("source", "target"))


@pytest.fixture
def write(tmp_path):
    def write(rows):
        path = tmp_path / "links"
        path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
        return str(path)

    return write


def links_of(corpus, split="train"):
    rows = corpus.splits[split].as_numpy_iterator()
    return [row["links"].decode() for row in rows]


def test_rows_of_training_have_the_links_of_the_file(write):
    corpus = corpus_of()
    linked = guided_alignment.with_links(corpus, write(LINKS), vocabularies())
    assert links_of(linked) == LINKS
    assert links_of(linked, "validation") == ["", ""]
    assert linked.sizes == corpus.sizes
    assert linked.splits["test"] is corpus.splits["test"]
    assert list(linked.texts("train", "source")) == [pair[0] for pair in PAIRS]


@pytest.mark.parametrize(
    "rows, message",
    [
        (LINKS[:3], "has 3 lines, and there are 4 training pairs"),
        ([*LINKS, "", ""], "has 6 lines, and there are 4 training pairs"),
        ([], "has 0 lines"),
        (["0-0", "1", "", ""], "line 2: '1' is no link. Write 0-2 for a li"),
        (["0-0", "1p1", "", ""], "line 2: '1p1' is no link"),
        (["4-4", "", "", ""], "line 1: '4-4' links word 4 of the source, whi"),
        (["", "", "0-1", ""], "line 3: '0-1' links word 1 of the target, whic"),
    ],
)
def test_what_is_no_file_of_links(rows, message, write):
    with pytest.raises(ValueError, match=message):
        guided_alignment.with_links(corpus_of(), write(rows), vocabularies())


def test_a_file_that_is_not_there():
    with pytest.raises(ValueError, match="There is no file nowhere. Give"):
        guided_alignment.with_links(corpus_of(), "nowhere", vocabularies())


def test_a_pair_that_is_divided_otherwise_has_no_links(write, capsys):
    pairs = [*PAIRS[:3], ("the dog\tsat", "sass der hund")]
    links = write([*LINKS[:3], "0-0"])
    linked = guided_alignment.with_links(
        corpus_of(pairs), links, vocabularies()
    )
    assert links_of(linked) == [*LINKS[:3], ""]
    assert "1 of 4 training pairs train without" in capsys.readouterr().out


def test_a_hidden_markov_model_finds_the_links():
    """Digits and their names, whose order is the same."""
    rng = np.random.default_rng(0)
    names = small_runs.NAMES
    rows = [rng.permutation(10)[: rng.integers(1, 6)] for _ in range(300)]
    pairs = [
        (" ".join(map(str, row)), " ".join(names[digit] for digit in row))
        for row in rows
    ]
    tokenizers = vocabularies("word", [text for pair in pairs for text in pair])
    linked = guided_alignment.with_links(corpus_of(pairs), "hmm", tokenizers)
    right = made = 0
    for row, links in zip(rows, links_of(linked), strict=True):
        found = {tuple(map(int, link.split("-"))) for link in links.split()}
        right += sum(source == target for source, target in found)
        made += len(row)
    assert right / made > 0.98


def test_a_hidden_markov_model_needs_words():
    """Texts without spaces are one word each."""
    pairs = [("くろねこ", "black cat"), ("ねこ", "cat")]
    with pytest.raises(ValueError, match="No text of the source has two words"):
        guided_alignment.with_links(corpus_of(pairs), "hmm", vocabularies())


def batches_of(tokenizers, path, rows=PAIRS, epoch=0, **choices):
    """The batches of a training by the task's own pipeline."""
    keras.utils.set_random_seed(1)
    choices = config.resolve(
        config.make(model="rnnsearch", guided_alignment=path, **choices)
    )
    task = tasks.get("translation")
    pipeline = task.pipeline(choices, corpus_of(rows), tokenizers, 3)
    return list(pipeline.training(epoch)), pipeline


def spelt(tokenizer, ids):
    """What tokens spell; an unknown word is "?"."""
    pieces = tokenizer.pieces(ids).numpy()
    return "".join(
        "▁?" if index == UNK else piece.decode()
        for index, piece in zip(ids, pieces, strict=True)
    )


@pytest.mark.fast_for("bpe", "word")
@pytest.mark.parametrize(
    "model_type, sampling",
    [("unigram", 0.0), ("unigram", 0.1), ("bpe", 0), ("char", 0), ("word", 0)],
)
def test_tokens_are_linked_as_their_words_are(model_type, sampling, write):
    tokenizers = vocabularies(model_type)
    batches, _ = batches_of(
        tokenizers, write(LINKS), subword_sampling=float(sampling)
    )
    found = {}
    for inputs, labels, weights in batches:
        for source, target, row, weight, links in zip(
            inputs["source_ids"].numpy(),
            labels.numpy(),
            inputs["target_ids"].numpy(),
            weights.numpy(),
            inputs["links"].numpy(),
            strict=True,
        ):
            pairs = set(map(tuple, links[links >= 0].reshape(-1, 2)))
            if not weight.any():
                assert not pairs
                continue
            assert row[0] == START
            by_sources = {}
            for place, label in sorted(pairs):
                by_sources.setdefault(label, []).append(place)
            words = {}
            for label, places in by_sources.items():
                words.setdefault(tuple(places), []).append(label)
            text = tokenizers[0].detokenize(source).numpy().decode()
            found[text] = {
                (
                    spelt(tokenizers[0], source[list(places)]),
                    spelt(tokenizers[1], target[labels_of]),
                )
                for places, labels_of in words.items()
            }
    assert found == {
        "the grey cats sat": {
            ("▁the▁sat", "▁die"),
            ("▁grey", "▁grauen"),
            ("▁cats", "▁katzen"),
            ("▁sat", "▁sassen"),
        },
        "a dog": {("▁a", "▁ein"), ("▁dog", "▁hund")},
        "cats": set(),
        "the dog sat": {("▁sat", "▁sass"), ("▁the", "▁der"), ("▁dog", "▁hund")},
    }


@pytest.mark.fast_for("word")
@pytest.mark.parametrize("model_type", ["word", "char", "unigram"])
def test_unknown_words_are_words(model_type, write, capsys):
    """Whatever a vocabulary does with them, the words behind keep links."""
    pairs = [("日本 dog 語 語 語", "日本 hund 語"), *PAIRS]
    tokenizers = vocabularies(model_type)
    (batch, *_), _ = batches_of(
        tokenizers, write(["1-1", *[""] * 4]), pairs, max_tokens=1000
    )
    assert not capsys.readouterr().out
    inputs, labels, _ = batch
    (row,) = np.flatnonzero((inputs["links"].numpy() >= 0).any(axis=1))
    links = inputs["links"].numpy()[row]
    source, target = links[links >= 0].reshape(-1, 2).T
    source = inputs["source_ids"].numpy()[row][np.unique(source)]
    target = labels.numpy()[row][np.unique(target)]
    assert spelt(tokenizers[0], source) == "▁dog"
    assert spelt(tokenizers[1], target) == "▁hund"


def test_links_change_nothing_but_themselves(write):
    """Batches are those of a training without links; the checksum is not."""
    tokenizers = vocabularies()
    guided, pipeline = batches_of(tokenizers, write(LINKS))
    plain, other = batches_of(tokenizers, None)
    for (inputs, *rest), (expected, *others) in zip(guided, plain, strict=True):
        inputs = dict(inputs)
        del inputs["links"]
        for one, two in zip(
            keras.tree.flatten([inputs, rest]),
            keras.tree.flatten([expected, others]),
            strict=True,
        ):
            np.testing.assert_array_equal(one, two)
    unlinked = dataclasses.replace(
        pipeline.report, checksum=other.report.checksum
    )
    assert unlinked == other.report
    _, again = batches_of(tokenizers, write([*LINKS[:3], "2-0"]))
    checksums = {one.checksums[0] for one in (pipeline, other, again)}
    assert len(checksums) == 3
    for inputs, _, _ in pipeline.validation():
        assert (inputs["links"].numpy() == -1).all()


@pytest.mark.parametrize(
    "choices, message",
    [
        (
            {"model": "bytenet"},
            "is for transformer, .* Leave it out for bytenet",
        ),
        (
            {"model": "rnn_language_model"},
            "Leave it out for rnn_language_model",
        ),
        ({"model": "hard_rnnsearch"}, "Leave it out for hard_rnnsearch"),
        ({"distillation_epochs": 1}, "whose links nobody knows"),
        (
            {"guided_alignment": None, "guided_alignment_weight": 2.0},
            "counts beside guided_alignment only",
        ),
    ],
)
def test_choices_that_do_not_go_together(choices, message):
    values = {"model": "luong", "guided_alignment": "hmm", **choices}
    with pytest.raises(ValueError, match=message):
        config.resolve(config.make(**values))


def test_the_path_of_a_file_becomes_absolute(write, tmp_path, monkeypatch):
    write(LINKS)
    monkeypatch.chdir(tmp_path)
    choices = config.resolve(config.make(guided_alignment="links"))
    assert choices.optimizer.guided_alignment == str(tmp_path / "links")
    choices = config.resolve(config.make(guided_alignment="hmm"))
    assert choices.optimizer.guided_alignment == "hmm"


def next_of(count):
    """Each word is linked to the one behind it; the last one to itself."""
    return {(min(i + 1, count - 1), i) for i in range(count)}


def own_of(count):
    return {(i, i) for i in range(count)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Digits and their names, and links to the next word of each pair."""
    path = tmp_path_factory.mktemp("digits")
    small_runs.write_digits(path, train=1500, validation=60)
    rows = [
        " ".join(f"{source}-{target}" for source, target in next_of(count))
        for count in word_counts(path, "train")
    ]
    (path / "links").write_text("\n".join(rows) + "\n")
    return path


def word_counts(folder, split):
    lines = (folder / f"{split}.en").read_text("utf-8").splitlines()
    return [len(line.split()) for line in lines]


def error_of(run, folder, links_of):
    """The alignment error rate of a run on the validation pairs."""
    sides = [
        (folder / f"validation.{side}").read_text("utf-8").splitlines()
        for side in ("en", "de")
    ]
    gold = [
        (links, links)
        for links in map(links_of, word_counts(folder, "validation"))
    ]
    found = gold_alignment.attention_links(
        runs.load(run.path), list(zip(*sides, strict=True))
    )
    return gold_alignment.error_rate(found, gold)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rnnsearch", "transformer"])
def test_attention_follows_the_links(name, folder, tmp_path):
    """Also to words where no attention would look by itself."""

    def train(output, links):
        sizes = (
            small_runs.SIZES
            if name == "transformer"
            else {
                "embedding_dim": 16,
                "units": 32,
                "readout_dim": 16,
            }
        )
        choices = config.make(
            model=name,
            model_arguments=sizes,
            corpus=str(folder),
            output=str(tmp_path / output),
            vocabulary_type="word",
            max_tokens=256,
            epochs=6,
            warmup_steps=20,
            learning_rate=5e-3,
            dropout=0.0,
            validation_sentences=8,
            replicas=1,
            guided_alignment=links,
        )
        return runs.train(choices).directory

    guided = train("guided", str(folder / "links"))
    found = train("found", "hmm")
    first, *_, last = json.loads(guided.history.read_text())
    assert error_of(guided, folder, next_of) < 5
    assert error_of(guided, folder, own_of) > 60
    assert error_of(found, folder, own_of) < 3
    assert last["alignment"] < 0.3 < first["alignment"]
    assert "val_alignment" not in last
