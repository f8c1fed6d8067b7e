"""Line-aligned files: `train.en` and `train.de`, plain or `.gz`.

Lines end in a newline byte and in nothing else; carriage returns are dropped
wherever they stand, as `tf.data.TextLineDataset` does. Files are read line by
line: memory does not grow with them.
"""

import gzip
import pathlib
import zlib
from collections.abc import Iterator

import tensorflow as tf

SPLITS = {"train": "train", "validation": "validation", "val": "validation"}


def read_lines(path: pathlib.Path) -> Iterator[str]:
    """The lines of a UTF-8 file, plain or `.gz`, without their ends.

    Errors: `ValueError` that names file and line where bytes are no UTF-8
    or the compression is damaged.
    """
    path = pathlib.Path(path)
    number = 0
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            for line in file:
                number += 1
                line = line.removesuffix(b"\n").replace(b"\r", b"")
                yield line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            "Expected UTF-8: convert the file, or repair the line. "
            f"Received: {path}, line {number}: {error}"
        ) from error
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(
            "Expected a whole gzip file: copy it again. "
            f"Received: {path}, after line {number}: {error}"
        ) from error


def find_files(
    folder: pathlib.Path, source: str, target: str
) -> dict[str, tuple[pathlib.Path, pathlib.Path]]:
    """Split -> (source file, target file) of all splits in a folder.

    Splits are train, validation (or val) and any whose name starts with
    test.

    Errors: `ValueError` for a file without its partner, and where train or
    validation is missing.
    """
    files: dict[str, dict[str, pathlib.Path]] = {}
    for path in sorted(folder.iterdir()):
        stem, _, language = path.name.removesuffix(".gz").rpartition(".")
        split = stem if stem.startswith("test") else SPLITS.get(stem)
        if split is None or language not in (source, target):
            continue
        other = files.setdefault(split, {}).setdefault(language, path)
        if other != path:
            raise ValueError(
                f"Expected one file for {split} in {language}. "
                f"Received: {other} and {path}"
            )
    for split in ("train", "validation"):
        if split not in files:
            raise ValueError(
                f"Expected {split}.{source} and {split}.{target}, plain or "
                f".gz. Received: {folder} with {sorted(files) or 'no split'}"
            )
    for split, languages in files.items():
        for language in (source, target):
            if language not in languages:
                (present,) = languages.values()
                raise ValueError(
                    f"Expected {split}.{language} (or .gz) beside its "
                    f"partner. Received: {present} alone"
                )
    return {
        split: (languages[source], languages[target])
        for split, languages in files.items()
    }


def check_aligned(source: pathlib.Path, target: pathlib.Path) -> int:
    """Reads both files once and counts their pairs.

    Errors: `ValueError` if a file is empty, is not UTF-8, or has another
    number of lines than its partner; it names the files and the line.
    """
    counts = {
        path: sum(1 for _ in read_lines(path)) for path in (source, target)
    }
    for path, count in counts.items():
        if count == 0:
            raise ValueError(
                "Expected a line for each sentence. "
                f"Received: {path}, line 1: the file is empty"
            )
    if counts[source] != counts[target]:
        longer = max(counts, key=counts.get)
        raise ValueError(
            "Expected files of as many lines, sentence by sentence. "
            f"Received: {source} with {counts[source]} lines, {target} with "
            f"{counts[target]} lines: {longer}, line "
            f"{min(counts.values()) + 1} has no partner"
        )
    return counts[source]


def pairs(source: pathlib.Path, target: pathlib.Path) -> tf.data.Dataset:
    """{"source", "target"} string scalars, in the order of the files."""

    def lines(path):
        return tf.data.TextLineDataset(
            str(path), compression_type="GZIP" if path.suffix == ".gz" else ""
        )

    return tf.data.Dataset.zip(
        {"source": lines(source), "target": lines(target)}
    )
