"""Every choice of a training, by flag, file and Python alike.

The groups are for reading. A choice has one name: as a flag (`--dropout 0.2`),
in a file (`architecture: {dropout: 0.2}`) and in Python
(`config.make(dropout=0.2)`). It has one check: that of its group's constructor.
This package imports neither TensorFlow nor Keras.
"""

import dataclasses
import os
import pathlib
import re
from typing import Any

import yaml

from keras_attention import published, suggestions
from keras_attention.config import beginnings, checks, defaults, search
from keras_attention.config.checks import EMBEDDED, is_folder
from keras_attention.config.choices import Loader
from keras_attention.config.groups import (
    Architecture,
    Data,
    Optimizer,
    Run,
    Search,
    Training,
    TrainingConfig,
    Vocabulary,
)
from keras_attention.models import catalog

__all__ = [
    "Architecture",
    "Data",
    "Optimizer",
    "Run",
    "Search",
    "Training",
    "TrainingConfig",
    "Vocabulary",
    "check_corpus",
    "corpus_name",
    "flat",
    "handed_on",
    "is_folder",
    "make",
    "read",
    "replace",
    "resolve",
    "text",
]

DEFAULTS = TrainingConfig()
GROUPS = {
    field.name: field.type for field in dataclasses.fields(TrainingConfig)
}
# Name -> its group. No two choices share a name.
GROUP_OF = {
    field.name: group
    for group, kind in GROUPS.items()
    for field in dataclasses.fields(kind)
}
# What makes a vocabulary. `subword_sampling` only uses it.
VOCABULARY = ("vocabulary_type", "target_vocabulary_type", "vocabulary_size")
VOCABULARY += ("max_piece_length", "normalization", "joint_vocabulary")
# Choices whose paths become absolute.
PATHS = ("corpus", "init", "guided_alignment", "distillation_teachers")
# Choices that ship with the package: `train --config NAME`.
RECIPES = {
    path.stem: path
    for path in (pathlib.Path(__file__).parents[1] / "recipes").glob("*.yaml")
}


def make(**choices) -> TrainingConfig:
    """A configuration from choices by their names.

    With `init`, the run there hands on what is not named: see `handed_on`.

    Raises:
        ValueError: If a choice is unknown or has a wrong value.
    """
    config = replace(DEFAULTS, **choices)
    handed = handed_on(config.run.init, choices.get("model"))
    return replace(config, **{n: handed[n] for n in handed.keys() - choices})


def replace(config: TrainingConfig, **choices) -> TrainingConfig:
    """The configuration with other choices, by their names.

    Raises:
        ValueError: If a choice is unknown or has a wrong value.
    """
    groups: dict = {}
    for name, value in choices.items():
        if name not in GROUP_OF:
            raise ValueError(
                f"There is no option {name}"
                f"{suggestions.closest(name, GROUP_OF)}. `keras-attention "
                "train --help` lists all of them."
            )
        groups.setdefault(GROUP_OF[name], {})[name] = value
    replaced = {
        group: dataclasses.replace(getattr(config, group), **values)
        for group, values in groups.items()
    }
    return dataclasses.replace(config, **replaced)


def flat(config: TrainingConfig) -> dict[str, Any]:
    """Every choice by its name."""
    groups = dataclasses.asdict(config).values()
    return {name: value for group in groups for name, value in group.items()}


def read(name: str | os.PathLike) -> dict[str, Any]:
    """The choices of a YAML file or a recipe, by their names.

    Args:
        name: a file's path, or the name of a recipe. The file may name the
            groups, or leave them out.

    Raises:
        ValueError: If there is no such file, if it holds no choices, or if a
            choice has a wrong value.
    """
    path = pathlib.Path(name).expanduser()
    if not path.is_file():
        if name not in RECIPES:
            raise ValueError(
                f"There is no file and no recipe {name}"
                f"{suggestions.closest(name, RECIPES)}. The recipes are "
                f"{', '.join(sorted(RECIPES))}."
            )
        path = RECIPES[name]
    try:
        content = yaml.load(path.read_text("utf-8"), Loader) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = " ".join(str(error).split())
        raise ValueError(f"{path} is not YAML: {problem}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no choices: {content}")
    choices: dict = {}
    for key, value in content.items():
        # A group without a choice, `data:`, is None.
        is_group = key in GROUPS and isinstance(value, dict | None)
        choices |= (value or {}) if is_group else {str(key): value}
    try:
        replace(DEFAULTS, **choices)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return choices


def text(config: TrainingConfig) -> str:
    """YAML of every choice in its group, as `read` takes it.

    A choice that is None is left out: it is left to the model, or the task
    does not have it.
    """
    groups = {
        group: {name: v for name, v in choices.items() if v is not None}
        for group, choices in dataclasses.asdict(config).items()
    }
    return yaml.safe_dump(
        {group: choices for group, choices in groups.items() if choices},
        sort_keys=False,
        allow_unicode=True,
    )


def corpus_name(corpus: str) -> str:
    """The name of a corpus. The name of a folder is without its path."""
    is_path = not corpus.startswith("tfds:")
    return pathlib.Path(corpus).resolve().name if is_path else corpus


