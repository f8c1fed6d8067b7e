"""The choices of a search: one home for all surfaces."""

import dataclasses
import typing

import pytest

from keras_attention import config
from keras_attention.config import search


def test_type_checkers_know_all_choices():
    fields = {f.name: f.type for f in dataclasses.fields(search.Search)}
    assert typing.get_type_hints(search.Given) == fields


def test_what_is_given_goes_over_what_is_not():
    asked = search.of(num_beams=8, length_penalty=0)
    assert asked.given == {"num_beams": 8, "length_penalty": 0}
    whole = asked.whole()
    assert (whole.num_beams, whole.no_repeat_ngram_size) == (8, 0)


def test_a_choice_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match="did you mean num_beams"):
        search.of(num_beam=3)


@pytest.mark.parametrize(
    "choices, message",
    [
        ({"top_k": 3}, "Add a temperature"),
        ({"min_p": 0.1, "temperature": 0}, "min_p says what"),
        ({"temperature": 1.0, "coverage_penalty": 0.1}, "has none"),
        ({"temperature": 1.0, "num_groups": 2}, "num_groups needs a"),
        ({"diversity": 0.1}, "Add num_groups"),
        ({"num_beams": 4, "num_groups": 3}, "be a multiple"),
    ],
)
def test_choices_that_do_not_go_together_are_refused(choices, message):
    with pytest.raises(ValueError, match=message):
        search.of(**choices).whole()


@pytest.mark.parametrize(
    "choices, message",
    [
        ({"coverage_penalty": 500}, "from 0 to 100 with per_request. Rec"),
        ({"length_penalty": 10.5}, "from 0 to 10 with"),
        ({"min_length": 2**31}, "from 0 to 2147483647 with"),
        ({"no_repeat_ngram_size": 2**31}, "from 0 to 2147483647 with"),
        ({"temperature": 0.0001}, "from 0.001 to 1000 with"),
        ({"temperature": 1001}, "from 0.001 to 1000 with"),
        ({"temperature": 1, "top_k": 2**31}, "from 0 to 2147483647 with"),
        ({"temperature": 1, "top_p": 1e-7}, "from 1e-06 to 1 with"),
    ],
)
def test_a_default_is_what_a_text_may_choose(choices, message):
    """Otherwise a text that chooses nothing would be refused."""
    *_, (name, value) = choices.items()
    search.of(**choices).whole()
    expected = f"{name} must be {message}.*{name}={value}"
    with pytest.raises(ValueError, match=expected):
        search.of(**choices, per_request=True).whole()


@pytest.mark.parametrize(
    "choices",
    [
        {"temperature": 0.0},
        {"temperature": 0.001, "min_p": 1e-9, "sampling_seed": 2**43 - 1},
        {"length_penalty": 10, "coverage_penalty": 100},
    ],
)
def test_a_default_that_a_text_may_choose_is_taken(choices):
    assert search.of(**choices, per_request=True).whole().per_request


@pytest.mark.parametrize(
    "asked, run, message",
    [
        ({"length_penalty": 1.0, "temperature": 1.0}, {}, "temperature=0"),
        ({"length_penalty": 1.0}, {"temperature": 1.0}, "length_penalty out"),
        ({"sampling_seed": 2}, {}, "Add a temperature"),
        ({"sampling_seed": 2, "temperature": 0}, {"temperature": 1}, "Add a"),
        ({"sampling_seed": 2}, {"temperature": 1.0}, None),
        ({"temperature": 1.0}, {"length_penalty": 1.0}, None),
    ],
)
def test_what_changes_nothing_is_not_asked_for(asked, run, message):
    search_of_all = search.of(**{**run, **asked})
    asked = search.of(**asked)
    if message is None:
        search.check_asked(asked, search_of_all)
        return
    with pytest.raises(ValueError, match=message):
        search.check_asked(asked, search_of_all)


def test_a_seed_has_its_room():
    assert search.of(sampling_seed=2**43 - 1).sampling_seed
    with pytest.raises(ValueError, match="at most 8796093022207"):
        search.of(sampling_seed=2**43)


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_a_share_is_one(share):
    with pytest.raises(ValueError, match="above 0, at most 1"):
        search.of(min_p=share)


@pytest.mark.parametrize(
    "task, names",
    [
        ("translation", {*search.NAMES}),
        ("language_modelling", {*search.OF_LANGUAGE_MODELS}),
        ("classification", set()),
    ],
)
def test_each_task_has_its_choices(task, names):
    assert {name for name in search.NAMES if search.is_of(name, task)} == names


def test_a_training_keeps_a_choice_without_a_recipe_for_it():
    kept = config.without_unread(config.make(length_penalty=0.5))
    assert kept.search.given == {"length_penalty": 0.5}
