"""Texts, or pairs of texts, with a label each: a folder or a file of them.

The published data sets are read as they are (`published_labels`). Your own are
tables, see `tables`: `train.tsv`, `.csv` or `.jsonl`, `validation` (or `val`,
`valid`, `dev`) and any `test*`, plain or compressed. `headers` says which
columns are read. One file alone is split by its first texts.
"""

import collections
import functools
import hashlib
import os
import pathlib
from collections.abc import Sequence

from keras_attention.data.readers import (
    headers,
    labels,
    lines,
    parallel_files,
    published_labels,
    tables,
)
from keras_attention.data.readers.labels import Row


def load(
    path: str | os.PathLike,
    num_texts: int,
    names: Sequence[str] = (),
    sentences: bool = False,
) -> tuple[dict[str, list[tuple[str, ...]]], int]:
    """Reads a folder or a file of labelled texts.

    Args:
        path: see above.
        num_texts: 1, or 2 for pairs.
        names: of the columns of label and texts, in this order, or their
            numbers, from 1.
        sentences: whether the JSON of a text may be a list of sentences. The
            text then has a line break between two of them.

    Returns:
        `(splits, unlabelled)`: split -> its rows, a label and the texts; and
        how many rows without a label were left out.

    Raises:
        ValueError: If there are no such files, if train or validation is
            missing, or if a row is not like the others; it names the row.
    """
    path = lines.to_path(path)
    read = functools.partial(
        _tables, num_texts=num_texts, names=tuple(names), sentences=sentences
    )
    if names and len(names) != num_texts + 1:
        raise ValueError(
            f"--columns needs {num_texts + 1} names or numbers, one for the "
            f"label and then one for each text. Received: {','.join(names)}"
        )
    if path.is_file():
        splits = _split_by_text(*read({"": path}).values())
    elif path.is_dir():
        splits = _published(path, num_texts, names) or read(_files(path))
    else:
        raise ValueError(
            f"There is no corpus {os.fspath(path)!r}. Name a table, or a "
            "folder with train.tsv and validation.tsv or a published data set."
        )
    num_rows = sum(map(len, splits.values()))
    splits = labels.only_labelled(splits)
    _check_splits(path, splits, num_rows)
    labels.check(splits)
    kept = {
        name: [(labels.written(row.label), *row.texts) for row in rows]
        for name, rows in splits.items()
        if rows
    }
    return kept, num_rows - sum(map(len, kept.values()))


def _check_splits(path, splits, num_rows) -> None:
    for split in ("train", "validation"):
        if splits.get(split):
            continue
        if split in splits:
            raise ValueError(f"No row of {split} in {path} has a label.")
        if path.is_file():
            raise ValueError(
                f"{path} is too small to be split: its {num_rows} rows give "
                f"none for {split}. Give a folder with train and validation "
                "files."
            )
        raise ValueError(
            f"{path} has {', '.join(sorted(splits)) or 'no split'}, and lacks "
            f"{split}.tsv, {split}.csv or {split}.jsonl, plain or compressed. "
            "To split one file alone, name the file."
        )


def _published(folder, num_texts, names) -> dict[str, list[Row]]:
    splits = published_labels.read(folder) or {}
    if splits and names:
        raise ValueError(
            f"{folder} has a published data set, whose columns are known. "
            "Leave out --columns."
        )
    for rows in splits.values():
        if rows and len(rows[0]) != num_texts + 1:
            raise ValueError(
                f"{folder} has {len(rows[0]) - 1} texts in each row, and the "
                f"model reads {num_texts}."
            )
    return {
        name: [
            Row(f"Row {number} of {name}", label, _stripped(texts))
            for number, (label, *texts) in enumerate(rows, 1)
        ]
        for name, rows in splits.items()
    }


def _files(folder: pathlib.Path) -> dict[str, pathlib.Path]:
    """Split -> `train.tsv` and its like."""
    files = parallel_files.one_a_split(folder, tables.ENDINGS)
    # Errors name the first row of several, and train's tell most.
    return dict(sorted(files.items(), key=lambda file: file[0] != "train"))


def _tables(files, num_texts, names, sentences) -> dict[str, list[Row]]:
    """Split -> the rows of its file."""
    splits, without_header = {}, []
    for split, path in files.items():
        splits[split], has_names = _rows(path, num_texts, names, sentences)
        if splits[split] and not has_names:
            without_header.append(splits[split])
    _check_header(without_header)
    return splits


def _check_header(tables_of_rows) -> None:
    """Refuses a header that was read as a row.

    No other row has its label, and of each other label there are several.
    """
    if not tables_of_rows:
        return
    first, *others = (rows[0] for rows in tables_of_rows)
    cells = (first.label, *first.texts)
    same = sum((row.label, *row.texts) == cells for row in others)
    is_name = not any(" " in cell for cell in cells)
    counts = collections.Counter(
        row.label for rows in tables_of_rows for row in rows
    )
    is_alone = counts.pop(first.label) == same + 1 and (same or is_name)
    if is_alone and counts.total() >= 10 and min(counts.values()) > 1:
        numbers = ",".join(map(str, range(1, len(cells) + 1)))
        raise ValueError(
            f"{first.place} looks like a header: {labels.listed(cells)}. "
            "If it is a header, name the columns: --columns "
            f"LABEL{',TEXT' * len(first.texts)}. If it is a row, give their "
            f"numbers: --columns {numbers}"
        )


def _rows(path, num_texts, names, sentences) -> tuple[list[Row], bool]:
    """The rows of a file, and whether their columns were named or numbered."""
    table = [
        (number, row)
        for number, row in tables.read(path)
        if row and (isinstance(row, dict) or any(map(str.strip, row)))
    ]
    if not table:
        return [], False
    keys, has_header = headers.find(path, table[0][1], num_texts, names)
    width = len(table[0][1])
    rows = []
    for number, cells in table[has_header:]:
        place = f"{path}, line {number}"
        if isinstance(cells, list) and len(cells) != width:
            raise ValueError(
                f"{place} has {len(cells)} columns, and the first row has "
                f"{width}."
            )
        try:
            label, *texts = (cells[key] for key in keys)
        except KeyError as error:
            raise ValueError(f"{place} has no key {error}.") from None
        if sentences:
            texts = [lines.text_of(text) or text for text in texts]
        rows.append(Row(place, label, _checked(place, label, texts)))
    is_object = isinstance(table[0][1], dict)
    return rows, bool(names or has_header or is_object)


def _checked(place, label, texts) -> tuple[str, ...]:
    """The texts of a row, in which each value is of the right kind."""
    if isinstance(label, (list, dict)):
        raise ValueError(
            f"The label in {place} must be a text or a number, not "
            f"{labels.short(label)}."
        )
    for text in texts:
        if isinstance(text, bool) or not isinstance(text, (str, int, float)):
            raise ValueError(
                f"{place} must have a text, and has {labels.short(text)}. "
                "Leave the row out, or write a text."
            )
    return _stripped(texts)


def _stripped(texts) -> tuple[str, ...]:
    """Texts without spaces and byte order marks at their ends."""
    return tuple(str(text).strip().strip(labels.MARK).strip() for text in texts)


def _split_by_text(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """A tenth for validation, a tenth for test, by the hash of the first text.

    All pairs of a premise stay together.
    """
    splits: dict = {"train": [], "validation": [], "test": []}
    names = ("validation", "test", *["train"] * 8)
    for row in rows:
        digest = hashlib.sha256(row.texts[0].encode()).digest()
        splits[names[digest[0] % 10]].append(row)
    return {name: rows for name, rows in splits.items() if rows}
