"""The vocabularies of a run: learned once, then read."""

from collections.abc import Callable, Iterable, Mapping

from keras_attention import data, files


def learn(
    directory, sentences: Mapping[str, Callable[[], Iterable[str]]], choices
) -> None:
    """Learns the vocabularies of a run that are not there yet.

    Args:
        directory: the run's folder, a `training.run_directory.RunDirectory`.
        sentences: side ("joint", "source" or "target") -> a function that
            gives the training texts.
        choices: the group `vocabulary` of a configuration.
    """
    for side, texts in sentences.items():
        path = directory.vocabulary(side)
        model_type = choices.vocabulary_type
        if side == "target" and choices.target_vocabulary_type:
            model_type = choices.target_vocabulary_type
        if not path.is_file():
            model = data.train_vocabulary(
                texts(),
                choices.vocabulary_size,
                model_type=model_type,
                max_piece_length=choices.max_piece_length,
                normalization=choices.normalization,
            )
            files.write_atomically(path, model)


def load(directory, side: str) -> data.Tokenizer:
    """The tokenizer of a run's vocabulary.

    Args:
        directory: the run's folder.
        side: "joint", "source" or "target".

    Raises:
        ValueError: If the vocabulary is damaged.
    """
    path = directory.vocabulary(side)
    try:
        return data.Tokenizer(path.read_bytes(), side)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} is missing, damaged or no vocabulary that "
            f"`keras-attention train` wrote: {error}"
        ) from error
