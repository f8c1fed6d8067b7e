"""Modules that a package imports at their first use.

`ka.training.losses` is found so, and the command line reads a run's folder
without TensorFlow, which other modules of `training` import.
"""

import importlib
import os
import sys
import tempfile
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


def import_tensorflow() -> None:
    """Imports TensorFlow without the lines that it prints by itself.

    These lines say what it was built for and which drivers it misses. They come
    before it reads its own settings, so standard error is turned away during
    the import. The lines are printed if TF_CPP_MIN_LOG_LEVEL is set, or if the
    import fails.
    """
    if "tensorflow" in sys.modules or "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    standard_error = os.dup(2)
    with tempfile.TemporaryFile() as lines:
        os.dup2(lines.fileno(), 2)
        try:
            import tensorflow  # noqa: F401
        except BaseException:
            lines.seek(0)
            os.write(standard_error, lines.read())
            raise
        finally:
            os.dup2(standard_error, 2)
            os.close(standard_error)
