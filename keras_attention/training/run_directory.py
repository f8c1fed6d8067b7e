"""A run's folder: the names of its files, its choices, and who may write."""

import dataclasses
import hashlib
import json
import os
import pathlib

from keras_attention import config as configuration
from keras_attention import files
from keras_attention.config import search

# Choices that may change when a run is resumed. The corpus may have moved: a
# checksum guards its content.
FREE_ON_RESUME = frozenset(
    ("output", "epochs", "steps", "checkpoint_steps", "corpus")
    + search.NAMES
    + ("data_note", "validation_sentences")
)


@dataclasses.dataclass(frozen=True)
class RunDirectory:
    """Names of the files in a run's folder.

    Args:
        path: the folder.
    """

    path: pathlib.Path

    @property
    def config(self) -> pathlib.Path:
        """Every choice of the run."""
        return self.path / "config.yaml"

    @property
    def is_run(self) -> bool:
        """Whether the folder is that of a run: a run has its choices."""
        return self.config.is_file()

    @property
    def checkpoint(self) -> pathlib.Path:
        """All state of the training, with which it goes on."""
        return self.path / "checkpoint.npz"

    @property
    def weights(self) -> pathlib.Path:
        """The weights that were selected."""
        return self.path / "weights.npz"

    @property
    def scores(self) -> pathlib.Path:
        """Scores on the held-out examples. This file is written last."""
        return self.path / "scores.json"

    @property
    def history(self) -> pathlib.Path:
        """The logs of each epoch."""
        return self.path / "history.json"

    def epoch_weights(self, epoch: int) -> pathlib.Path:
        """Weights after an epoch, kept for the mean of the last epochs."""
        return self.path / f"weights-epoch-{epoch:04d}.npz"

    def vocabulary(self, side: str) -> pathlib.Path:
        """SentencePiece model: side "joint", "source" or "target"."""
        return self.path / f"vocabulary.{side}.model"

    @property
    def classes(self) -> pathlib.Path:
        """The labels that a classifier gives, one a line."""
        return self.path / "classes.txt"

    def vocabularies(self) -> list[pathlib.Path]:
        """The vocabularies that are there, in the order of their names."""
        return sorted(self.path.glob("vocabulary.*.model"))

    def checksum(self) -> str:
        """The SHA-256 of the files that decide what the model answers."""
        paths = [self.config, self.weights, self.classes]
        digests = [
            f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"
            for path in (*paths, *self.vocabularies())
            if path.is_file()
        ]
        return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def at(path: str | os.PathLike) -> RunDirectory:
    """The run's folder at a path, which may begin with `~`."""
    return RunDirectory(pathlib.Path(path).expanduser())


def write_config(
    directory: RunDirectory, config: configuration.TrainingConfig
) -> None:
    """Writes `config.yaml`, whole or not at all."""
    text = configuration.text(config)
    files.write_atomically(directory.config, text.encode())


def read_config(directory: RunDirectory) -> configuration.TrainingConfig:
    """Reads `config.yaml`.

    Raises:
        ValueError: If the folder holds no run, or a file of that name that is
            something else.
    """
    if not directory.is_run:
        raise ValueError(
            f"{directory.path} holds neither a run (config.yaml) nor a "
            "SavedModel (numeric versions)."
        )
    try:
        choices = configuration.read(directory.config)
        # Not `make`: what a run has left open, its `init` does not decide now.
        config = configuration.replace(configuration.DEFAULTS, **choices)
        return configuration.without_unread(config)
    except ValueError as error:
        raise ValueError(
            f"{directory.config} does not hold the choices of a run, as "
            f"`keras-attention train` writes them: {error}"
        ) from error


def check_resumable(
    saved: configuration.TrainingConfig,
    config: configuration.TrainingConfig,
    free: frozenset = FREE_ON_RESUME,
) -> None:
    """Refuses choices with which a run would become another one.

    Args:
        saved: the choices that the run began with.
        config: those to go on with.
        free: names of the choices that may differ.

    Raises:
        ValueError: If another choice differs. The message names the first.
    """
    begun = configuration.flat(saved)
    for name, value in configuration.flat(config).items():
        if name not in free and value != begun[name]:
            raise ValueError(
                f"Expected {name}={begun[name]!r}, as the run began: leave it "
                "out (of a --config too) to go on, or start another run with "
                f"another --output. Received: {name}={value!r}"
            )


def start(
    config: configuration.TrainingConfig, resume: bool = False
) -> RunDirectory:
    """Makes the run's folder, or checks that it can be resumed.

    A run that was stopped before its first checkpoint starts anew.

    Args:
        config: every choice; `output` is set.
        resume: whether to go on with a run that is there.

    Raises:
        ValueError: If the folder holds a run and `resume` is not set. If a
            choice differs from those that the run began with. If the run's
            checkpoint is gone. If `config.yaml` is not that of a run.
    """
    directory = at(config.run.output)
    # The caller holds the folder's lock, so that no temporary is in use.
    directory.path.mkdir(parents=True, exist_ok=True)
    files.remove_temporaries(directory.path)
    if directory.scores.is_file() and not directory.checkpoint.is_file():
        raise _without_checkpoint(directory)
    if any(one.checkpoint.is_file() for one in _with_stages(directory)):
        if not resume:
            raise ValueError(
                f"{directory.path} holds a run already. Add --resume to go on "
                "with it, or choose another --output."
            )
        check_resumable(read_config(directory), config)
        return directory
    _check_nothing_is_lost(directory, resume)
    # Nothing was trained. The vocabulary of a first try may be wrong.
    for path in directory.vocabularies():
        path.unlink()
    # Last: with this file, the folder is a run.
    write_config(directory, config)
    return directory


def _with_stages(directory: RunDirectory) -> list[RunDirectory]:
    """The folder, and those in it that may be of stages before the last.

    It may have been the run of another task, whose stages had other names. So
    any run in it counts: to refuse is the safe side.
    """
    inside = directory.path.glob("*/config.yaml") if directory.is_run else ()
    return [directory, *(at(path.parent) for path in inside)]


def _check_nothing_is_lost(directory: RunDirectory, resume: bool) -> None:
    """Refuses to write over the work of a run that has no checkpoint.

    The weights and logs of the first epoch are written before the first
    checkpoint. A run that was stopped in between may start anew.
    """
    # A config.yaml of another program is refused here.
    if directory.is_run:
        read_config(directory)
    found = _with_stages(directory)
    trained = any(one.weights.is_file() for one in found)
    is_longer = any(len(read_history(one)) > 1 for one in found)
    if is_longer or (trained and not resume):
        raise _without_checkpoint(directory)


def _without_checkpoint(directory: RunDirectory) -> ValueError:
    return ValueError(
        f"{directory.path} holds a run without its "
        f"{directory.checkpoint.name}, which cannot go on. Choose another "
        "--output."
    )


def read_history(directory: RunDirectory) -> list[dict]:
    """The logs of each epoch. A stage before the last has its own folder."""
    if not directory.history.is_file():
        return []
    return json.loads(directory.history.read_text())
