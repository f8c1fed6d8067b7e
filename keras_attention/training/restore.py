"""From a run's folder, or its parts, to a model that answers."""

from keras_attention import config as configuration
from keras_attention.training import checkpoints, run_directory
from keras_attention.training.parts import Parts


def _read_weights(directory, model) -> None:
    if not directory.weights.is_file():
        raise ValueError(
            f"{directory.path} has no weights.npz: the run has not finished "
            "an epoch. Go on with `keras-attention train --resume`."
        )
    arrays, _ = checkpoints.load(directory.weights)
    checkpoints.arrays_to_variables(arrays, "model", model.trainable_variables)


def selected(parts: Parts):
    """The servable with the weights that a training has kept, in float32.

    Args:
        parts: of a finished training. Its model gets these weights. If the
            model has several replicas or another precision, a new model gets
            them.

    Returns:
        What the task exports, such as a `Translator`.
    """
    config, model = parts.config, parts.model
    precision, replicas = config.architecture.precision, config.run.replicas
    # What answers runs on one device in float32, whatever has trained it.
    if precision != "float32" or replicas != 1:
        config = configuration.replace(config, precision="float32")
        model = parts.task.create_model(config, parts.tokenizers)
    _read_weights(parts.directory, model)
    return parts.task.servable(config, model, parts.tokenizers)


def load_run(
    directory: run_directory.RunDirectory,
    config: configuration.TrainingConfig,
    task,
    stored_precision: str = "float32",
):
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
