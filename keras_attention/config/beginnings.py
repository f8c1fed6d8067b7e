"""What a training begins with, where it does not begin with fresh weights."""

import pathlib

from keras_attention import published
from keras_attention.published import files

SUFFIXES = (".npz", ".keras", ".weights.h5", ".safetensors")


def run_of(path: str) -> pathlib.Path | None:
    """The run's folder: the path itself, or where its weights lie."""
    found = pathlib.Path(path).expanduser()
    folder = found if found.is_dir() else found.parent
    return folder if (folder / "config.yaml").is_file() else None


def folders(names: str | None) -> list[pathlib.Path]:
    """The folders that a choice names, with commas between them."""
    given = [name.strip() for name in (names or "").split(",")]
    return [pathlib.Path(name).expanduser() for name in given if name]


def check_teachers(names: str | None) -> None:
    """Refuses teachers that are no runs with weights.

    Args:
        names: the choice `distillation_teachers`.

    Raises:
        ValueError: If one has none.
    """
    for folder in folders(names):
        for file in ("config.yaml", "weights.npz"):
            if not (folder / file).is_file():
                raise ValueError(
                    f"{folder} has no {file}. --distillation_teachers needs "
                    "the folders of runs that have finished at least one "
                    "epoch, with commas between them."
                )


def weights_of(path: str) -> pathlib.Path:
    """The file of weights: the path itself, or that of the folder.

    A run's folder holds its selected weights. A published folder may hold a
    list of several files.

    Raises:
        ValueError: If there is none.
    """
    found = pathlib.Path(path).expanduser()
    if not found.is_dir():
        if found.is_file() and found.name.endswith(SUFFIXES):
            return found
        raise ValueError(
            f"--init found no weights at {path}. Give a run's folder, a "
            "published folder with config.json and model.safetensors, or a "
            "file whose name ends in "
            f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}."
        )
    if run_of(path) is None and published.is_published(found):
        return files.weights_file(found)
    if not (found / "weights.npz").is_file():
        raise ValueError(
            f"{path} has no weights.npz. Give --init the folder of a run that "
            "has finished at least one epoch. (--init cannot read a "
            "SavedModel.)"
        )
    return found / "weights.npz"
