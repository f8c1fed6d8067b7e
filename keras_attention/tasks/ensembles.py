"""Runs of translators with one vocabulary, as one translator."""

import types

from keras_attention import config as configuration
from keras_attention.config import search as searches
from keras_attention.models import ensemble
from keras_attention.training import restore, run_directory


def check(paths) -> None:
    """Checks that runs can translate together, before any is loaded.

    Args:
        paths: the folders of the runs.

    Raises:
        ValueError: If a path is no run of a translator that has finished an
            epoch, or if a vocabulary is another one than the first run's.
    """
    directories = [run_directory.at(path) for path in paths]
    for directory in directories:
        task = run_directory.read_config(directory).task
        if task != "translation":
            raise ValueError(
                f"An ensemble is of translators. {directory.path} does "
                f"{task.replace('_', ' ')}."
            )
        restore.check_weights(directory)
        if _vocabularies(directory) != _vocabularies(directories[0]):
            raise ValueError(
                f"{directory.path} has another vocabulary than "
                f"{directories[0].path}, so their probabilities are of other "
                "tokens. An ensemble needs runs of one vocabulary: train them "
                "on one corpus with the same choices and other seeds."
            )


def _vocabularies(directory) -> dict:
    return {path.name: path.read_bytes() for path in directory.vocabularies()}


def load(paths, task, search=types.MappingProxyType({})):
    """The runs as one translator. See `models.ensemble.Ensemble`.

    Its search, its limits and its tokenizers are those of the first run.

    Args:
        paths: the folders of the runs.
        task: translation.
        search: choices of the search that replace the first run's, by their
            names.

    Raises:
        ValueError: As `check` does, and if a choice of the search changes
            nothing.
    """
    check(paths)
    configs = [
        configuration.replace(
            run_directory.read_config(run_directory.at(path)), **search
        )
        for path in paths
    ]
    asked = searches.of(**search)
    searches.check_asked(asked, configs[0].search)
    loaded = [
        restore.load_run(run_directory.at(path), config, task)
        for path, config in zip(paths, configs, strict=True)
    ]
    together = ensemble.Ensemble([one.model for one in loaded])
    together.build()
    graph = loaded[0].graph
    tokenizers = [graph.source_tokenizer, graph.target_tokenizer]
    return task.servable(configs[0], together, tokenizers)
