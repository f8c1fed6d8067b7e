"""What a training begins with, where it does not begin with fresh weights."""

import pathlib

SUFFIXES = (".npz", ".keras", ".weights.h5")


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
    """The file of weights: the path itself, or the run's selected weights.

    Raises:
        ValueError: If there is none.
    """
    found = pathlib.Path(path).expanduser()
    if not found.is_dir():
        if found.is_file() and found.name.endswith(SUFFIXES):
            return found
        raise ValueError(
            f"--init found no weights at {path}. Give a run's folder, or a "
            "file whose name ends in "
            f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}."
        )
    if not (found / "weights.npz").is_file():
        raise ValueError(
            f"{path} has no weights.npz. Give --init the folder of a run that "
            "has finished at least one epoch. (--init cannot read a "
            "SavedModel.)"
        )
    return found / "weights.npz"
