"""Fields that know their default, their bounds and their help.

A choice is checked in one place, the constructor of its group, so that a flag,
a file and Python are answered in the same words. This module imports neither
TensorFlow nor Keras.
"""

import dataclasses
import math
import os
import re
import types
import typing
from collections.abc import Mapping
from typing import Literal

import yaml

from keras_attention import suggestions


def choice(
    default,
    help: str,
    *,
    one_of: tuple | None = None,
    at_least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    is_path: bool = False,
):
    """A field of a group of choices.

    Args:
        default: the value if no other is given, or a type that makes it.
        help: what the choice means, in sentences.
        one_of: the values that there are.
        at_least, above, below, at_most: bounds of a number.
        is_path: whether the value is a path, or may be one.
    """
    kind = "default_factory" if isinstance(default, type) else "default"
    metadata = {
        "help": help,
        "one_of": one_of,
        "bounds": {
            "at least": at_least,
            "above": above,
            "below": below,
            "at most": at_most,
        },
        "is_path": is_path,
    }
    return dataclasses.field(**{kind: default}, metadata=metadata)


class Choices:
    """A group of choices. Its constructor refuses wrong values.

    Raises:
        ValueError: If a choice has another type or is out of its bounds.
    """

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.metadata["is_path"] and isinstance(value, os.PathLike):
                value = os.fspath(value)
            if field.metadata["is_path"] and isinstance(value, str):
                object.__setattr__(self, field.name, os.path.expanduser(value))
            _check(field, getattr(self, field.name))


def _is_literal(kind) -> bool:
    return typing.get_origin(kind) is Literal


def _kinds(kind) -> tuple:
    is_union = typing.get_origin(kind) in (types.UnionType, typing.Union)
    return typing.get_args(kind) if is_union else (kind,)


def expectation(kind, bounds: Mapping = types.MappingProxyType({})) -> str:
    """What a value has to be, in words."""
    kind = next(k for k in _kinds(kind) if k is not types.NoneType)
    if _is_literal(kind):
        return f"one of {', '.join(typing.get_args(kind))}"
    words = {
        bool: "true or false",
        dict: "a mapping such as '{\"num_layers\": 2}'",
        float: "a finite number",
        int: "a whole number",
        str: "text (in YAML, put values such as no or 5 in quotes)",
    }[kind]
    limits = [f"{word} {n}" for word, n in bounds.items() if n is not None]
    return ", ".join([words, *limits])


def _fits(kind, value) -> bool:
    if _is_literal(kind):
        return value in typing.get_args(kind)
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)
    return type(value) is kind


def _check(field: dataclasses.Field, value) -> None:
    bounds, one_of = field.metadata["bounds"], field.metadata["one_of"]
    expected = expectation(field.type, bounds)
    fits = any(_fits(kind, value) for kind in _kinds(field.type))
    names = one_of or [
        name
        for kind in filter(_is_literal, _kinds(field.type))
        for name in typing.get_args(kind)
    ]
    if one_of:
        expected = f"one of {', '.join(one_of)}"
        fits = value in one_of
    elif fits and value is not None:
        least, floor, limit, most = bounds.values()
        fits = (
            (least is None or value >= least)
            and (floor is None or value > floor)
            and (limit is None or value < limit)
            and (most is None or value <= most)
        )
    if not fits:
        raise ValueError(
            f"Expected {field.name} to be {expected}. "
            f"Received: {field.name}={value!r}"
            f"{suggestions.closest(value, names)}"
        )


class Loader(yaml.SafeLoader):
    """YAML that reads 3e-3 as a number, as YAML 1.2 does."""


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"),
    list("-+0123456789"),
)


def parse(kind, text: str):
    """The value of a flag's text: the text itself, or what YAML reads in it."""
    kinds = _kinds(kind)
    if str in kinds or _is_literal(kinds[0]) or not text:
        return text
    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError:
        return text
