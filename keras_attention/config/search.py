"""How a model that writes texts searches: each choice once, for every surface.

Flags, files, `ka.load`, `ka.Translator`, exports and scores take a `Search` as
it is. A new choice is a field of `Search`, the same name in `Given`, and what a
graph of `serving` does with it. `tests/server/test_search_surfaces.py` asks
each surface for it.
"""

import dataclasses
import typing
from collections.abc import Mapping

from keras_attention import suggestions
from keras_attention.config.choices import Choices, choice
from keras_attention.config.defaults import by_default

# Language models have these choices, and translators have all.
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "sampling_seed")
OF_LANGUAGE_MODELS = ("no_repeat_ngram_size", "min_length", *SAMPLING)
_MOST = 2**31 - 1
# Choice -> the least and the most that it may be where each text has its own,
# both included. Between them every score of float32 stays finite and far above
# that of an empty place.
BOUNDS = {
    "length_penalty": (0, 10),
    "coverage_penalty": (0, 100),
    "no_repeat_ngram_size": (0, _MOST),
    "min_length": (0, _MOST),
    "temperature": (0.001, 1000),
    "top_k": (0, _MOST),
    "top_p": (0.000001, 1),
    "min_p": (0, 1),
    "sampling_seed": (0, 2**43 - 1),
}


class Given(typing.TypedDict, total=False):
    """The fields of `Search` as keyword arguments, for type checkers."""

    num_beams: int | None
    length_penalty: float | None
    coverage_penalty: float | None
    no_repeat_ngram_size: int | None
    min_length: int | None
    num_groups: int | None
    diversity: float | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    sampling_seed: int | None
    constraints: bool | None
    minimum_risk: bool | None
    per_request: bool | None


@dataclasses.dataclass(frozen=True)
class Search(Choices):
    """The search of a model that writes texts. None is the model's own choice.

    Raises:
        ValueError: If a choice has another type or is out of its bounds.
    """

    num_beams: int | None = choice(
        None,
        "For translators, beams of the search. 1 is greedy search. A finished "
        "model has its own number; a SavedModel takes that or 1."
        + by_default("num_beams"),
        at_least=1,
    )
    length_penalty: float | None = choice(
        None,
        "For translators, alpha of the length penalty, 0 for none. A finished "
        "model has its own, which a SavedModel keeps."
        + by_default("length_penalty"),
        at_least=0,
    )
    coverage_penalty: float | None = choice(
        None,
        "For translators, beta of the coverage penalty, which prefers "
        "translations that look at every token of the source (Wu et al. 2016, "
        "equation 14). By default 0, for none.",
        at_least=0,
    )
    no_repeat_ngram_size: int | None = choice(
        None,
        "For translators and language models, how many tokens in a row no "
        "answer may write twice, 0 for no limit. Paulus et al. 2017 have 3. A "
        "finished model has its own, which a SavedModel keeps."
        + by_default("no_repeat_ngram_size"),
        at_least=0,
    )
    min_length: int | None = choice(
        None,
        "For translators and language models, the fewest tokens that an answer "
        "writes, END included. The limit goes before it. By default 0, for "
        "no minimum.",
        at_least=0,
    )
    num_groups: int | None = choice(
        None,
        "For translators, into how many groups the beams are divided, which "
        "avoid each other's tokens (diverse beam search, Vijayakumar et al. "
        "2018). By default 1.",
        at_least=1,
    )
    diversity: float | None = choice(
        None,
        "With groups, what a token loses for each time that a group before has "
        "taken it at this position. By default 0.5.",
        at_least=0,
    )
    temperature: float | None = choice(
        None,
        "Above 0, each token is drawn from the model's distribution at this "
        "temperature, in place of a beam or greedy search. `n_best` then has "
        "`num_beams` samples, the most probable first. By default 0.",
        at_least=0,
    )
    top_k: int | None = choice(
        None,
        "With a temperature, draw from the N most probable tokens (Fan et al. "
        "2018). By default from all.",
        at_least=1,
    )
    top_p: float | None = choice(
        None,
        "With a temperature, draw from the fewest tokens whose probabilities "
        "sum to this (Holtzman et al. 2019). By default from all.",
        above=0,
        at_most=1,
    )
    min_p: float | None = choice(
        None,
        "With a temperature, draw from the tokens with at least this share of "
        "the greatest probability (Nguyen et al. 2024). By default from all.",
        above=0,
        at_most=1,
    )
    sampling_seed: int | None = choice(
        None,
        "With a temperature, the seed. The same seed draws the same answer to "
        "the same text, whatever texts stand beside it. By default 1.",
        at_least=0,
        # `serving.draws` makes one int64 of it and a number of 20 bits.
        at_most=2**43 - 1,
    )

    constraints: bool | None = choice(
        None,
        "For translators, whether there is also a signature `constrained`, "
        "which takes a prefix and terms with each text. By default not.",
    )
    minimum_risk: bool | None = choice(
        None,
        "For translators, whether there is also a signature `minimum_risk`, "
        "which gives the translation of `n_best` that is most like all of them "
        "by chrF. By default not.",
    )
    per_request: bool | None = choice(
        None,
        "For translators, whether there are also signatures `search` and "
        "`sample`, which take choices of a search with each text. By default "
        "not.",
    )

    @property
    def given(self) -> dict:
        """The choices that are not left to the model, by their names."""
        return given(self)

    @property
    def samples(self) -> bool:
        """Whether tokens are drawn."""
        return bool(self.temperature)

    @property
    def groups(self) -> dict:
        """What a diverse beam search takes of these choices."""
        found = {"num_groups": self.num_groups, "diversity": self.diversity}
        return {name: one for name, one in found.items() if one is not None}

    def whole(self) -> "Search":
        """These choices, and those that nobody chose.

        Raises:
            ValueError: If some do not go together.
        """
        search = dataclasses.replace(OTHERWISE, **self.given)
        check_together(search)
        return search


