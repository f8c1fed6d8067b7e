"""What an epoch leaves in the run's folder: weights and logs."""

import json

import numpy as np
import tensorflow as tf

from keras_attention import files
from keras_attention.training import checkpoints, lora
from keras_attention.training.parts import Parts
from keras_attention.training.progress import Progress


def keep_weights(parts: Parts, progress: Progress) -> None:
    """Writes the selected weights if this epoch is the best so far.

    All workers find the best epoch, and the leader writes.
    """
    ranks = [parts.task.rank(logs) for logs in progress.history]
    is_best = ranks[-1] > max(ranks[:-1], default=())
    if is_best:
        progress.best_epoch = progress.epoch
    if not parts.team.leads:
        return
    # Before the checkpoint: a run that is stopped in between trains this epoch
    # again and writes the same. The other way round, its best weights would be
    # lost.
    arrays = checkpoints.variables_to_arrays(
        "model", *zip(*lora.plain_weights(parts.model), strict=True)
    )
    if is_best:
        content = {"epoch": progress.epoch, **progress.history[-1]}
        checkpoints.save(parts.directory.weights, arrays, content)
    if parts.config.training.average_last:
        path = parts.directory.epoch_weights(progress.epoch)
        checkpoints.save(path, arrays, {"epoch": progress.epoch})


def remove_old_weights(parts: Parts, progress: Progress) -> None:
    """Removes weights that no mean needs, once a checkpoint is past them."""
    for epoch in range(progress.epoch - parts.config.training.average_last):
        parts.directory.epoch_weights(epoch).unlink(missing_ok=True)


def average_last(parts: Parts, progress: Progress) -> None:
    """The mean of the last epochs' weights becomes the selected ones."""
    last, count = progress.epoch, parts.config.training.average_last
    # The files stay: a run that is stopped here averages them once more.
    loaded = [
        checkpoints.load(parts.directory.epoch_weights(epoch))[0]
        for epoch in range(max(0, last - count), last)
    ]
    mean = {
        name: np.mean([arrays[name] for arrays in loaded], axis=0)
        for name in loaded[0]
    }
    content = {"averaged_epochs": len(loaded)}
    checkpoints.save(parts.directory.weights, mean, content)


def write_logs(parts: Parts, progress: Progress) -> None:
    """Writes history.json, and scalars for TensorBoard."""
    # Whole each time: an epoch that is trained again after a stop replaces its
    # logs, and comes twice in TensorBoard's alone.
    history = json.dumps(progress.history, indent=1)
    files.write_atomically(parts.directory.history, history.encode())
    folder = str(parts.directory.path / "tensorboard")
    with tf.summary.create_file_writer(folder).as_default():
        for name, value in progress.history[-1].items():
            tf.summary.scalar(name, value, step=progress.epoch)
