"""Published data sets of labelled texts, read as their authors wrote them.

| files | data set | splits |
|---|---|---|
| `train_5500.label`, `TREC_10.label` | TREC (Li & Roth 2002): six kinds of \
questions | a tenth of train validates |
| `rt-polarity.pos`, `rt-polarity.neg` | MR (Pang & Lee 2005) | by the line |
| `quote.tok.gt9.5000`, `plot.tok.gt9.5000` | SUBJ (Pang & Lee 2004) | by the \
line |
| `train.txt`, `dev.txt`, `test.txt` of trees | SST-2 (Socher et al. 2013) | \
the authors' |
| `SICK_train.txt`, `SICK_trial.txt`, `SICK_test_annotated.txt` | SICK \
(Marelli et al. 2014) | the authors' |

MR and SUBJ have no split of their own: papers validate ten times across them.
Here each tenth line is the test, beginning with the first, and each tenth
beginning with the second validates: one fold of ten, the same at every call.
"""

import functools
import itertools
import pathlib
import re
from collections.abc import Iterator

from keras_attention.data.readers import lines

Rows = list[tuple[str, ...]]
SENTIMENTS = {"0": "negative", "1": "negative", "3": "positive"}
SENTIMENTS["4"] = "positive"
# Those of SICK that are read.
COLUMNS = ("entailment_judgment", "sentence_A", "sentence_B")


def read(folder: pathlib.Path) -> dict[str, Rows] | None:
    """The splits of a published data set: rows of a label and its texts.

    Args:
        folder: has the files of one data set, plain or compressed.

    Returns:
        Split -> rows; None if the folder has none of the data sets.

    Raises:
        ValueError: If a line is not as it should be.
    """
    files = {
        lines.without_compression(path.name): path
        for path in sorted(folder.iterdir())
    }
    for names, read_files in FORMATS.items():
        if all(name in files for name in names):
            paths = [files[name] for name in names]
            if read_files is not _trees or _is_of_trees(paths[0]):
                return read_files(*paths)
    return None


def _latin(path) -> Iterator[str]:
    """Lines of a file that is UTF-8, or else Latin-1."""
    for line in lines.read_bytes(path):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError:
            yield line.decode("latin-1")


def _unexpected(path, number: int, line: str, expected: str) -> ValueError:
    """The error of a line that is not as it should be."""
    return ValueError(
        f"{path}, line {number} must be {expected}: {line[:50]!r}"
    )


def _folds(labels: tuple[str, str], *paths) -> dict[str, Rows]:
    """A file for each label, as splits: one fold of ten."""
    splits: dict[str, Rows] = {"train": [], "validation": [], "test": []}
    names = ("test", "validation", *["train"] * 8)
    for label, path in zip(labels, paths, strict=True):
        for number, text in enumerate(_latin(path)):
            splits[names[number % 10]].append((label, text))
    return splits


def _questions(train, test) -> dict[str, Rows]:
    """TREC: `NUM:date When did Hawaii become a state ?`"""

    def rows(path):
        for number, line in enumerate(_latin(path), start=1):
            label, _, text = line.partition(" ")
            if not text:
                raise _unexpected(
                    path, number, line, "a label, a space and a question"
                )
            yield label.partition(":")[0], text

    splits: dict[str, Rows] = {"train": [], "validation": []}
    for number, row in enumerate(rows(train)):
        splits["train" if number % 10 else "validation"].append(row)
    return {**splits, "test": list(rows(test))}


def _is_of_trees(path) -> bool:
    first = next(iter(lines.read_lines(path)), "")
    return re.match(r"\([0-4] ", first) is not None


def _trees(train, validation, test) -> dict[str, Rows]:
    """SST-2: trees of phrases with sentiments, the neutral ones left out.

    The training texts are all phrases of the trees, each once.
    """

    def rows(path):
        for number, line in enumerate(lines.read_lines(path), start=1):
            phrases = _phrases(line)
            if not phrases:
                raise _unexpected(
                    path, number, line, "a tree such as (3 (2 It) (4 works))"
                )
            yield phrases

    def whole(path):
        roots = (phrases[-1] for phrases in rows(path))
        return [row for row in roots if row[0] in SENTIMENTS.values()]

    phrases = itertools.chain.from_iterable(rows(train))
    polar = (row for row in phrases if row[0] in SENTIMENTS.values())
    return {
        "train": list(dict.fromkeys(polar)),
        "validation": whole(validation),
        "test": whole(test),
    }


def _phrases(tree: str) -> Rows:
    """The phrases of `(3 (2 It) (4 works))`, the whole one last.

    A text that is no tree has none.
    """
    stack: list[list[str]] = []
    phrases: Rows = []
    for token in re.findall(r"\([0-4]\b|[^\s()]+|[()]", tree):
        if token == "(":
            return []  # It has no label.
        if not stack and (phrases or not token.startswith("(")):
            return []  # This is outside of the tree.
        if token == ")":
            label, *words = stack.pop()
            phrases.append((SENTIMENTS.get(label, "neutral"), " ".join(words)))
            if stack:
                stack[-1] += words
        elif token.startswith("("):
            stack.append([token[1:]])
        else:
            stack[-1].append(_written(token))
    return [] if stack else phrases


def _written(token: str) -> str:
    """A token of a tree as it was before: `-LRB-` is a bracket."""
    brackets = {"-LRB-": "(", "-RRB-": ")"}
    return brackets.get(token, token.replace("\\/", "/"))


def _pairs(train, validation, test) -> dict[str, Rows]:
    """SICK: tables whose first line names the columns."""

    def rows(path):
        table = enumerate(_latin(path), start=1)
        _, head = next(table, (1, ""))
        names = head.split("\t")
        if not set(COLUMNS) <= set(names):
            expected = f"names of columns, with {', '.join(COLUMNS)}"
            raise _unexpected(path, 1, head, expected)
        for number, line in table:
            row = dict(zip(names, line.split("\t"), strict=False))
            if not set(COLUMNS) <= set(row):
                expected = f"{len(names)} columns with tabs between them"
                raise _unexpected(path, number, line, expected)
            label, first, second = (row[name] for name in COLUMNS)
            yield label.lower(), first, second

    paths = {"train": train, "validation": validation, "test": test}
    return {name: list(rows(path)) for name, path in paths.items()}


FORMATS = {
    ("train_5500.label", "TREC_10.label"): _questions,
    ("rt-polarity.pos", "rt-polarity.neg"): functools.partial(
        _folds, ("positive", "negative")
    ),
    ("quote.tok.gt9.5000", "plot.tok.gt9.5000"): functools.partial(
        _folds, ("subjective", "objective")
    ),
    ("train.txt", "dev.txt", "test.txt"): _trees,
    (
        "SICK_train.txt",
        "SICK_trial.txt",
        "SICK_test_annotated.txt",
    ): _pairs,
}
