"""Texts of one language: a folder of files, a text on each line.

`train.txt`, `validation.txt` (or `val`, `valid`, `dev`) and any number of
`test*.txt`, plain or compressed. A name may stand before the split's, as in
the published `ptb.train.txt`, and the ending may be `.tokens`, as in
`wiki.train.tokens`.
"""

import os
import pathlib

from keras_attention.data.readers import lines, parallel_files

ENDINGS = (".txt", ".tokens")


def find_files(folder: str | os.PathLike) -> dict[str, pathlib.Path]:
    """Split -> its file, for all splits in a folder.

    Raises:
        ValueError: If there is no such folder, if train or validation is
            missing, or if a split has two files.
    """
    folder = lines.to_path(folder)
    if not folder.is_dir():
        raise ValueError(
            f"There is no folder {folder}. A corpus of texts is a folder with "
            "train.txt and validation.txt."
        )
    files = parallel_files.one_a_split(folder, ENDINGS)
    for split in ("train", "validation"):
        if split not in files:
            raise ValueError(
                f"{folder} has no {split}.txt, plain or compressed. It has "
                f"{', '.join(files) or 'no split at all'}."
            )
    return files


def load(folder: str | os.PathLike) -> dict[str, list[str]]:
    """Reads all splits of a folder.

    Args:
        folder: holds `train.txt`, `validation.txt` and what is named above.

    Returns:
        Split -> its texts, in the order of the file and without spaces at
        their ends. Blank lines are left out.

    Raises:
        ValueError: If a file is missing, has no text, or is not UTF-8.
    """
    files = find_files(folder)
    return {split: read(path) for split, path in files.items()}


def read(path: str | os.PathLike) -> list[str]:
    """Reads the texts of a file, as `load` does.

    Raises:
        ValueError: If the file has no text, or is not UTF-8.
    """
    stripped = (line.strip() for line in lines.read_lines(path))
    texts = [text for text in stripped if text]
    if not texts:
        raise ValueError(f"{path} has no text.")
    return texts
