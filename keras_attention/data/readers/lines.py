"""Lines of text files, plain or compressed: one reader for every purpose.

Counting, vocabularies, training and scores all read through here, so that they
cannot disagree. A line ends in a newline byte and in nothing else; the last
one may lack it. Carriage returns are dropped where a line ends, and are blanks
inside it. A file without newlines is of an old Mac: its lines end in carriage
returns. Byte order marks are dropped where a line begins: at the start of a
file, and where files were joined. What then has neither text nor newline is no
line. Memory does not grow with the file, only with its longest line.
"""

import bz2
import gzip
import io
import lzma
import os
import pathlib
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

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


def rows(texts: Iterable[str], count: int) -> list:
    """What stands in lines: a text in each, or `count` texts with tabs.

    Returns:
        Texts if `count` is 1, otherwise tuples of texts.

    Raises:
        ValueError: If a line has another number of texts.
    """
    if count == 1:
        return list(texts)
    found = [tuple(text.split("\t")) for text in texts]
    for line, row in enumerate(found, 1):
        if len(row) != count:
            raise ValueError(
                f"Put {count} texts into each line, with a tab between them. "
                f"Line {line} has {len(row)}: {' '.join(row)[:50]!r}"
            )
    return found


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
            f"Expected a whole {kind} file: copy it again. "
            f"Received: {path}, after line {number}: {e}"
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
                "Expected UTF-8: convert the file, or repair the line. "
                f"Received: {path}, line {number}: {error}"
            ) from error
        yield text