NAMES = tuple(field.name for field in dataclasses.fields(Search))
# What nobody chooses.
OTHERWISE = Search(
    num_beams=4,
    length_penalty=1.0,
    coverage_penalty=0.0,
    no_repeat_ngram_size=0,
    min_length=0,
    num_groups=1,
    temperature=0.0,
    sampling_seed=1,
    constraints=False,
    minimum_risk=False,
    per_request=False,
)


def of(**choices: typing.Unpack[Given]) -> Search:
    """A search from choices by their names.

    Raises:
        ValueError: If a choice is unknown or has a wrong value.
    """
    for name in choices:
        if name not in NAMES:
            raise ValueError(
                f"A search has no choice {name}"
                f"{suggestions.closest(name, NAMES)}. It has "
                f"{', '.join(NAMES)}."
            )
    return Search(**choices)


def check_together(search: Search) -> None:
    """Refuses choices that do not go together.

    Raises:
        ValueError: If there are some.
    """
    drawn = [
        name for name in ("top_k", "top_p", "min_p") if name in search.given
    ]
    if drawn and not search.samples:
        raise ValueError(
            f"{' and '.join(drawn)} say{'s' * (len(drawn) == 1)} what tokens "
            "are drawn from, and this search draws none. Add a temperature, "
            f"such as temperature=1.0, or leave {' and '.join(drawn)} out."
        )
    groups = search.num_groups or 1
    for_beams = [
        name
        for name in ("coverage_penalty", "diversity")
        if getattr(search, name)
    ]
    for_beams += ["num_groups"] * (groups > 1)
    for_beams += ["constraints"] * bool(search.constraints)
    if search.samples and for_beams:
        raise ValueError(
            f"{' and '.join(for_beams)} need{'s' * (len(for_beams) == 1)} a "
            "beam, and a search with a temperature has none. Leave "
            f"{' and '.join(for_beams)} out, or the temperature."
        )
    if search.diversity is not None and groups == 1:
        raise ValueError(
            "diversity is between groups of beams, and there is one group. Add "
            "num_groups, such as num_groups=2, or leave diversity out."
        )
    if search.minimum_risk and search.num_beams == 1:
        raise ValueError(
            "minimum_risk chooses among the translations of a search with "
            "several beams or samples. Add num_beams of at least 2."
        )
    if (search.num_beams or groups) % groups:
        raise ValueError(
            "The beams are divided into groups of one size, so num_beams must "
            "be a multiple of num_groups. Received: "
            f"num_beams={search.num_beams}, num_groups={groups}"
        )
    if search.per_request:
        # They become the values of what a text does not choose.
        defaults = search.given
        if not search.samples:
            # Then `sample` has its own.
            defaults.pop("temperature", None)
        check_bounds(defaults, " with per_request")


def check_bounds(choices: Mapping[str, float], when: str = "") -> None:
    """Refuses a value that no text may have of its own.

    Args:
        choices: name of a choice -> its value.
        when: what the message says of the bound.

    Raises:
        ValueError: If a value is not in its `BOUNDS`.
    """
    for name, value in choices.items():
        least, most = BOUNDS.get(name, (value, value))
        if not least <= value <= most:
            raise ValueError(
                f"{name} must be from {least} to {most}{when}. Received: "
                f"{name}={value}"
            )


def check_asked(asked: Search, search: Search) -> None:
    """Refuses what is asked for and changes nothing in a search.

    Args:
        asked: what is asked for.
        search: all choices together, those of a run for example.

    Raises:
        ValueError: If there is such a choice.
    """
    if search.samples and asked.length_penalty is not None:
        raise ValueError(
            "length_penalty changes the scores of a beam search, and a search "
            "with a temperature draws its tokens: their scores are plain "
            "log-probabilities. Leave length_penalty out, or add temperature=0."
        )
    if asked.sampling_seed is not None and not search.samples:
        raise ValueError(
            "sampling_seed says which tokens are drawn, and this search draws "
            "none. Add a temperature, such as temperature=1.0, or leave "
            "sampling_seed out."
        )


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
