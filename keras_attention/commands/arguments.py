"""What the arguments of all verbs have in common.

This module imports neither TensorFlow nor Keras.
"""

import os
import pathlib
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from keras_attention import on_demand
from keras_attention.config import choices


def make_app(name: str, help_text: str, **options) -> cyclopts.App:
    """An application. Its flags have the names of fields; it raises errors."""
    return cyclopts.App(
        name=name,
        help=help_text,
        help_format="plaintext",
        default_parameter=Parameter(
            converter=_convert,
            name_transform=str,
            negative=(),
            # The last one wins, as a command is repeated with another choice.
            allow_repeating=True,
        ),
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
        # `cli.main` answers it.
        suppress_keyboard_interrupt=False,
        **options,
    )


def group(title: str) -> Parameter:
    """Makes flags of a dataclass's fields, under this title in the help."""
    return Parameter(name="*", group=cyclopts.Group.create_ordered(title))


def described(help_text: str) -> Parameter:
    """Gives an argument its help."""
    return Parameter(help=help_text)


# What all verbs on a trained model begin with.
Model = Annotated[str, described("The folder of a SavedModel or of a run.")]


def check_model(path: str) -> None:
    """Checks that a path is the folder of a SavedModel or of a run.

    Raises:
        ValueError: If it is neither.
    """
    folder = pathlib.Path(path).expanduser()
    marks = ("config.yaml", "saved_model.pb", "*/saved_model.pb")
    if not any(any(folder.glob(mark)) for mark in marks):
        kind = "a folder without them" if folder.is_dir() else "no folder"
        raise ValueError(
            "Expected a SavedModel's folder (with numeric versions), one "
            "version, or a run's folder (with config.yaml). "
            f"Received: {path}, {kind}"
        )


def is_run(path: str) -> bool:
    """Whether a path is a run's folder."""
    from keras_attention.training import run_directory

    return run_directory.at(path).is_run


def check_run(path: str) -> None:
    """Checks that a path is a run's folder.

    Raises:
        ValueError: If it is none.
    """
    if not is_run(path):
        raise ValueError(
            "Expected a run's folder (with config.yaml), as `keras-attention "
            f"train` leaves it. Received: {path}"
        )


def search(path: str, options) -> tuple[int | None, float | None]:
    """The beams and the length penalty to load a model with.

    A SavedModel is loaded with its own beams, and takes others with a call.
    """
    num_beams = options.num_beams if is_run(path) else None
    return num_beams, options.length_penalty


def find_file(name: str, path: str | None) -> pathlib.Path | None:
    """A file that an option names, or None.

    Raises:
        ValueError: If there is no such file.
    """
    if path is None:
        return None
    found = pathlib.Path(path).expanduser()
    if not found.is_file():
        raise ValueError(f"Expected a file as --{name}. Received: {path}")
    return found


def check_picture(path: str | None) -> None:
    """Checks that a path, if there is one, names a format of pictures.

    Raises:
        ValueError: If it does not end in .png, .svg or .pdf.
    """
    if path is not None:
        from keras_attention.plotting import drawing

        drawing.check_path(path)


def num_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# What a verb calls when its arguments are right.
import_tensorflow = on_demand.import_tensorflow


def _convert(kind, tokens):
    if isinstance(tokens, dict):
        raise ValueError("Expected one value. Received: a value for each key")
    values = [token.value for token in tokens]
    return values if kind == list[str] else choices.parse(kind, values[0])


def explain(error: cyclopts.CycloptsError) -> str:
    """A mistake on the command line, in the words of the package."""
    name = error.argument.name.lstrip("-") if error.argument else ""
    match error:
        case cyclopts.UnknownOptionError():
            received = error.token.keyword or error.token.value
            names = [n for a in error.argument_collection for n in a.names]
            return _unknown("an option", received, names)
        case cyclopts.UnknownCommandError():
            verbs = [verb for verb in error.app if not verb.startswith("-")]
            return _unknown("a verb", error.unused_tokens[0], verbs)
        case cyclopts.UnusedCliTokensError():
            received = " ".join(error.unused_tokens)
            return (
                "Expected options (one that is true or false takes its value "
                f"as --NAME=false). Received: {received}"
            )
        case cyclopts.MissingArgumentError():
            return f"Expected a value of {name}. Received: none"
        case cyclopts.CoercionError(token=cyclopts.Token() as token):
            expected = choices.expectation(error.target_type)
            received = token.value
            return f"Expected {name} to be {expected}. Received: {received}"
    error.verbose = False
    return str(error)


def _unknown(what, received, names):
    closest = choices.suggestion(received.partition("=")[0], names)
    hint = closest or " (see --help)"
    return f"Expected {what}{hint}. Received: {received}"
