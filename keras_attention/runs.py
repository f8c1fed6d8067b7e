"""Runs and models from Python: `ka.train` and `ka.load`."""

import hashlib
import os
import pathlib
import typing
from collections.abc import Collection, Iterable, Sequence

from keras_attention import config as configuration
from keras_attention import devices
from keras_attention.config import search as searches
from keras_attention.serving import loading, manifest
from keras_attention.training import run_directory

if typing.TYPE_CHECKING:
    # A SavedModel is loaded without Keras. So functions of runs import it.
    from keras_attention import tasks
    from keras_attention.serving import (
        continuer,
        labeller,
        text_model,
        translator,
    )
    from keras_attention.training import parts

    # Which kind a folder holds is known when it is read. To type checkers and
    # editors, a model therefore has the methods of all kinds.
    class Model(translator.Translator, continuer.Continuer, labeller.Labeller):
        """What `load` gives: a translator, a continuer or a labeller."""

        def __call__(
            self,
            rows: Iterable[text_model.Row],
            num_beams: int | None = None,
            batch_size: int = 64,
            truncate: bool = False,
        ) -> list[str]: ...
        @typing.overload
        def score(
            self,
            texts: Sequence[str],
            references: Sequence[str],
            batch_size: int = 64,
            truncate: bool = False,
        ) -> list[tuple[float, int]]: ...
        @typing.overload
        def score(
            self,
            texts: Sequence[str],
            *,
            batch_size: int = 64,
            truncate: bool = False,
        ) -> list[tuple[float, int]]: ...


def load(
    path: str | os.PathLike, **search: typing.Unpack[searches.Given]
) -> "Model":
    """Loads a SavedModel or a run, such as a translator.

    On a two-core machine, it limits each TensorFlow operation to one core, so
    that the two halves of a batch run in parallel (`devices.share_cores`).
    This works only before TensorFlow has run anything.

    Args:
        path: `savedmodels/NAME`, one of its versions, or a run's folder.
        **search: choices of a run's search by their names, where they are not
            the run's own, such as `num_beams` and `length_penalty`. See
            `config.Search`.

    Returns:
        A `serving.text_model.TextModel` by its kind, such as a `Translator`.

    Raises:
        ValueError: If there is neither, if a file is damaged, or if a
            SavedModel is asked for another search. If the model has no search,
            and is asked for one.
    """
    devices.share_cores()
    if run_directory.at(path).is_run:
        from keras_attention.training import restore

        return restore.load_run(*read_run(path, **search))
    return _with_search(loading.load(path), path, searches.of(**search))


def load_some(
    path: str | os.PathLike,
    names: Collection[str],
    is_brief: bool,
    **search: typing.Unpack[searches.Given],
) -> "Model":
    """Loads some signatures of a SavedModel, see `loading.load`.

    Args:
        path, names, is_brief: as for `loading.load`.
        **search: as for `load`.

    Raises:
        ValueError: As `load`.
    """
    devices.share_cores()
    model = loading.load(path, names, is_brief)
    return _with_search(model, path, searches.of(**search))


def _with_search(model, path, search: searches.Search) -> "Model":
    """A SavedModel, if it searches as it is asked to.

    Raises:
        ValueError: If it does not.
    """
    loaded = typing.cast("Model", model)
    searches.check_task(search, loaded.task)
    given = search.given
    if given and given != {"num_beams": loaded.num_beams}:
        here = "greedy search"
        if loaded.task == "translation":
            here = f"{loaded.num_beams} beams"
        others = ""
        if "search" in loaded.kind.signatures:
            others = "call its `search` or `sample`, "
        raise ValueError(
            "A SavedModel keeps the search that it was exported with, here "
            f"{here}. Leave {' and '.join(given)} out (a translator's call "
            f"takes num_beams=1, greedy search), {others}or give the folder "
            "of a run. Received: "
            f"{', '.join(f'{name}={given[name]}' for name in given)}, {path}"
        )
    return loaded


def load_ensemble(
    paths: Sequence[str | os.PathLike],
    **search: typing.Unpack[searches.Given],
) -> "Model":
    """Loads runs of translators with one vocabulary as one translator.

    Its search, its limits and its tokenizers are those of the first run. See
    `models.ensemble.Ensemble`.

    Args:
        paths: the folders of the runs.
        **search: as for `load`.

    Raises:
        ValueError: If a path is no run of a translator, or if a vocabulary is
            another one than the first run's.
    """
    from keras_attention import tasks
    from keras_attention.tasks import ensembles

    devices.share_cores()
    given = searches.of(**search).given
    return ensembles.load(paths, tasks.get("translation"), given)


def checksum(path: str | os.PathLike) -> str:
    """The SHA-256 of the files that decide what a model answers.

    Args:
        path: a version of a SavedModel, or a run's folder.
    """
    directory = run_directory.at(path)
    if directory.is_run:
        return directory.checksum()
    lines = manifest.lines(directory.path, 0)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def train(
    config: configuration.TrainingConfig, resume: bool = False
) -> "parts.Parts":
    """Trains what a configuration says, and keeps the selected weights.

    It neither scores the model nor exports it, unlike `keras-attention train`.
    `keras-attention evaluate` and `keras-attention export` take the folder.

    Args:
        config: the choices, as `config.make` makes them. `config.resolve` fills
            in the others.
        resume: whether to go on with the run in the folder `output`.

    Returns:
        The parts of the training; `directory.path` is the run's folder.

    Raises:
        ValueError: If the folder holds another run, if the corpus cannot be
            read, or if the configuration cannot be trained.
    """
    from keras_attention import tasks
    from keras_attention.training import loop

    configuration.check_corpus(config.data.corpus)
    config = configuration.resolve(config)
    return loop.train(config, tasks.get(config.task), resume)


def read_run(
    path: str | os.PathLike, **search: typing.Unpack[searches.Given]
) -> tuple[
    run_directory.RunDirectory, configuration.TrainingConfig, "tasks.Task"
]:
    """A run's folder, its choices with the search to load it with, its task.

    `training.restore.load_run` takes the three.

    Args:
        path: the run's folder.
        **search: as for `load`.

    Raises:
        ValueError: If the folder holds no run, or if a run is asked for a
            search that its task does not have.
    """
    from keras_attention import tasks

    asked = searches.of(**search)
    directory = run_directory.at(path)
    config = run_directory.read_config(directory)
    searches.check_task(asked, config.task)
    config = configuration.replace(config, **asked.given)
    config.search.whole()  # It refuses what does not go together.
    searches.check_asked(asked, config.search)
    return directory, config, tasks.get(config.task)


def folders(models: list[str]) -> list[str]:
    """The names of the models' folders, or `labels` if these say too little."""
    found = [pathlib.Path(model).name for model in models]
    # A run's export, or a version of it.
    is_export = [name.isdigit() or name == "savedmodel" for name in found]
    if any(is_export) or len({*found}) < len({*models}):
        return labels(models)
    return found


def labels(models: list[str]) -> list[str]:
    """The shortest ends of the paths that tell them apart."""
    parts = [pathlib.Path(model).parts for model in models]
    for count in range(2, max(map(len, parts)) + 1):
        found = ["/".join(names[-count:]) for names in parts]
        if len({*found}) == len({*parts}):
            return found
    return list(models)
