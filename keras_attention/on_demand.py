"""Modules that a package imports at their first use.

`ka.training.losses` is found so, and the command line reads a run's folder
without TensorFlow, which other modules of `training` import.
"""

import importlib
import sys
from collections.abc import Callable, Iterable


def modules(package: str, names: Iterable[str]) -> tuple[Callable, Callable]:
    """`__getattr__` and `__dir__` of a package with modules of these names."""
    names = frozenset(names)

    def get_attribute(name: str):
        if name not in names:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}"
            )
        return importlib.import_module(f"{package}.{name}")

    def list_names() -> list[str]:
        return sorted(names | set(vars(sys.modules[package])))

    return get_attribute, list_names
