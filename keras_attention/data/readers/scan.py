"""SCAN: commands and the actions that they ask for, in its published files.

A split of Lake and Baroni 2018 is two files, such as
`tasks_train_addprim_jump.txt` and `tasks_test_addprim_jump.txt`, plain or
compressed. A line is `IN: jump twice OUT: I_JUMP I_JUMP`. Train with
`--source=commands --target=actions`, as the two sides are no languages.

The files have no validation set. The commands that training has once are sorted
by the hash of their text. The first tenth of them, at most 1,000, is held out
for validation. So the file alone decides which they are. What training repeats,
as "jump" in the split of that name, stays in training.

Reference: https://arxiv.org/abs/1711.00350
"""

import collections
import hashlib
import os
import pathlib
import re

from keras_attention.data.readers import lines, parallel_files

HELD_OUT = 1000
FILE = re.compile(r"tasks_(train|test)_(\w+)\.txt")
LINE = re.compile(r"IN: (.+?) OUT: (.+)")


def name_of(path: str | os.PathLike) -> str | None:
    """The split that a file belongs to; None if its name is not SCAN's.

    `tasks_train_length.txt.gz` belongs to "length".
    """
    name = lines.without_compression(os.path.basename(path))
    match = FILE.fullmatch(name)
    return match and match[2]


def find_files(folder: str | os.PathLike) -> dict[str, dict[str, pathlib.Path]]:
    """Split -> {"train" and "test": file}, of all in a folder.

    Raises:
        ValueError: If there are two files for one half of a split.
    """
    files: dict[str, dict[str, pathlib.Path]] = {}
    for path in sorted(lines.to_path(folder).iterdir()):
        match = FILE.fullmatch(lines.without_compression(path.name))
        if match is None:
            continue
        half, name = match.groups()
        other = files.setdefault(name, {}).setdefault(half, path)
        if other != path:
            raise parallel_files.two_files(f"{half} of {name}", other, path)
    return files


def read(path: str | os.PathLike) -> list[tuple[str, str]]:
    """The commands and actions of a file, in its order.

    Raises:
        ValueError: If a line is none of SCAN's; it names file and line.
    """
    pairs = []
    for number, line in enumerate(lines.read_lines(path), start=1):
        match = LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(
                f'{path}, line {number} is not "IN: command OUT: actions": '
                f"{line[:50]!r}"
            )
        pairs.append(match.groups())
    return pairs


def load(path: str | os.PathLike) -> dict[str, list[tuple[str, str]]]:
    """Reads a split of SCAN.

    Args:
        path: a folder with the two files of one split, or the training file,
            with its partner beside it.

    Returns:
        "train", "validation" and "test" -> pairs of command and actions.

    Raises:
        ValueError: If a file is missing or damaged, or if a folder has
            several splits and none is named.
    """
    path = lines.to_path(path)
    folder = path if path.is_dir() else path.parent
    files, name = find_files(folder), name_of(path)
    if path.is_dir():
        if len(files) != 1:
            trained = [str(pair.get("train")) for pair in files.values()]
            raise ValueError(
                f"{path} has several splits of SCAN. Name the training file of "
                f"one in place of the folder: {', '.join(trained)}"
            )
        (name,) = files
    for half in ("train", "test"):
        if half not in files[name]:
            raise ValueError(
                f"{folder} lacks tasks_{half}_{name}.txt, plain or "
                "compressed. Put it beside its partner."
            )
    pairs = read(files[name]["train"])
    counts = collections.Counter(command for command, _ in pairs)
    once = [command for command, count in counts.items() if count == 1]
    once.sort(key=lambda command: hashlib.sha256(command.encode()).digest())
    held_out = set(once[: min(HELD_OUT, len(once) // 10)])
    if not held_out:
        raise ValueError(
            f"{files[name]['train']} has only {len(once)} commands that occur "
            "exactly once. It needs ten or more, as a tenth of them is held "
            "out for validation."
        )
    return {
        "train": [pair for pair in pairs if pair[0] not in held_out],
        "validation": [pair for pair in pairs if pair[0] in held_out],
        "test": read(files[name]["test"]),
    }
