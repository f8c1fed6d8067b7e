"""From a run's folder to a model that answers."""

import typing

from keras_attention import config as configuration
from keras_attention.training import checkpoints, run_directory


def check_weights(directory: run_directory.RunDirectory) -> None:
    """Checks that a run has weights to load.

    Raises:
        ValueError: If it has not finished an epoch.
    """
    if not directory.weights.is_file():
        raise ValueError(
            f"{directory.path} has no weights.npz: the run has not finished "
            "an epoch. Go on with `keras-attention train --resume`."
        )


def _read_weights(directory, model) -> None:
    check_weights(directory)
    arrays, _ = checkpoints.load(directory.weights)
    checkpoints.arrays_to_variables(arrays, "model", model.trainable_variables)


def load_run(
    directory: run_directory.RunDirectory,
    config: configuration.TrainingConfig,
    task,
    stored_precision: str = "float32",
) -> typing.Any:
    """The servable with the weights that a run has kept, in float32.

    Args:
        directory: the run's folder.
        config: its choices, also those of the search.
        task: what it has learned.
        stored_precision: the precision of the stored weights, "float32" or
            "float16".

    Returns:
        What the task exports, such as a `Translator`.

    Raises:
        ValueError: If the folder holds no finished epoch, if the precision is
            another one, or if a file is damaged.
    """
    # Its answers shall be the same on every machine.
    config = configuration.replace(config, precision="float32")
    tokenizers = task.load_tokenizers(directory)
    model = task.create_model(config, tokenizers)
    _read_weights(directory, model)
    return task.servable(config, model, tokenizers, stored_precision)
