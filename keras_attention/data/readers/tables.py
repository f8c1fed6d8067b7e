"""Tables as people and programs write them, plain or compressed.

- `.csv`: cells with commas between them, or semicolons as a spreadsheet may
  write them. A cell in quotation marks may hold line ends.
- `.tsv`: cells with tabs between them. Quotation marks are text, unless the
  whole file has them where a program such as pandas or R puts them.
- `.jsonl`: an object a line, whose keys name the columns.
"""

import csv
import json
import os
import pathlib
import re
from collections.abc import Iterator

from keras_attention.data.readers import lines

ENDINGS = (".tsv", ".csv", ".jsonl")
NUMBER = re.compile(r"[-+]?[\d.]+(e[-+]?\d+)?", re.IGNORECASE)
# When a program quotes a cell: where it must, text alone, and always.
QUOTED = (
    re.compile(r'["\t\n]').search,
    lambda cell: not NUMBER.fullmatch(cell),
    lambda cell: True,
)
# A text may have more characters than the 131,072 that `csv` allows a cell.
csv.field_size_limit(1 << 30)


def read(path: pathlib.Path) -> Iterator[tuple[int, list[str] | dict]]:
    """The rows of a table, blank ones left out.

    Args:
        path: of the file; one with another ending is read as `.tsv`.

    Yields:
        `(line, row)`: the number of the row's first line, and its cells or,
        of `.jsonl`, its object.

    Raises:
        ValueError: If a line is no object, or if a quotation mark is open.
    """
    name = lines.without_compression(path.name)
    if name.endswith(".jsonl"):
        yield from _objects(path)
        return
    texts = list(lines.read_lines(path))
    if name.endswith(".csv"):
        first = re.sub('"[^"]*"', "", texts[0] if texts else "")
        comma = ";" if first.count(";") > first.count(",") else ","
        rows = _parsed(path, texts, comma)
    elif _is_quoted(path, texts):
        rows = _parsed(path, texts, "\t")
    else:
        rows = (
            (number, text.split("\t"), text)
            for number, text in enumerate(texts, 1)
        )
    for number, cells, _ in rows:
        if any(cell.strip() for cell in cells):
            yield number, cells


def ending(path: str | os.PathLike) -> str:
    """The ending of a file's name, that of its compression taken off."""
    return os.path.splitext(lines.without_compression(os.fspath(path)))[1]


def _objects(path):
    for number, line in enumerate(lines.read_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number} is not JSON: {error}"
            ) from None
        if not isinstance(row, dict):
            raise ValueError(
                f"{path}, line {number} must be a JSON object such as "
                '{"label": "good", "text": "I like it"}.'
            )
        yield number, row


def _parsed(path, texts, delimiter):
    """Line number, cells and source of each row."""
    reader = csv.reader(
        (f"{text}\n" for text in texts), delimiter=delimiter, strict=True
    )
    start = 0
    try:
        for cells in reader:
            yield start + 1, cells, "\n".join(texts[start : reader.line_num])
            start = reader.line_num
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {start + 1}: a quotation mark opens a cell, and "
            f'the cell does not end as it must. Write each " inside it '
            f'twice: "" ({error})'
        ) from None


def _is_quoted(path, texts) -> bool:
    """Whether a program has put each quotation mark where it is.

    A person's `good<TAB>"What a film", he said` is not what a program writes.
    """
    if not any('"' in text for text in texts):
        return False
    try:
        rows = list(_parsed(path, texts, "\t"))
    except ValueError:
        return False
    return any(
        all(_written(cells, quoted) == source for _, cells, source in rows)
        for quoted in QUOTED
    )


def _written(cells, quoted) -> str:
    """A row as a program writes it."""
    return "\t".join(
        '"' + cell.replace('"', '""') + '"' if quoted(cell) else cell
        for cell in cells
    )
