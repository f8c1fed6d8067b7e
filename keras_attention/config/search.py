"""How a model that writes texts searches: each choice once, for every surface.

Flags, files, `ka.load`, `ka.Translator`, exports and scores take a `Search` as
it is. A new choice is a field of `Search`, the same name in `Given`, and what a
graph of `serving` does with it.
"""

import dataclasses
import typing

from keras_attention.config.choices import Choices, choice, suggestion
from keras_attention.config.defaults import by_default

# Language models have these choices, and translators have all.
OF_LANGUAGE_MODELS = ("no_repeat_ngram_size",)


class Given(typing.TypedDict, total=False):
    """The fields of `Search` as keyword arguments, for type checkers."""

    num_beams: int | None
    length_penalty: float | None
    no_repeat_ngram_size: int | None


@dataclasses.dataclass(frozen=True)
class Search(Choices):
    """The search of a model that writes texts. None is the model's own choice.

    Raises:
        ValueError: If a choice has another type or is out of its bounds.
    """

    num_beams: int | None = choice(
        None,
        "For translators, beams of the search. 1 is greedy search. A finished "
        "model has its own number; a SavedModel takes that or 1. A training:"
        + by_default("num_beams"),
        at_least=1,
    )
    length_penalty: float | None = choice(
        None,
        "For translators, alpha of the length penalty, 0 for none. A finished "
        "model has its own, which a SavedModel keeps. A training:"
        + by_default("length_penalty"),
        at_least=0,
    )
    no_repeat_ngram_size: int | None = choice(
        None,
        "For translators and language models, how many tokens in a row no "
        "answer may write twice, 0 for no limit. Paulus et al. 2017 have 3. A "
        "finished model has its own, which a SavedModel keeps. A training:"
        + by_default("no_repeat_ngram_size"),
        at_least=0,
    )

    @property
    def given(self) -> dict:
        """The choices that are not left to the model, by their names."""
        return given(self)

    def over(self, other: "Search") -> "Search":
        """These choices, and those of another search where there are none."""
        return dataclasses.replace(other, **self.given)


NAMES = tuple(field.name for field in dataclasses.fields(Search))
# What nobody chooses.
OTHERWISE = Search(num_beams=4, length_penalty=1.0, no_repeat_ngram_size=0)


def of(**choices: typing.Unpack[Given]) -> Search:
    """A search from choices by their names.

    Raises:
        ValueError: If a choice is unknown or has a wrong value.
    """
    for name in choices:
        if name not in NAMES:
            raise ValueError(
                f"A search has no choice {name}{suggestion(name, NAMES)}. It "
                f"has {', '.join(NAMES)}."
            )
    return Search(**choices)


def given(options) -> dict:
    """The choices of a search among others, those that are None left out.

    Args:
        options: has the fields of `Search`, and maybe more.
    """
    values = {name: getattr(options, name) for name in NAMES}
    return {name: one for name, one in values.items() if one is not None}


def is_of(name: str, task: str) -> bool:
    """Whether the models of a task have a choice of a search."""
    if task == "language_modelling":
        return name in OF_LANGUAGE_MODELS
    return task == "translation"


def check_task(search: Search, task: str) -> None:
    """Refuses choices of a search that the models of a task do not have.

    Raises:
        ValueError: If there are some.
    """
    wrong = [name for name in search.given if not is_of(name, task)]
    if not wrong:
        return
    for_both = [name for name in wrong if name in OF_LANGUAGE_MODELS]
    raise ValueError(
        f"{' and '.join(for_both or wrong)} can be given to translators"
        f"{' and language models' if for_both else ''} only. This model does "
        f"{task.replace('_', ' ')}."
    )
