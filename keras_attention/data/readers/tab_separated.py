"""Files of tab-separated pairs: source, target and perhaps an attribution.

A file without splits, such as those of manythings.org, is split by the hash of
its sources: no source is in two splits, and the file alone decides which it is
in.
"""

import hashlib
import itertools
import os
import pathlib
import re
import unicodedata
from collections.abc import Iterable, Iterator

import tensorflow as tf
from babel import core

from keras_attention.data.readers import (
    counted_pairs,
    lines,
    tables,
)

# So many sources of a file without splits are for validation, and as many for
# the test. A small file gives a tenth of its sources to each.
HELD_OUT = 1000


def language_of(code: str) -> str:
    """The short code of a language: "de" of "deu", "ger" and "de-AT"."""
    primary = re.split("[-_]", code.lower())[0]
    return core.get_global("language_aliases").get(primary, primary)


def _is_named_for(path: pathlib.Path, languages: set[str]) -> bool:
    """Whether a file is called by a language, as `deu.txt` is."""
    stem, suffix = os.path.splitext(lines.without_compression(path.name))
    return (
        suffix == ".txt" and stem.isalpha() and language_of(stem) in languages
    )


def find_file(
    folder: pathlib.Path, source: str, target: str
) -> pathlib.Path | None:
    """The one file of pairs in a folder: `*.tsv`, or such as `deu.txt`.

    Raises:
        ValueError: If there are several.
    """
    languages = {language_of(source), language_of(target)}
    files = []
    for path in sorted(folder.iterdir()):
        name = lines.without_compression(path.name)
        if name.endswith((".tsv", ".csv")) or _is_named_for(path, languages):
            files.append(path)
    if len(files) > 1:
        raise ValueError(
            "The folder has several files of pairs. Name one of them instead "
            f"of the folder: {', '.join(map(str, files))}"
        )
    return files[0] if files else None


def read_pairs(
    path: str | os.PathLike, source: str, target: str
) -> Iterator[tuple[str, str]]:
    """The pairs of a table, see `tables`: columns one and two.

    A header that names both languages, such as `de` and `en`, or `source` and
    `target`, says which columns they are. Without one, the first column is the
    source, with one exception: manythings.org names `deu.txt` for the language
    beside English, whose column is the first.

    Raises:
        ValueError: If a row has other than two or three columns, or is not
            UTF-8, or the compression is damaged.
    """
    path = lines.to_path(path)
    turned = _is_named_for(path, {language_of(source)})
    turned = turned and language_of(target) == "en"
    rows = tables.read(path)
    first = next(rows, None)
    if first is None:
        return
    places, num_columns = _header(first[1], source, target), (len(first[1]),)
    if places is None:
        rows = itertools.chain([first], rows)
        places, num_columns = (1, 0) if turned else (0, 1), (2, 3)
    for number, cells in rows:
        cells = cells or [""] * num_columns[0]
        if len(cells) not in num_columns:
            raise ValueError(
                f"{path}, line {number} has {len(cells)} columns. "
                + (
                    f"The header has {num_columns[0]}."
                    if len(num_columns) == 1
                    else "A pair is source and target, with a tab between "
                    "them. A third column is not read."
                )
            )
        # Files that were joined side by side have a mark in each column.
        yield tuple(cells[place].lstrip("\ufeff") for place in places)


def _header(cells, source: str, target: str) -> tuple[int, int] | None:
    """The places of source and target in a header; None if it is none."""
    names = [cell.strip().lower() for cell in cells]

    def place(role, code):
        language = language_of(code)
        return next(
            (
                place
                for place, name in enumerate(names)
                if name == role or (name and language_of(name) == language)
            ),
            None,
        )

    found = place("source", source), place("target", target)
    return None if None in found else found


def pairs(
    path: str | os.PathLike, source: str, target: str
) -> tuple[tf.data.Dataset, int]:
    """The pairs of a whole file, and how many they are.

    Raises:
        ValueError: As `read_pairs`, and if the file is empty.
    """

    def read():
        return read_pairs(path, source, target)

    num_pairs = sum(1 for _ in read())
    if not num_pairs:
        raise ValueError(f"{path}, line 1: the file is empty")
    return counted_pairs.dataset(read, num_pairs, str(path)), num_pairs


def _hash(source: str) -> int:
    """A number of a source, whatever its white space and compatible forms."""
    text = " ".join(unicodedata.normalize("NFKC", source).split())
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _smallest(numbers: Iterable[int], count: int) -> list[int]:
    """The smallest different numbers, sorted; memory is that of `count`."""
    smallest: set[int] = set()
    limit = 1 << 64
    for number in numbers:
        if number < limit:
            smallest.add(number)
        if len(smallest) > 2 * count:
            smallest = set(sorted(smallest)[:count])
            limit = max(smallest)
    return sorted(smallest)[:count]


def split_by_source(
    path: str | os.PathLike, source: str, target: str
) -> tuple[dict[str, tf.data.Dataset], dict[str, int]]:
    """Splits a file into train, validation and test by its sources.

    The sources of the smallest hashes are validation's, the next ones the
    test's: 1,000 each, or a tenth if the file has fewer than 10,000
    different sources. All pairs of a source go with it. Training keeps the
    order of the file; the others come in the order of the hash, as such
    files are often sorted by length.

    Returns:
        `(splits, sizes)`: {"source", "target"} string scalars, and counts.

    Raises:
        ValueError: As `read_pairs`, and for less than three sources.
    """

    def hashed():
        for pair in read_pairs(path, source, target):
            yield _hash(pair[0]), pair

    smallest = _smallest((number for number, _ in hashed()), 10 * HELD_OUT)
    if len(smallest) < 3:
        raise ValueError(
            f"{path} has {len(smallest)} different sources. To be split into "
            "train, validation and test, a file needs three or more."
        )
    size = max(1, len(smallest) // 10)
    validation_limit, test_limit = smallest[size - 1], smallest[2 * size - 1]
    held_out, num_train = [], 0
    for number, pair in hashed():
        if number <= test_limit:
            held_out.append((number, pair))
        else:
            num_train += 1
    # By the hash alone: the pairs of a source stay in their order.
    held_out.sort(key=lambda numbered: numbered[0])
    chosen = {
        "validation": [p for n, p in held_out if n <= validation_limit],
        "test": [p for n, p in held_out if n > validation_limit],
    }

    def train():
        return (pair for number, pair in hashed() if number > test_limit)

    splits = {"train": counted_pairs.dataset(train, num_train, str(path))}
    sizes = {"train": num_train}
    for split, rows in chosen.items():
        sources, targets = zip(*rows, strict=True)
        splits[split] = tf.data.Dataset.from_tensor_slices(
            {"source": list(sources), "target": list(targets)}
        )
        sizes[split] = len(rows)
    return splits, sizes
