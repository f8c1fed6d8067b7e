"""Texts with labels, in the files of their authors and in your own."""

import csv
import gzip
import io
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


def test_trec(tmp_path):
    train = [f"NUM:date When was {year} ?" for year in range(1900, 1921)]
    train[20] = train[5] = "HUM:ind Who is Señor Wences ?"
    test = ["NUM:dist How far is it ?"]
    write(tmp_path, {"train_5500.label": train, "TREC_10.label.gz": test})
    splits, unlabelled = labelled_texts.load(tmp_path, 1)
    assert not unlabelled
    assert splits["validation"] == [
        ("NUM", "When was 1900 ?"),
        ("NUM", "When was 1910 ?"),
        ("HUM", "Who is Señor Wences ?"),
    ]
    assert len(splits["train"]) == 18
    assert splits["test"] == [("NUM", "How far is it ?")]


def test_a_line_of_trec_without_a_question_is_refused(tmp_path):
    train = ["NUM:date When was it ?", ""]
    write(tmp_path, {"train_5500.label": train, "TREC_10.label": []})
    message = "train_5500.label, line 2 must be a label, .*: ''"
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
    splits = labelled_texts.load(tmp_path, 1)[0]
    for place, split in enumerate(("test", "validation")):
        assert splits[split] == [
            (label, f"{label} {number}")
            for label in labels
            for number in (place, place + 10)
        ]
    assert len(splits["train"]) == 32
    seen = [text for split in splits.values() for _, text in split]
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
    splits = labelled_texts.load(tmp_path, 1)[0]
    whole = [("positive", "It really works"), ("negative", "( no bad 10/10")]
    assert splits["validation"] == splits["test"] == whole
    # Neutral phrases are left out, and each other one stands once.
    assert splits["train"] == [
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
    message = f"train.txt, line 2 must be a tree .*: {re.escape(repr(line))}"
    with pytest.raises(ValueError, match=message):
        labelled_texts.load(tmp_path, 1)


def test_sick(tmp_path):
    table = [SICK_HEAD, "1\tA dog runs\tAn animal runs\t4.5\tENTAILMENT"]
    names = ("SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt.gz")
    write(tmp_path, dict.fromkeys(names, table))
    splits, _ = labelled_texts.load(tmp_path, 2)
    for rows in splits.values():
        assert rows == [("entailment", "A dog runs", "An animal runs")]


@pytest.mark.parametrize(
    "table, message",
    [
        ([SICK_HEAD, ""], "line 2 must be 5 columns .*: ''"),
        ([SICK_HEAD, "1\tA dog runs"], "line 2 must be 5 columns .*: '1"),
        (
            ["pair_ID\tsentence_A"],
            "line 1 must be .*sentence_B.*: 'pair_ID",
        ),
        ([], "SICK_train.txt, line 1 must be names .*: ''"),
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
    splits, _ = labelled_texts.load(tmp_path, 1)
    assert splits["train"] == [
        ("b", "one"),
        ("a", "two"),
        ("b", "three"),
    ]
    assert set(splits) == {"train", "validation", "test_new"}
    assert splits["test_new"] == [("b", "fünf")]


def test_one_file_of_objects_is_split_by_its_premises(tmp_path):
    pairs = [
        {"premise": f"p {n // 2} ", "hypothesis": f"h {n}", "label": "yes"}
        for n in range(200)
    ]
    write(tmp_path, {"all.jsonl.gz": map(json.dumps, pairs)})
    splits = labelled_texts.load(tmp_path / "all.jsonl.gz", 2)[0]
    assert sum(map(len, splits.values())) == 200
    premises = [{row[1] for row in splits[name]} for name in splits]
    assert len(premises) == 3 and not set.intersection(*premises)
    assert sum(map(len, premises)) == 100
    assert 5 <= len(premises[1]) <= 16 and 5 <= len(premises[2]) <= 16


@pytest.mark.parametrize(
    "files, num_texts, message",
    [
        ({"train.tsv": ["a\tb"]}, 1, "lacks validation.tsv"),
        ({"train.tsv": ["a"], "dev.tsv": ["a\tb"]}, 1, "1 columns: 'a'.*"),
        ({"train.tsv": ["a\tb", "a\tb\tc"]}, 1, "line 2 has 3 columns"),
        (
            {"train.tsv": ["a\tb"], "dev.tsv": ["a\tb"]},
            2,
            "two texts.*--columns LABEL,TEXT,TEXT",
        ),
        (
            {"train.tsv": ["a\tb"], "dev.tsv": ["c\tb"]},
            1,
            "dev.tsv, line 1 has the label 'c', .*Labels of train: 'a'.$",
        ),
        (
            {"train.tsv": ["a\tb"], "train.jsonl": [], "dev.tsv": ["a\tb"]},
            1,
            "train has two files",
        ),
        ({"train.jsonl": ['{"label": "a"}']}, 2, "train.jsonl begins with 1"),
        ({"train.jsonl": ["a"]}, 1, "train.jsonl, line 1 is not JSON"),
        ({"train.jsonl": ["[1]"]}, 1, "train.jsonl, line 1 must be a JSON"),
        ({"train.csv": ["a,b", '"c,d']}, 1, "train.csv, line 2: a quotation"),
    ],
)
def test_what_is_no_corpus_is_refused(tmp_path, files, num_texts, message):
    write(tmp_path, files)
    with pytest.raises(ValueError, match=message):
        labelled_texts.load(tmp_path, num_texts)


def test_a_folder_that_is_missing_is_refused(tmp_path):
    with pytest.raises(ValueError, match="There is no corpus .*missing"):
        labelled_texts.load(tmp_path / "missing", 1)


# Tables as people and programs write them.

EXAMPLES = [
    ("neg", 'He said "no", twice'),
    ("pos", "tab\there"),
    ("pos", "two\nlines\tand a tab"),
    ("neg", "plain, with a comma; and more"),
    ("neg", '"all of it"'),
]


def written(rows, header, **options):
    """A table as Python's `csv` writes it, which pandas uses."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n", **options)
    writer.writerows([header] * bool(header) + rows)
    return file.getvalue()


@pytest.mark.parametrize("header", [None, ("label", "text")])
@pytest.mark.parametrize(
    "ending, options",
    [
        ("csv", {}),
        ("csv", {"delimiter": ";"}),
        ("csv", {"quoting": csv.QUOTE_ALL}),
        ("tsv", {"delimiter": "\t"}),
        ("tsv", {"delimiter": "\t", "quoting": csv.QUOTE_ALL}),
        ("tsv", {"delimiter": "\t", "quoting": csv.QUOTE_NONNUMERIC}),
    ],
)
def test_a_table_that_a_program_wrote(tmp_path, header, ending, options):
    for split in ("train", "validation"):
        table = written(EXAMPLES, header, **options)
        (tmp_path / f"{split}.{ending}").write_text(table)
    splits, unlabelled = labelled_texts.load(tmp_path, 1)
    assert splits == {"train": EXAMPLES, "validation": EXAMPLES}
    assert not unlabelled


def test_quotation_marks_of_a_person_are_text(tmp_path):
    rows = [
        ("neg", '"What a film!"'),
        ("pos", 'said "yes'),
        ("neg", '"Oh", he said'),
        ("pos", '5" of snow'),
    ]
    table = "".join(f"{label}\t{text}\n" for label, text in rows)
    for split in ("train", "validation"):
        (tmp_path / f"{split}.tsv").write_text(table)
    assert labelled_texts.load(tmp_path, 1)[0]["train"] == rows


@pytest.mark.parametrize(
    "header, row, num_texts, names, expected",
    [
        # GLUE's SST-2, SNLI, an index of pandas, IMDb's reviews.
        ("sentence\tlabel", "good\t1", 1, (), ("1", "good")),
        (
            "gold_label\tid\tsentence1\tsentence2",
            "neutral\t7\tone\ttwo",
            2,
            (),
            ("neutral", "one", "two"),
        ),
        ("\tText\tLabel", "0\tgood\tpos", 1, (), ("pos", "good")),
        ("review\tsentiment", "good\tpos", 1, (), ("pos", "good")),
        ("label\twords", "pos\tgood", 1, (), ("pos", "good")),
        # Others are named, or counted.
        (
            "mood\tid\tremark",
            "pos\t7\tgood",
            1,
            ("mood", "Remark"),
            ("pos", "good"),
        ),
        ("text\tlabel", "good\tpos", 1, ("2", "1"), ("pos", "good")),
        ("id\tbody\tlabel", "7\tgood\tpos", 1, ("3", "2"), ("pos", "good")),
        (None, "7\tgood\tpos", 1, ("3", "2"), ("pos", "good")),
    ],
)
def test_columns_are_found_by_name(
    tmp_path, header, row, num_texts, names, expected
):
    table = [header] * (header is not None) + [row]
    write(tmp_path, {"train.tsv": table, "dev.tsv": table})
    splits, _ = labelled_texts.load(tmp_path, num_texts, names)
    assert splits == {"train": [expected], "validation": [expected]}
    if header is not None:
        keys = [header.split("\t"), row.split("\t")]
        line = json.dumps(dict(zip(*keys, strict=True)))
        write(tmp_path, {"all.jsonl": [line]})
        if not names or not names[0].isdigit():
            for split in ("train", "dev"):
                (tmp_path / f"{split}.tsv").unlink()
                write(tmp_path, {f"{split}.jsonl": [line]})
            splits, _ = labelled_texts.load(tmp_path, num_texts, names)
            assert splits["train"] == [expected]


@pytest.mark.parametrize(
    "names, message",
    [
        (("mood", "text"), "no column 'mood'. Its columns: 'label', 'text'"),
        (("1", "3"), "--columns 1,3 names a column that .* has 2 columns"),
        (("label",), "needs 2 names or numbers, one for the label"),
    ],
)
def test_a_column_that_is_not_there_is_refused(tmp_path, names, message):
    write(tmp_path, dict.fromkeys(("train.tsv", "dev.tsv"), ["label\ttext"]))
    with pytest.raises(ValueError, match=message):
        labelled_texts.load(tmp_path, 1, names)


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_header_of_other_names_is_no_row(tmp_path, is_folder):
    table = ["mood\tremark"] + ["pos\tgood", "neg\tbad"] * 60
    table = [f"{row} {n}" if n else row for n, row in enumerate(table)]
    write(tmp_path, {"train.tsv": table, "dev.tsv": table})
    path = tmp_path if is_folder else tmp_path / "train.tsv"
    message = (
        "train.tsv, line 1 looks like a header: 'mood', 'remark'.*"
        "--columns LABEL,TEXT. If it is a row, .*--columns 1,2$"
    )
    with pytest.raises(ValueError, match=message):
        labelled_texts.load(path, 1)
    splits, _ = labelled_texts.load(path, 1, ("mood", "remark"))
    assert {label for label, _ in splits["train"]} == {"pos", "neg"}
    if is_folder:
        splits, _ = labelled_texts.load(path, 1, ("1", "2"))
        assert splits["train"][0] == ("mood", "remark")


@pytest.mark.parametrize(
    "missing", [None, "-", "", " ", "null", "None", "NaN", "nan", "-1", -1]
)
def test_rows_without_a_label_are_left_out(tmp_path, missing):
    good = 1 if isinstance(missing, int) else "pos"
    rows = [{"label": good, "text": "a"}, {"label": missing, "text": "b"}]
    if isinstance(missing, int):
        rows.append({"label": 0, "text": "c"})
    write(
        tmp_path,
        dict.fromkeys(
            ("train.jsonl", "dev.jsonl", "test.jsonl"),
            list(map(json.dumps, rows)),
        ),
    )
    splits, unlabelled = labelled_texts.load(tmp_path, 1)
    expected = [(str(good), "a")] + [("0", "c")] * isinstance(missing, int)
    assert splits == dict.fromkeys(("train", "validation", "test"), expected)
    assert unlabelled == 3
    if missing is None or isinstance(missing, int):
        return
    for path in tmp_path.iterdir():
        path.unlink()
    table = ["pos\ta", f"{missing}\tb"]
    write(tmp_path, dict.fromkeys(("train.tsv", "dev.tsv"), table))
    splits, unlabelled = labelled_texts.load(tmp_path, 1)
    assert splits["train"] == [("pos", "a")] and unlabelled == 2


def test_nan_of_json_is_no_label(tmp_path):
    lines = ['{"label": 1.0, "text": "a"}', '{"label": NaN, "text": "b"}']
    write(tmp_path, dict.fromkeys(("train.jsonl", "dev.jsonl"), lines))
    splits, unlabelled = labelled_texts.load(tmp_path, 1)
    assert splits["train"] == [("1.0", "a")] and unlabelled == 2


def test_minus_one_beside_one_is_a_label(tmp_path):
    table = ["1\tgood", "-1\tbad", "-\tunknown"]
    write(tmp_path, dict.fromkeys(("train.tsv", "dev.tsv"), table))
    splits, unlabelled = labelled_texts.load(tmp_path, 1)
    assert splits["train"] == [("1", "good"), ("-1", "bad")]
    assert unlabelled == 2


def test_a_test_split_without_labels_is_left_out(tmp_path):
    table = ["1\tgood", "0\tbad"]
    files = {"train.tsv": table, "dev.tsv": table, "test.tsv": ["-1\twhat"]}
    write(tmp_path, files)
    splits, unlabelled = labelled_texts.load(tmp_path, 1)
    assert set(splits) == {"train", "validation"} and unlabelled == 1
    write(tmp_path, {"dev.tsv": ["-1\twhat"]})
    with pytest.raises(ValueError, match="No row of validation in .* has a l"):
        labelled_texts.load(tmp_path, 1)


@pytest.mark.parametrize(
    "rows, message",
    [
        (
            ['"pos", "text": "a"', '1, "text": "b"'],
            "of one type. .*line 2 has 1",
        ),
        (
            ['1, "text": "a"', '1.0, "text": "b"'],
            "line 1 has 1, .*line 2 has 1.0",
        ),
        (['1, "text": "a"', 'true, "text": "b"'], "line 1 has 1, .* has True"),
        (
            ['"1", "text": "a"', '"1.0", "text": "b"'],
            "'1', .*a number in one way",
        ),
        (
            ['["pos"], "text": "a"'],
            "label in .*line 1 must be a text .*not .'pos'",
        ),
        (['"pos", "text": null'], "line 1 must have a text, and has None"),
        (['"pos", "text": ["a"]'], "line 1 must have a text, and has .'a'"),
        (['"pos", "text": "a"', '"pos"'], "line 2 has no key 'text'"),
    ],
)
def test_a_row_of_another_kind_is_refused(tmp_path, rows, message):
    lines = [f'{{"label": {row}}}' for row in rows]
    write(tmp_path, dict.fromkeys(("train.jsonl", "dev.jsonl"), lines))
    with pytest.raises(ValueError, match=message) as caught:
        labelled_texts.load(tmp_path, 1)
    assert "train.jsonl" in str(caught.value)


def test_texts_before_labels_are_asked_about(tmp_path):
    """Of GLUE's SST-2 without its header; the error is short."""
    table = [f"{'a long review ' * 30}{n}\t{n % 2}" for n in range(2000)]
    write(tmp_path, {"train.tsv": table, "dev.tsv": table[:20]})
    with pytest.raises(ValueError, match="the other way round") as caught:
        labelled_texts.load(tmp_path, 1)
    assert len(str(caught.value)) < 500
    splits, _ = labelled_texts.load(tmp_path, 1, ("2", "1"))
    assert len(splits["train"]) == 2000
    # So few, but a label as long as a text.
    write(tmp_path, {"train.tsv": table[:2], "dev.tsv": table[2:4]})
    with pytest.raises(ValueError, match="the other way round") as caught:
        labelled_texts.load(tmp_path, 1)
    assert len(str(caught.value)) < 500


def test_no_error_names_all_labels(tmp_path):
    table = [f"class {n}\ttext {n} {k}" for n in range(1000) for k in range(3)]
    write(tmp_path, {"train.tsv": table, "dev.tsv": ["other\ttext"]})
    with pytest.raises(
        ValueError, match="'class 0', .* and 990 more.$"
    ) as caught:
        labelled_texts.load(tmp_path, 1)
    assert len(str(caught.value)) < 500


def test_labels_with_line_ends_and_marks_are_one_line(tmp_path):
    labels = ["very\ngood", "\ufeffbad", "so\tso ", "a \r b"]
    lines = [json.dumps({"label": one, "text": "x"}) for one in labels]
    write(tmp_path, dict.fromkeys(("train.jsonl", "dev.jsonl"), lines))
    splits, _ = labelled_texts.load(tmp_path, 1)
    found = [label for label, _ in splits["train"]]
    assert found == ["very good", "bad", "so so", "a b"]


def test_a_file_that_is_too_small_to_be_split(tmp_path):
    write(tmp_path, {"all.tsv": ["a\tb"]})
    message = "all.tsv is too small to be split: its 1 rows give"
    with pytest.raises(ValueError, match=message) as caught:
        labelled_texts.load(tmp_path / "all.tsv", 1)
    assert "name the file" not in str(caught.value)
