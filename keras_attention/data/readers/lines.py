"""Lines of text files, plain or compressed: one reader for every purpose.

Counting, vocabularies, training and scores all read through here, so that they
cannot disagree. A line ends in a newline byte and in nothing else; the last
one may lack it. Carriage returns are dropped where a line ends, and are spaces
inside it. A file without newlines is of an old Mac: its lines end in carriage
returns. Byte order marks are dropped where a line begins: at the start of a
file, and where files were joined. What then has neither text nor newline is no
line. Memory does not grow with the file, only with its longest line.
"""

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import pathlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
from backports import zstd

BYTE_ORDER_MARK = "\ufeff".encode()
BUFFER_SIZE = 1 << 20
CODECS = {
    ".gz": ("gzip", gzip.open),
    ".bz2": ("bzip2", bz2.open),
    ".xz": ("xz", lzma.open),
    ".zst": ("zstd", zstd.open),
}


def to_path(path: str | os.PathLike) -> pathlib.Path:
    """A path as users write it: text or a path, with `~` for their home."""
    return pathlib.Path(os.path.expanduser(os.fspath(path)))


def without_compression(name: str) -> str:
    """The name of a file without the suffix of its compression."""
    stem, suffix = os.path.splitext(name)
    return stem if suffix in CODECS else name


def without_marks(text: bytes) -> bytes:
    """Text without the byte order marks at its start."""
    while text.startswith(BYTE_ORDER_MARK):
        text = text.removeprefix(BYTE_ORDER_MARK)
    return text


def split_lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of an open file, such as `sys.stdin.buffer`."""
    for number, line in enumerate(file):
        is_whole = line.endswith(b"\n")
        text = line.removesuffix(b"\n").rstrip(b"\r")
        is_all = not number and not is_whole
        parts = text.split(b"\r") if is_all else [text.replace(b"\r", b" ")]
        for part in map(without_marks, parts):
            if part or is_whole or len(parts) > 1:
                yield part


def row(
    line: str,
    names: Sequence[str],
    numbers: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> tuple:
    """The texts, or the numbers, that stand in one line.

    Args:
        line: texts with tabs between them, or a JSON object with a text for
            each name. In place of a text, it may have a list of sentences.
            Numbers are lists in JSON. If there is nothing else, they may stand
            without their name.
        names: of the texts and numbers.
        numbers: the names of the numbers -> their shape.

    Raises:
        ValueError: If the line has other texts or numbers.
    """
    if numbers:
        return _row_of_numbers(line, names, numbers)
    keys, found = " and ".join(names), None
    with contextlib.suppress(ValueError):
        found = json.loads(line)
    if isinstance(found, dict):
        texts = [text_of(found.get(name)) for name in names]
        if None in texts:
            raise ValueError(
                f"the JSON object must have a text for each of the keys {keys}"
            )
        return tuple(texts)
    texts = line.split("\t")
    if len(texts) != len(names):
        raise ValueError(
            f"the line must hold {len(names)} texts ({' TAB '.join(names)}), "
            f"or a JSON object with the keys {keys}"
        )
    return tuple(texts)


def _row_of_numbers(line, names, numbers) -> tuple:
    found = None
    with contextlib.suppress(ValueError):
        found = json.loads(line)
    if len(names) == 1 and not isinstance(found, dict):
        found = {names[0]: found}
    found = found if isinstance(found, dict) else {}
    values = {
        name: numbers_of(found.get(name), numbers[name])
        if name in numbers
        else text_of(found.get(name))
        for name in names
    }
    for name, value in values.items():
        if value is None:
            shape = " x ".join(map(str, numbers.get(name, ())))
            raise ValueError(
                f"{name} must be {shape} numbers, as nested lists in JSON"
                if name in numbers
                else f"the JSON object must have a text for {name}"
            )
    return tuple(values.values())


def numbers_of(value: Any, shape: Sequence[int]) -> np.ndarray | None:
    """Finite numbers of a shape, float32; None for what is none."""
    try:
        found = np.array(value)
    except ValueError:  # Lists of several lengths.
        return None
    if found.dtype.kind not in "iuf" or found.shape != tuple(shape):
        return None
    found = found.astype("float32")
    return found if np.isfinite(found).all() else None


def text_of(value) -> str | None:
    """A text, or a list of sentences as a text; None for what is neither.

    In a text of several sentences, a line break stands between two of them.
    """
    sentences = value if isinstance(value, list) else [value]
    if not all(isinstance(sentence, str) for sentence in sentences):
        return None
    return "\n".join(sentences)


def read_bytes(path: str | os.PathLike) -> Iterator[bytes]:
    """The lines of a file, plain, `.gz`, `.bz2`, `.xz` or `.zst`.

    Joined compressed files are read to the end of the last one.

    Raises:
        ValueError: If the compression is damaged; it names file and line.
    """
    path = to_path(path)
    kind, open_file = CODECS.get(path.suffix, ("plain", open))
    number = 0
    try:
        with (
            open_file(path, "rb") as file,
            io.BufferedReader(file, BUFFER_SIZE) as buffered,
        ):
            for line in split_lines(buffered):
                number += 1
                yield line
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zstd.ZstdError) as e:
        # What the system refuses, such as a missing file, has a number.
        if getattr(e, "errno", None) is not None:
            raise
        raise ValueError(
            f"The {kind} file {path} is damaged after line {number} ({e}). "
            "Copy it again."
        ) from e


def read_lines(path: str | os.PathLike) -> Iterator[str]:
    """The lines of a UTF-8 file, plain or compressed, without their ends.

    Raises:
        ValueError: If bytes are no UTF-8 or the compression is damaged; it
            names file and line.
    """
    for number, line in enumerate(read_bytes(path), start=1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{path}, line {number} is not UTF-8: {error}. Convert the "
                "file, or repair the line."
            ) from error
        yield text
