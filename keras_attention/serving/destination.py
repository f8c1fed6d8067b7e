"""Where a SavedModel is written: a folder for a model's versions.

This module does not import TensorFlow.
"""

import os
import pathlib

from keras_attention import files
from keras_attention.serving import manifest


def check(folder: str | os.PathLike, card: bool = True) -> None:
    """That the next version of a model can be written to a folder.

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
                "Expected a folder for a model and its versions, such as "
                f"savedmodels/NAME. Received: {folder}, the folder of {kind}"
            )
    foreign = (folder / "README.md").exists()
    if card and foreign and not (folder / manifest.NAME).exists():
        raise ValueError(
            "Expected a folder for a model and its versions: its README.md "
            f"would be lost. Received: {folder}"
        )
    place = next(
        path for path in (folder, *folder.parents) if os.path.lexists(path)
    )
    if not place.is_dir():
        raise ValueError(
            f"Expected a folder. Received: {folder}, where {place} is none"
        )
    if not os.access(place, os.W_OK | os.X_OK):
        raise ValueError(
            "Expected a folder that you may write in. "
            f"Received: {folder}, where {place} is closed to you"
        )
    if place == folder:
        with files.lock(folder):
            pass  # Nobody else writes in it.
