"""Modules that a package imports at their first use.

`ka.training.losses` is found so, and the command line reads a run's folder
without TensorFlow, which other modules of `training` import.
"""

import contextlib
import gc
import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator

# What TensorFlow imports and can do without.
_LEFT_OUT = ("keras.src.optimizers", "jax")


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
    """Imports TensorFlow without Keras and without the lines that it prints.

    TensorFlow imports Keras and JAX, if they are there, in case somebody needs
    them. Each takes as long as TensorFlow itself. Whoever needs them imports
    them. `tf.lite` then converts no function of JAX in this process.

    These lines say what it was built for and which drivers it misses. They come
    before it reads its own settings, so standard error is turned away during
    the import. The lines are printed if TF_CPP_MIN_LOG_LEVEL is set, or if the
    import fails.
    """
    if "tensorflow" in sys.modules:
        return
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        _import_alone()
        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    standard_error = os.dup(2)
    with tempfile.TemporaryFile() as lines:
        os.dup2(lines.fileno(), 2)
        try:
            _import_alone()
        except BaseException:
            lines.seek(0)
            os.write(standard_error, lines.read())
            raise
        finally:
            os.dup2(standard_error, 2)
            os.close(standard_error)


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Inside, Python does not look for garbage.

    It looks whenever there are many new objects. While TensorFlow is imported
    or a SavedModel is loaded, all of them stay: a sixth of the time is saved.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _import_alone() -> None:
    # Python refuses to import a name that is None in this table. TensorFlow
    # then goes on without it.
    refused = {*_LEFT_OUT} - {*sys.modules}
    sys.modules.update(dict.fromkeys(refused))
    try:
        with no_collection():
            import tensorflow  # noqa: F401
    finally:
        for name in refused:
            del sys.modules[name]
