"""Line-aligned files: `train.en` and `train.de`, plain or compressed."""

import itertools
import os
import pathlib
from collections.abc import Collection

import tensorflow as tf

from keras_attention.data.readers import counted_pairs, lines

# The names that people give to two of the splits.
SPLITS = {
    "train": "train",
    **dict.fromkeys(("validation", "val", "valid", "dev"), "validation"),
}


def split_of(stem: str) -> str | None:
    """The split of a file's name, its endings taken off; None for others."""
    return stem if stem.startswith("test") else SPLITS.get(stem)


def one_a_split(
    folder: pathlib.Path, endings: Collection[str]
) -> dict[str, pathlib.Path]:
    """Split -> its file in a folder, such as `train.tsv`, plain or compressed.

    A name may stand before the split's, as in `ptb.train.txt`.

    Raises:
        ValueError: If a split has two files.
    """
    files: dict[str, pathlib.Path] = {}
    for path in sorted(folder.iterdir()):
        stem, ending = os.path.splitext(lines.without_compression(path.name))
        split = split_of(stem.rpartition(".")[2])
        if split is None or ending not in endings:
            continue
        if split in files:
            raise two_files(split, files[split], path)
        files[split] = path
    return files


def two_files(split: str, first: pathlib.Path, second) -> ValueError:
    """The error of a split with two files."""
    return ValueError(
        f"{split} has two files, {first} and {second}. Take one of them out of "
        "the folder."
    )


def find_files(
    folder: pathlib.Path, source: str, target: str
) -> dict[str, tuple[pathlib.Path, pathlib.Path]]:
    """Split -> (source file, target file) of all splits in a folder.

    Splits are train, validation (or val, valid, dev) and any whose name
    starts with test.

    Raises:
        ValueError: If a file is without its partner, or a split has two.
    """
    files: dict[str, dict[str, pathlib.Path]] = {}
    for path in sorted(folder.iterdir()):
        name = lines.without_compression(path.name)
        stem, _, language = name.rpartition(".")
        split = split_of(stem)
        if split is None or language not in (source, target):
            continue
        other = files.setdefault(split, {}).setdefault(language, path)
        if other != path:
            raise two_files(f"{split}.{language}", other, path)
    for split, languages in files.items():
        for language in (source, target):
            if language not in languages:
                (present,) = languages.values()
                raise ValueError(
                    f"{present} has no partner: put {split}.{language}, plain "
                    "or compressed, beside it."
                )
    return {
        split: (languages[source], languages[target])
        for split, languages in files.items()
    }


def pairs(
    source: str | os.PathLike, target: str | os.PathLike
) -> tuple[tf.data.Dataset, int]:
    """The pairs of two files in their order, and how many they are.

    Returns:
        {"source", "target"} string scalars, and the number of lines.

    Raises:
        ValueError: If a file is empty, is not UTF-8, or has another number
            of lines than its partner; it names the files and the line.
    """
    counts = [sum(1 for _ in lines.read_lines(p)) for p in (source, target)]
    for path, count in zip((source, target), counts, strict=True):
        if count == 0:
            raise ValueError(f"{path}, line 1: the file is empty")
    if counts[0] != counts[1]:
        longer = source if counts[0] > counts[1] else target
        raise ValueError(
            f"{source} has {counts[0]} lines and {target} has {counts[1]}: "
            f"{longer}, line {min(counts) + 1} has no partner. Both need a "
            "line for each sentence."
        )
    origin = f"{source} and {target}"

    def read():
        sides = lines.read_bytes(source), lines.read_bytes(target)
        for pair in itertools.zip_longest(*sides):
            if None in pair:
                raise counted_pairs.changed(counts[0], origin)
            yield pair

    return counted_pairs.dataset(read, counts[0], origin), counts[0]
