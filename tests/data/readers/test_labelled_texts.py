"""Texts with labels, in the files of their authors and in your own."""

import gzip
import json
import re

import pytest

from keras_attention.data.readers import labelled_texts

TREES = [
    "(3 (2 It) (4 (2 really) (4 works)))",
    "(1 (2 (2 -LRB-) (2 no)) (0 (1 bad) (2 10\\/10)))",
    "(2 (2 so) (2 so))",
]
SICK_HEAD = (
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
)


def write(folder, files):
    for name, rows in files.items():
        content = "".join(f"{row}\n" for row in rows)
        content = content.encode("latin-1" if "label" in name else "utf-8")
        if name.endswith(".gz"):
            content = gzip.compress(content)
        (folder / name).write_bytes(content)


def rows(texts):
    return list(zip(texts.labels, *texts.texts, strict=True))


def test_trec(tmp_path):
    train = [f"NUM:date When was {year} ?" for year in range(1900, 1921)]
    train[20] = train[5] = "HUM:ind Who is Señor Wences ?"
    test = ["NUM:dist How far is it ?"]
    write(tmp_path, {"train_5500.label": train, "TREC_10.label.gz": test})
    corpus = labelled_texts.load(tmp_path, 1)
    splits = corpus.splits
    assert rows(splits["validation"]) == [
        ("NUM", "When was 1900 ?"),
        ("NUM", "When was 1910 ?"),
        ("HUM", "Who is Señor Wences ?"),
    ]
    assert len(splits["train"]) == 18
    assert rows(splits["test"]) == [("NUM", "How far is it ?")]


def test_a_line_of_trec_without_a_question_is_refused(tmp_path):
    train = ["NUM:date When was it ?", ""]
    write(tmp_path, {"train_5500.label": train, "TREC_10.label": []})
    message = "Expected a label, .*train_5500.label, line 2: ''"
    with pytest.raises(ValueError, match=message):
        labelled_texts.load(tmp_path, 1)


@pytest.mark.parametrize(
    "names, labels",
    [
        (("rt-polarity.pos", "rt-polarity.neg"), ("positive", "negative")),
        (
            ("quote.tok.gt9.5000.gz", "plot.tok.gt9.5000.gz"),
            ("subjective", "objective"),
        ),
    ],
)
def test_sentences_without_a_split(tmp_path, names, labels):
    files = {
        name: [f"{label} {number} " for number in range(20)]
        for name, label in zip(names, labels, strict=True)
    }
    write(tmp_path, files)
    splits = labelled_texts.load(tmp_path, 1).splits
    for place, split in enumerate(("test", "validation")):
        assert rows(splits[split]) == [
            (label, f"{label} {number}")
            for label in labels
            for number in (place, place + 10)
        ]
    assert len(splits["train"]) == 32
    seen = [text for split in splits.values() for text in split.texts[0]]
    assert len(set(seen)) == 40


def test_trees_of_phrases(tmp_path):
    write(
        tmp_path,
        {
            "train.txt.gz": TREES + TREES[:1],
            "dev.txt": TREES,
            "test.txt": TREES,
        },
    )
    splits = labelled_texts.load(tmp_path, 1).splits
    whole = [("positive", "It really works"), ("negative", "( no bad 10/10")]
    assert rows(splits["validation"]) == rows(splits["test"]) == whole
    # Neutral phrases are left out, and each other one stands once.
    assert rows(splits["train"]) == [
        ("positive", "works"),
        ("positive", "really works"),
        ("positive", "It really works"),
        ("negative", "bad"),
        ("negative", "bad 10/10"),
        ("negative", "( no bad 10/10"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "(3 (2 It) works",
        "(3 (2 It)) works)",
        "(3 It) (2 works)",
        "(3 (It) (2 works))",
        "It works",
        "",
    ],
)
def test_a_broken_tree_is_refused(tmp_path, line):
    files = {"train.txt": [TREES[0], line], "dev.txt": [], "test.txt": []}
    write(tmp_path, files)
    message = f"Expected a tree .*train.txt, line 2: {re.escape(repr(line))}"
    with pytest.raises(ValueError, match=message):
        labelled_texts.load(tmp_path, 1)