def check_corpus(corpus: str | None) -> None:
    """Refuses a corpus that is not there, as far as its name tells.

    Raises:
        ValueError: If it is no folder or file, and no corpus of another kind.
    """
    if corpus and is_folder(corpus) and not pathlib.Path(corpus).exists():
        raise ValueError(
            f"There is no corpus {corpus}"
            f"{suggestions.closest(corpus, EMBEDDED)}. If it "
            "has moved, name its place with --corpus. --corpus takes a folder "
            "or a file of texts (docs/command_line.md has the formats), "
            f'"tfds:NAME/CONFIG", or one of {", ".join(EMBEDDED)}.'
        )


def resolve(config: TrainingConfig) -> TrainingConfig:
    """Fills in the choices that are left to corpus, task and model.

    It also names the output. The path of a corpus becomes absolute, so that
    the run can be used from anywhere.

    Raises:
        ValueError: If the model has no such size. If choices do not go
            together: distillation without translations, a stream without a
            language model, SGD without a learning rate, a translator of one
            language that nobody named twice, choices of a search.
    """
    checks.check_together(config)
    filled = _fill(config)
    model = config.architecture.model
    size, sizes = filled.architecture.size, catalog.sizes(model)
    if size not in sizes:
        raise ValueError(
            f"Expected size to be one of {', '.join(sizes)}, those of {model}. "
            f"Received: size={size!r}{suggestions.closest(size, sizes)}"
        )
    checks.check_languages(config.data, filled.data)
    filled.search.whole()  # It refuses what does not go together.
    return filled


def output(config: TrainingConfig) -> str:
    """The run's folder, also of choices that `resolve` would refuse."""
    return _fill(config).run.output


def handed_on(init: str | None, model: str | None = None) -> dict[str, Any]:
    """The choices that a run hands on to one that begins with its weights.

    Args:
        init: the run's folder, or a published folder, which has a model and no
            vocabulary of ours; anything else hands on nothing.
        model: that of the new run. One of another model gets the vocabulary
            alone.

    Raises:
        ValueError: If a published folder holds none of our models.
    """
    run = init and beginnings.run_of(init)
    if not run:
        if not init or not published.is_published(init):
            return {}
        name, arguments = published.choices(init)
        if model not in (None, name):
            return {}
        sizes = catalog.sizes(name)
        return {
            "model": name,
            "size": "base" if "base" in sizes else sizes[-1],
            "model_arguments": {
                argument: value
                for argument, value in arguments.items()
                if argument not in published.LEFT_TO_A_TRAINING
            },
        }
    saved = read(run / "config.yaml")
    names = VOCABULARY
    if model in (None, saved.get("model")):
        names += ("model", "learns", "size", "model_arguments")
    return {name: saved[name] for name in names if name in saved}


def without_unread(config: TrainingConfig) -> TrainingConfig:
    """The choices without languages and a search that the task does not have.

    A task has languages if its recipe gives them a value. Runs of version 0.1.0
    have all of them.
    """
    recipe = defaults.choices("", "", config.task)
    names = [name for name in ("source", "target") if name not in recipe]
    names += [
        name for name in search.NAMES if not search.is_of(name, config.task)
    ]
    return replace(config, **dict.fromkeys(names))


def _fill(config: TrainingConfig) -> TrainingConfig:
    """The choices with those that are left to corpus, task and model."""
    model, task = config.architecture.model, config.task
    default, _ = catalog.OTHER_TASKS.get(
        config.architecture.learns, (catalog.entry(model).corpus, ())
    )
    corpus = config.data.corpus or default
    if is_folder(corpus):
        corpus = str(pathlib.Path(corpus).absolute())
    name = corpus_name(corpus)
    init = config.run.init and str(pathlib.Path(config.run.init).absolute())
    handed = dict(handed_on(init, model))
    if task != "translation":
        handed.pop("target_vocabulary_type", None)
    links = config.optimizer.guided_alignment
    if links not in (None, "hmm"):
        links = str(pathlib.Path(links).absolute())
    teachers = config.training.distillation_teachers
    if teachers is not None:
        found = beginnings.folders(teachers)
        teachers = ",".join(str(folder.absolute()) for folder in found)
    missing = {"corpus": corpus, "init": init, "guided_alignment": links}
    missing["distillation_teachers"] = teachers
    missing |= handed
    if handed:  # A vocabulary of one type is handed on as such.
        missing.setdefault("target_vocabulary_type", None)
    for choice, value in defaults.choices(corpus, model, task).items():
        missing.setdefault(choice, value)
    if config.training.steps is not None:
        del missing["epochs"]
    label = re.sub(r"\W+", "_", name).strip("_")
    given = flat(config)
    languages = ""
    if task == "translation":
        sides = [given[side] or missing[side] for side in ("source", "target")]
        languages = f"{'_'.join(sides)}_"
    missing["output"] = f"runs/{label}_{languages}{model}"
    return replace(
        without_unread(config),
        **{
            name: value
            for name, value in missing.items()
            if given[name] is None or name in PATHS
        },
    )
