"""Where a SavedModel is written: a folder for a model's versions.

This module does not import TensorFlow.
"""

import os
import pathlib

from keras_attention import files
from keras_attention.serving import manifest


def check(folder: str | os.PathLike, card: bool = True) -> None:
    """Checks that the next version of a model can be written to a folder.

    The folder need not be there.

    Args:
        folder: `savedmodels/NAME`.
        card: whether a README.md is written too.

    Raises:
        ValueError: If something else than versions is there, if nobody may
            write there, or while another export does.
    """
    folder = pathlib.Path(folder).expanduser()
    for mark, kind in (
        ("saved_model.pb", "one version"),
        ("config.yaml", "a run"),
    ):
        if (folder / mark).exists():
            raise ValueError(
                f"{folder} is the folder of {kind}. Name a folder for a model "
                "and its versions, such as savedmodels/NAME."
            )
    foreign = (folder / "README.md").exists()
    if card and foreign and not (folder / manifest.NAME).exists():
        raise ValueError(
            f"{folder} has a README.md of its own, which would be lost. Name "
            "a folder for a model and its versions."
        )
    files.check_folder(folder)
    if folder.is_dir():
        with files.lock(folder):
            pass  # Nobody else writes in it.
