"""The operations of tensorflow-text, with and without its Python.

`import tensorflow_text` imports Keras, too. This takes a second, and a
SavedModel needs the operations alone.
"""

import contextlib
import importlib.util
import pathlib
import types
from collections.abc import Iterator

import tensorflow as tf


def module() -> types.ModuleType:
    """The package tensorflow_text.

    Raises:
        ImportError: If it does not fit TensorFlow. The message says how to
            repair the pair.
    """
    with _repair():
        import tensorflow_text
    return tensorflow_text


def register() -> None:
    """Makes the operations known to TensorFlow.

    Raises:
        ImportError: As `module`.
    """
    spec = importlib.util.find_spec("tensorflow_text")
    folders = [] if spec is None else spec.submodule_search_locations or []
    libraries = [
        library
        for folder in folders
        for library in sorted(pathlib.Path(folder).glob("python/ops/_*.so"))
    ]
    if not libraries:  # Another version keeps them elsewhere, or there is none.
        module()
    with _repair():
        for library in libraries:
            tf.load_op_library(str(library))


@contextlib.contextmanager
def _repair() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise ImportError(
            "tensorflow-text does not import beside TensorFlow "
            f"{tf.__version__}. It must have the same minor version, "
            "and 2.21.0 never imports. Repair with: python -m pip install "
            '--force-reinstall "tensorflow-text>=2.21.1,<2.22" '
            f'"tensorflow>=2.21,<2.22". ({error})'
        ) from error
