"""Texts, or pairs of texts, with a label each: a folder or a file of them.

The published data sets are read as they are (`published_labels`). Your own are
tables, plain or compressed: `train.tsv`, `validation.tsv` (or `val`, `valid`,
`dev`) and any `test*.tsv`, each line a label, a tab and a text, for pairs one
more tab and text. `.jsonl` files hold an object a line with `premise`,
`hypothesis` and `label`. One file alone is split by its first texts.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
from collections.abc import Iterable

from keras_attention.data.readers import lines, parallel_files, published_labels

KEYS = ("label", "premise", "hypothesis")


@dataclasses.dataclass(frozen=True)
class LabelledTexts:
    """Texts with a label each.

    Args:
        texts: one list of texts, or two of equal length.
        labels: as many labels.
    """

    texts: tuple[list[str], ...]
    labels: list[str]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, ...]]) -> "LabelledTexts":
        """From rows of a label and its texts, without blanks at their ends."""
        columns = list(zip(*rows, strict=True)) or [(), ()]
        labels, *texts = (list(map(str.strip, column)) for column in columns)
        return cls(tuple(texts), labels)

    def __len__(self) -> int:
        return len(self.labels)


@dataclasses.dataclass(frozen=True)
class LabelledCorpus:
    """A corpus of labelled texts.

    Args:
        name: of the corpus.
        splits: "train", "validation", "test", ... -> their texts.
    """

    name: str
    splits: dict[str, LabelledTexts]

    @property
    def classes(self) -> list[str]:
        """The labels of the training texts, sorted."""
        return sorted(set(self.splits["train"].labels))


def load(path: str | os.PathLike, num_texts: int) -> LabelledCorpus:
    """Reads a folder or a file of labelled texts.

    Args:
        path: see above.
        num_texts: 1, or 2 for pairs.

    Raises:
        ValueError: If there are no such files, if train or validation is
            missing, if a row has another number of texts, or if a label of
            another split is not one of train's.
    """
    path = lines.to_path(path)
    if path.is_file():
        splits = _split_by_text(path, list(_rows(path)))
    elif path.is_dir():
        splits = published_labels.read(path) or _folder(path)
    else:
        raise ValueError(
            "Expected a folder with train.tsv and validation.tsv, or a "
            f"published data set. Received: {os.fspath(path)!r}"
        )
    _check(path, splits, num_texts)
    corpus = LabelledCorpus(
        os.fspath(path),
        {name: LabelledTexts.of(rows) for name, rows in splits.items()},
    )
    for name, texts in corpus.splits.items():
        unknown = sorted(set(texts.labels) - set(corpus.classes))
        if unknown:
            raise ValueError(
                f"Expected the labels of train ({', '.join(corpus.classes)}) "
                f"in {name}. Received: {unknown[0]!r} in {path}"
            )
    return corpus


def _check(path, splits, num_texts) -> None:
    for split in ("train", "validation"):
        if not splits.get(split):
            raise ValueError(
                f"Expected {split}.tsv or {split}.jsonl, plain or compressed, "
                "or a published data set (to split one file alone, name the "
                f"file). Received: {path} with {sorted(splits) or 'no split'}"
            )
    for name, rows in splits.items():
        for number, row in enumerate(rows, 1):
            if len(row) != num_texts + 1:
                raise ValueError(
                    f"Expected a label and {num_texts} text"
                    f"{'s' if num_texts > 1 else ''} in each row. Received: "
                    f"{len(row) - 1} in row {number} of {name} in {path}"
                )


def _folder(folder: pathlib.Path) -> dict[str, list[tuple[str, ...]]]:
    """Split -> rows of `train.tsv` and its like, or of `.jsonl`."""
    splits: dict = {}
    for path in sorted(folder.iterdir()):
        stem, ending = os.path.splitext(lines.without_compression(path.name))
        split = parallel_files.split_of(stem)
        if split is None or ending not in (".tsv", ".jsonl"):
            continue
        if split in splits:
            raise ValueError(
                f"Expected one file for {split}. Received: {path} and another"
            )
        splits[split] = list(_rows(path))
    return splits


def _rows(path: pathlib.Path):
    """The rows of a table, or of a file of JSON objects."""
    is_json = lines.without_compression(path.name).endswith(".jsonl")
    for number, line in enumerate(lines.read_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = _object(line) if is_json else tuple(line.split("\t"))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"Expected a JSON object with {', '.join(KEYS)}. Received: "
                f"{path}, line {number}: {error!r}"
            ) from None
        if len(row) < 2:
            raise ValueError(
                "Expected a label, a tab and a text. "
                f"Received: {path}, line {number}: {line[:50]!r}"
            )
        yield row


def _object(line: str) -> tuple[str, ...]:
    row = json.loads(line)
    return tuple(
        str(row[key]) for key in KEYS if key != "hypothesis" or key in row
    )


def _split_by_text(path, rows) -> dict[str, list[tuple[str, ...]]]:
    """A tenth for validation, a tenth for test, by the hash of the first text.

    All pairs of a premise stay together.
    """
    splits: dict = {"train": [], "validation": [], "test": []}
    names = ("validation", "test", *["train"] * 8)
    for row in rows:
        digest = hashlib.sha256(row[1].strip().encode()).digest()
        splits[names[digest[0] % 10]].append(row)
    return {name: rows for name, rows in splits.items() if rows}
