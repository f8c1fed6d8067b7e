"""How far a training has come, and the checkpoint of all its state."""

import dataclasses

from keras_attention.training import checkpoints
from keras_attention.training.parts import Parts


@dataclasses.dataclass
class Progress:
    """How far a run has come: saved with every checkpoint.

    Args:
        epoch: the current epoch, from 0.
        step: how many of its batches are done.
        history: the logs of each finished epoch.
        best_epoch: the epoch whose weights are kept, from 0.
        corpus: checksums of training and validation examples as ids.
        metrics: the sums of the metrics, if the epoch was broken off.
    """

    epoch: int = 0
    step: int = 0
    history: list = dataclasses.field(default_factory=list)
    best_epoch: int | None = None
    corpus: list | None = None
    metrics: dict | None = None


def _variables(parts: Parts) -> dict:
    metrics = [
        variable
        for metric in parts.trainer.metrics
        for variable in metric.variables
    ]
    return {
        "model": parts.model.variables,
        "optimizer": parts.trainer.optimizer.variables,
        "metrics": metrics,
        # Such as the state that a stream carries from batch to batch.
        "objective": getattr(parts.trainer.objective, "variables", []),
    }


def save(parts: Parts, progress: Progress) -> None:
    """Writes all state of a training to its checkpoint.

    All workers call it, as they read the sums of the metrics together. The
    leader writes.
    """
    arrays = {}
    # Dropout's seeds and the step of the schedule are among the variables: the
    # next batch then draws what it would have drawn.
    for prefix, variables in _variables(parts).items():
        arrays |= checkpoints.variables_to_arrays(prefix, variables)
    # The metrics are among the arrays.
    content = dataclasses.asdict(dataclasses.replace(progress, metrics=None))
    del content["metrics"]
    if parts.team.leads:
        checkpoints.save(parts.directory.checkpoint, arrays, content)


def _difference(parts, checksums) -> str:
    """Why the examples are others, as far as can be told, and what to do."""
    sampling = parts.config.vocabulary.subword_sampling
    # No pieces are drawn of validation texts: these are still the same.
    if sampling and checksums[1] == parts.pipeline.checksums[1]:
        return (
            f"with subword_sampling={sampling}, version 0.1.0 drew other "
            "pieces of a language model's texts than this one, or the training "
            "texts have changed. Put them back, go on with the version that "
            "began the run"
        )
    return (
        "its files have changed, or a newer version reads unknown words or "
        "control characters in them otherwise. Put the files back"
    )


def load(parts: Parts) -> Progress:
    """Gives all parts the state of the checkpoint.

    Raises:
        ValueError: If the corpus has other examples than the run began with.
    """
    arrays, content = checkpoints.load(parts.directory.checkpoint)
    # First: a refusal leaves all parts as they are.
    if content["corpus"] != parts.pipeline.checksums:
        raise ValueError(
            f"{parts.config.data.corpus} no longer gives the examples that the "
            "run began with: "
            + _difference(parts, content["corpus"])
            + ", or start another run with another --output."
        )
    for prefix, variables in _variables(parts).items():
        checkpoints.arrays_to_variables(arrays, prefix, variables)
    progress = Progress(**content)
    # At the start of an epoch, the sums are those of the one before.
    if progress.step:
        progress.metrics = {
            name: array
            for name, array in arrays.items()
            if name.startswith("metrics/")
        }
    return progress


def restore_metrics(parts: Parts, progress: Progress) -> None:
    """Gives the metrics their sums of the part of the epoch that is done.

    `fit` resets the metrics when an epoch begins.
    """
    if progress.metrics is not None:
        variables = _variables(parts)["metrics"]
        checkpoints.arrays_to_variables(progress.metrics, "metrics", variables)
    progress.metrics = None