def test_sick(tmp_path):
    table = [SICK_HEAD, "1\tA dog runs\tAn animal runs\t4.5\tENTAILMENT"]
    names = ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt.gz")
    write(tmp_path, dict.fromkeys(names, table))
    corpus = labelled_texts.load(tmp_path, 2)
    assert corpus.classes == ["entailment"]
    for texts in corpus.splits.values():
        assert rows(texts) == [("entailment", "A dog runs", "An animal runs")]


@pytest.mark.parametrize(
    "table, message",
    [
        ([SICK_HEAD, ""], "Expected 5 columns .*, line 2: ''"),
        ([SICK_HEAD, "1\tA dog runs"], "Expected 5 columns .*, line 2: '1"),
        (["pair_ID\tsentence_A"], "names .*sentence_B.*, line 1: 'pair_ID"),
        ([], "names .*SICK_train.txt, line 1: ''"),
    ],
)
def test_a_broken_table_of_sick_is_refused(tmp_path, table, message):
    names = ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt")
    write(tmp_path, dict.fromkeys(names, table))
    with pytest.raises(ValueError, match=message):
        labelled_texts.load(tmp_path, 2)


def test_your_own_tables(tmp_path):
    files = {
        "train.tsv": ["b\tone ", "a\ttwo", "", "b\tthree"],
        "dev.tsv.gz": ["a\tfour"],
        "test_new.tsv": ["b\tfünf"],
        "notes.txt": ["not a split"],
    }
    write(tmp_path, files)
    corpus = labelled_texts.load(tmp_path, 1)
    assert corpus.classes == ["a", "b"]
    assert rows(corpus.splits["train"]) == [
        ("b", "one"),
        ("a", "two"),
        ("b", "three"),
    ]
    assert set(corpus.splits) == {"train", "validation", "test_new"}
    assert rows(corpus.splits["test_new"]) == [("b", "fünf")]


def test_one_file_of_objects_is_split_by_its_premises(tmp_path):
    pairs = [
        {"premise": f"p {n // 2} ", "hypothesis": f"h {n}", "label": "yes"}
        for n in range(200)
    ]
    write(tmp_path, {"all.jsonl.gz": map(json.dumps, pairs)})
    splits = labelled_texts.load(tmp_path / "all.jsonl.gz", 2).splits
    assert sum(map(len, splits.values())) == 200
    premises = [set(splits[name].texts[0]) for name in splits]
    assert len(premises) == 3 and not set.intersection(*premises)
    assert sum(map(len, premises)) == 100
    assert 5 <= len(premises[1]) <= 16 and 5 <= len(premises[2]) <= 16


@pytest.mark.parametrize(
    "files, num_texts, message",
    [
        ({"train.tsv": ["a\tb"]}, 1, "Expected validation.tsv"),
        ({"train.tsv": ["a"], "dev.tsv": ["a\tb"]}, 1, "line 1: 'a'"),
        (
            {"train.tsv": ["a\tb"], "dev.tsv": ["a\tb"]},
            2,
            "2 texts in each row. Received: 1 in row 1 of validation",
        ),
        (
            {"train.tsv": ["a\tb"], "dev.tsv": ["c\tb"]},
            1,
            r"labels of train \(a\) in validation. Received: 'c'",
        ),
        (
            {"train.tsv": ["a\tb"], "train.jsonl": [], "dev.tsv": ["a\tb"]},
            1,
            "one file for train",
        ),
        ({"train.jsonl": ['{"label": "a"}']}, 2, "JSON .*train.jsonl, line 1"),
    ],
)
def test_what_is_no_corpus_is_refused(tmp_path, files, num_texts, message):
    write(tmp_path, files)
    with pytest.raises(ValueError, match=message):
        labelled_texts.load(tmp_path, num_texts)


def test_a_folder_that_is_missing_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Expected a folder .*missing"):
        labelled_texts.load(tmp_path / "missing", 1)
