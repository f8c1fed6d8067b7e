"""Files of tab-separated pairs: columns, languages and splits."""

import csv
import gzip
import io
import os

import pytest

from keras_attention.data import corpora
from keras_attention.data.readers import tab_separated


def write_pairs(path, pairs, *more):
    text = "".join("\t".join((*pair, *more)) + "\n" for pair in pairs)
    path.write_bytes(text.encode())
    return path


PAIRS = [(f"source {n // 2}", f"target {n}") for n in range(400)]


def texts(corpus, read):
    return {split: read(pairs) for split, pairs in corpus.splits.items()}


def test_a_file_is_split_by_its_sources(tmp_path, read):
    corpus = corpora.load(write_pairs(tmp_path / "pairs.tsv", PAIRS))
    found = texts(corpus, read)
    # 200 sources: a tenth for validation, a tenth for the test.
    assert corpus.sizes == {"train": 320, "validation": 40, "test": 40}
    for split, pairs in found.items():
        assert len(pairs) == corpus.sizes[split]
        assert corpus.splits[split].cardinality() == corpus.sizes[split]
    # Nothing is lost, and no source stands in two splits.
    assert sorted(sum(found.values(), [])) == sorted(PAIRS)
    sources = [{source for source, _ in pairs} for pairs in found.values()]
    assert sum(map(len, sources)) == len(set.union(*sources)) == 200
    # Training keeps the order of the file. The other splits are no
    # stretches of it, but the pairs of a source stay together.
    assert found["train"] == sorted(found["train"], key=PAIRS.index)
    order = [PAIRS.index(pair) for pair in found["validation"]]
    assert order != sorted(order)
    assert order[1::2] == [index + 1 for index in order[::2]]


def test_the_file_alone_decides(tmp_path, read):
    """Neither its order nor its name, place and compression do."""
    one = corpora.load(write_pairs(tmp_path / "pairs.tsv", PAIRS))
    folder = tmp_path / "folder"
    folder.mkdir()
    turned = write_pairs(tmp_path / "turned", PAIRS[::-1], "CC-BY 2.0")
    content = b"\xef\xbb\xbf" + turned.read_bytes().replace(b"\n", b"\r\n")
    (folder / "en_de.tsv.gz").write_bytes(gzip.compress(content))
    other = corpora.load(folder)
    assert {
        split: sorted(pairs) for split, pairs in texts(one, read).items()
    } == {split: sorted(pairs) for split, pairs in texts(other, read).items()}


def test_forms_of_one_source_stay_together(tmp_path, read):
    forms = ["ﬁne 1", "fine  1", " fine 1 ", "fine １"]
    pairs = [(form, f"gut {n}") for n, form in enumerate(forms)]
    corpus = corpora.load(write_pairs(tmp_path / "x.tsv", PAIRS[:20] + pairs))
    splits = {
        split
        for split, found in texts(corpus, read).items()
        for source, _ in found
        if "1" in source and "source" not in source or "１" in source
    }
    assert len(splits) == 1


@pytest.mark.parametrize("count", [3, 4, 19])
def test_a_small_file_has_all_splits(tmp_path, count):
    pairs = [(f"{n}", f"{n}") for n in range(count)]
    corpus = corpora.load(write_pairs(tmp_path / "x.tsv", pairs))
    assert corpus.sizes == {"train": count - 2, "validation": 1, "test": 1}


def test_a_large_file_holds_out_a_thousand_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(tab_separated, "HELD_OUT", 5)
    pairs = [(f"{n % 500}", f"{n}") for n in range(1000)]
    corpus = corpora.load(write_pairs(tmp_path / "x.tsv", pairs))
    assert corpus.sizes == {"train": 980, "validation": 10, "test": 10}


def test_too_few_sources_are_refused(tmp_path):
    path = write_pairs(tmp_path / "x.tsv", [("a", "b"), ("c", "d")] * 10)
    with pytest.raises(ValueError, match="x.tsv has 2 different sources"):
        corpora.load(path)


# Languages.


@pytest.mark.parametrize(
    "name, source, target, turned",
    [
        ("deu.txt", "en", "de", False),
        ("deu.txt", "de", "en", True),
        ("deu.txt.gz", "deu", "eng", True),
        ("spa.txt", "es-MX", "en", True),
        ("pairs.tsv", "de", "en", False),
        ("de.tsv", "de", "en", False),
    ],
)
def test_which_column_is_the_source(tmp_path, name, source, target, turned):
    path = tmp_path / name
    content = b"Hi.\tHallo!\tCC-BY 2.0 (France) #538123\n"
    if path.suffix == ".gz":
        content = gzip.compress(content)
    path.write_bytes(content)
    expected = ("Hallo!", "Hi.") if turned else ("Hi.", "Hallo!")
    assert [*tab_separated.read_pairs(path, source, target)] == [expected]


