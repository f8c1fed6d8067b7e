"""The choices that nobody makes: recipes of a corpus and of a task.

`recipes/defaults/` has a file for each corpus that wants its own choices, for
each task, and for a model on a corpus (CORPUS.MODEL.yaml). This is the one
place where they are merged.
"""

import pathlib

import yaml

from keras_attention.config.choices import Loader

FOLDER = pathlib.Path(__file__).parents[1] / "recipes" / "defaults"
OTHERWISE = "otherwise"


def _read(path: pathlib.Path) -> dict:
    groups = yaml.load(path.read_text("utf-8"), Loader).values()
    return {name: value for group in groups for name, value in group.items()}


# The name of a corpus or a task -> its choices.
RECIPES = {path.stem: _read(path) for path in sorted(FOLDER.glob("*.yaml"))}


def choices(corpus: str, model: str, task: str) -> dict:
    """The choices of a corpus, a model and a task, by their names."""
    merged: dict = {}
    for key in (OTHERWISE, task, corpus, f"{corpus}.{model}"):
        merged |= RECIPES.get(key, {})
    return merged


def by_default(name: str) -> str:
    """A sentence of a choice's help: its defaults."""
    keys: dict = {}
    for key, recipe in RECIPES.items():
        if recipe.get(name) is not None and key != OTHERWISE:
            words = key.replace(".", " with ").replace("_", " ")
            keys.setdefault(recipe[name], []).append(words)
    said = [f"{value} for {', '.join(named)}" for value, named in keys.items()]
    if name in RECIPES[OTHERWISE]:
        said.append(f"else {RECIPES[OTHERWISE][name]}")
    return f" By default {'; '.join(said)}."
