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
    """The rows of a table. Memory does not grow with them.

    Args:
        path: of the file; one with another ending is read as `.tsv`.

    Yields:
        `(line, row)`: the number of the row's first line, and its cells or,
        of `.jsonl`, its object. A blank line is a row without cells.

    Raises:
        ValueError: If a line is no object, or if a quotation mark is open.
    """
    if ending(path) == ".jsonl":
        yield from _objects(path)
    elif ending(path) == ".csv" or _is_quoted(path):
        for number, cells, _ in _parsed(path):
            yield number, cells
    else:
        for number, text in enumerate(lines.read_lines(path), 1):
            yield number, text.split("\t") if text.strip() else []


def ending(path: str | os.PathLike) -> str:
    """The ending of a file's name, that of its compression taken off."""
    return os.path.splitext(lines.without_compression(os.fspath(path)))[1]


def _objects(path):
    for number, line in enumerate(lines.read_lines(path), 1):
        if not line.strip():
            yield number, []
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


def _parsed(path):
    """Line number, cells and source of each row."""
    source: list[str] = []

    def texts():
        for text in lines.read_lines(path):
            source.append(text)
            yield f"{text}\n"

    reader = csv.reader(texts(), delimiter=_delimiter(path), strict=True)
    start = 1
    try:
        for cells in reader:
            yield start, cells, "\n".join(source)
            source.clear()
            start = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {start}: a quotation mark opens a cell, and the "
            'cell does not end as it must. Write each " inside it twice: "" '
            f"({error})"
        ) from None


def _delimiter(path) -> str:
    if ending(path) != ".csv":
        return "\t"
    first = re.sub('"[^"]*"', "", next(lines.read_lines(path), ""))
    return ";" if first.count(";") > first.count(",") else ","


def _is_quoted(path) -> bool:
    """Whether a program has put each quotation mark where it is.

    A person's `good<TAB>"What a film", he said` is not what a program writes.
    """
    # Most tables have none, and to look for one is faster than to parse.
    if not any(b'"' in line for line in lines.read_bytes(path)):
        return False
    styles = list(QUOTED)
    try:
        for _, cells, source in _parsed(path):
            styles = [
                style for style in styles if _written(cells, style) == source
            ]
            if not styles:
                return False
    except ValueError:
        return False
    return True


def _written(cells, is_quoted) -> str:
    """A row as a program writes it."""
    return "\t".join(
        '"' + cell.replace('"', '""') + '"' if is_quoted(cell) else cell
        for cell in cells
    )