def test_a_folder_as_it_is_downloaded(tmp_path):
    write_pairs(tmp_path / "deu.txt", PAIRS, "CC-BY 2.0")
    write_pairs(tmp_path / "fra.txt", PAIRS)
    (tmp_path / "_about.txt").write_text("about")
    (tmp_path / "deu_about.txt").write_text("about")
    assert corpora.load(tmp_path, "en", "de").sizes["train"] == 320
    with pytest.raises(ValueError, match="It has no split"):
        corpora.load(tmp_path, "en", "es")
    write_pairs(tmp_path / "deu.txt.bz2", PAIRS)
    with pytest.raises(ValueError, match="Name one of them instead"):
        corpora.load(tmp_path, "en", "de")


def test_a_file_for_each_split(tmp_path, read):
    for split in ("train", "dev", "test_news"):
        write_pairs(tmp_path / f"{split}.tsv", [(split, split.upper())])
    found = texts(corpora.load(tmp_path), read)
    assert found == {
        "train": [("train", "TRAIN")],
        "validation": [("dev", "DEV")],
        "test_news": [("test_news", "TEST_NEWS")],
    }
    for language in ("en", "de"):
        (tmp_path / f"test.{language}").write_text("x\n")
    assert corpora.load(tmp_path).sizes["test"] == 1
    write_pairs(tmp_path / "test.tsv", [("a", "b")])
    with pytest.raises(ValueError, match="test has two files"):
        corpora.load(tmp_path)
    write_pairs(tmp_path / "val.tsv", [("a", "b")])
    with pytest.raises(ValueError, match="validation has two files"):
        corpora.load(tmp_path)


# Lines.


@pytest.mark.parametrize(
    "line, columns",
    [("no tab", 1), ("1\ta\t2\tb", 4)],
)
def test_other_columns_are_refused_by_line(tmp_path, line, columns):
    path = write_pairs(tmp_path / "x.tsv", [("a", "b"), ("c", "d"), (line,)])
    with pytest.raises(ValueError, match=f"line 3 has {columns} columns"):
        corpora.load(path)


def test_odd_lines(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_bytes(
        "\ufeffa\t\ufeffb\r\n\n \nc\u2028c\td\x85d\n\te\nf\t\n".encode()
    )
    assert [*tab_separated.read_pairs(path, "en", "de")] == [
        ("a", "b"),
        ("", ""),
        ("", ""),
        ("c\u2028c", "d\x85d"),
        ("", "e"),
        ("f", ""),
    ]


@pytest.mark.parametrize(
    "header",
    [("en", "de"), ("de", "EN"), ("source", "target"), ("id", "deu", "en-GB")],
)
@pytest.mark.parametrize(
    "name, options",
    [
        ("x.csv", {}),
        ("x.csv.gz", {"quoting": csv.QUOTE_ALL}),
        ("x.tsv", {"delimiter": "\t"}),
    ],
)
def test_a_table_with_a_header(tmp_path, header, name, options):
    pairs = [('a "b", c', "d\te"), ("f", "g\nh"), ("en", "de")]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n", **options)
    turned = header[-1].startswith(("EN", "en"))
    first = [7] * (len(header) - 2)
    writer.writerow(header)
    writer.writerows([*first, *pair[:: -1 if turned else 1]] for pair in pairs)
    opened = gzip.open if name.endswith(".gz") else open
    with opened(tmp_path / name, "wt") as opened_file:
        opened_file.write(file.getvalue())
    assert [*tab_separated.read_pairs(tmp_path / name, "en", "de")] == pairs


def test_a_row_of_other_columns_than_its_header_is_refused(tmp_path):
    path = write_pairs(tmp_path / "x.tsv", [("id", "en", "de"), ("a", "b")])
    with pytest.raises(ValueError, match="has 2 columns. The header has 3"):
        list(tab_separated.read_pairs(path, "en", "de"))


def test_quotation_marks_of_a_person_are_text(tmp_path):
    pairs = [('"a" b', "c"), ("d", '"e"'), ('f" g', "h")]
    path = write_pairs(tmp_path / "x.tsv", pairs)
    assert [*tab_separated.read_pairs(path, "en", "de")] == pairs


def test_an_empty_file_is_refused(tmp_path):
    write_pairs(tmp_path / "train.tsv", [])
    write_pairs(tmp_path / "val.tsv", [("a", "b")])
    with pytest.raises(ValueError, match="train.tsv, line 1: .* is empty"):
        corpora.load(tmp_path)


@pytest.mark.skipif(
    "KERAS_ATTENTION_MANYTHINGS" not in os.environ,
    reason="KERAS_ATTENTION_MANYTHINGS names no folder with deu.txt.gz",
)
def test_manythings_can_be_read():
    folder = os.environ["KERAS_ATTENTION_MANYTHINGS"]
    corpus = corpora.load(folder, "en", "de")
    assert sum(corpus.sizes.values()) == 169_197
    assert next(iter(corpus.splits["train"]))["source"] == b"Hi."
