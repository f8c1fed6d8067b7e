"""Pictures with a label each: a folder of `.jsonl` files.

`train.jsonl`, `validation.jsonl` (or `val`, `valid`, `dev`) and any `test*`,
plain or compressed. A line is an object with `label` and `image`, rows of
shades.
"""

import os
from collections.abc import Sequence

from keras_attention.data.readers import labels, lines, parallel_files, tables


def load(
    path: str | os.PathLike, shape: Sequence[int]
) -> dict[str, list[tuple[str, list]]]:
    """Reads a folder of labelled pictures.

    Args:
        path: of the folder.
        shape: height and width of each picture.

    Returns:
        Split -> rows of a label and a picture, nested lists.

    Raises:
        ValueError: If there is no such folder, if a split is missing, or if a
            line has no label or no such picture; it names the line.
    """
    folder = lines.to_path(path)
    files = {}
    if folder.is_dir():
        files = parallel_files.one_a_split(folder, (".jsonl",))
    for split in ("train", "validation"):
        if split not in files:
            raise ValueError(
                f"{folder} has no {split}.jsonl. Pictures are read from a "
                "folder with train.jsonl and validation.jsonl, whose lines "
                'are {"label": "...", "image": [[...], ...]}.'
            )
    return {
        split: [
            _row(f"{file}, line {number}", found, shape)
            for number, found in tables.read(file)
            if found
        ]
        for split, file in files.items()
    }


def _row(place, found, shape) -> tuple[str, list]:
    picture = lines.numbers_of(found.get("image"), shape)
    label = found.get("label")
    if picture is None or isinstance(label, bool | None | list | dict):
        size = " x ".join(map(str, shape))
        raise ValueError(
            f"{place} must have a label, which is a text or a number, and an "
            f"image of {size} numbers."
        )
    return labels.written(label), picture.tolist()
