"""What the arguments of all commands have in common.

This module imports neither TensorFlow nor Keras.
"""

import pathlib
from collections.abc import Collection
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from keras_attention import on_demand, suggestions
from keras_attention.commands import possible_values
from keras_attention.config import choices
from keras_attention.config import search as searches


def make_app(name: str, help_text: str, **options) -> cyclopts.App:
    """An application. Its flags have the names of fields; it raises errors."""
    return cyclopts.App(
        name=name,
        help=help_text,
        help_format="plaintext",
        default_parameter=Parameter(
            converter=_convert,
            completer=possible_values.of,
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


# What all commands on a trained model begin with.
Model = Annotated[str, described("The folder of a SavedModel or of a run.")]


def check_model(path: str) -> None:
    """Checks that a path is the folder of a SavedModel or of a run.

    Raises:
        ValueError: If it is neither.
    """
    folder = pathlib.Path(path).expanduser()
    if not folder.is_dir():
        raise ValueError(f"There is no folder {path}{_beside(folder)}.")
    marks = ("config.yaml", "saved_model.pb", "*/saved_model.pb")
    if not any(any(folder.glob(mark)) for mark in marks):
        raise ValueError(
            f"{path} holds neither a run (config.yaml) nor a SavedModel "
            "(saved_model.pb, or numeric versions)."
        )


def _beside(folder: pathlib.Path) -> str:
    """Suggests a folder beside one that is not there."""
    if folder.exists():
        return ""
    return suggestions.closest(folder, folder.parent.glob("*/"))


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
            f"{path} is not the folder of a run"
            f"{_beside(pathlib.Path(path).expanduser())}: it has no "
            "config.yaml. `keras-attention train` makes such a folder."
        )


def check_ensemble(model: str, others) -> None:
    """Checks that the models of an ensemble are runs.

    Raises:
        ValueError: If one is none.
    """
    for path in (model, *others) if others else ():
        check_model(path)
        if not is_run(path):
            raise ValueError(
                f"--ensemble takes the folders of runs, and {path} is a "
                "SavedModel."
            )


def load(
    path: str,
    search: searches.Search,
    ensemble=(),
    names: Collection[str] | None = None,
    is_brief: bool = False,
):
    """A model, with the search that is asked for.

    A SavedModel is loaded with its own beams, and takes others with a call.

    Args:
        path: of the model.
        search: what is asked for.
        ensemble: other runs whose probabilities count as much.
        names: the signatures of a SavedModel that will be asked, or None.
        is_brief: whether few texts will be asked.
    """
    from keras_attention import runs

    asked = searches.given(search)
    if ensemble:
        return runs.load_ensemble([path, *ensemble], **asked)
    if is_run(path):
        return runs.load(path, **asked)
    asked.pop("num_beams", None)
    if names is None:
        return runs.load(path, **asked)
    if is_brief:
        import tensorflow as tf

        # A call of a signature has the choices of the process. What it calls
        # has its own, which `some_signatures` changes.
        tf.config.optimizer.set_experimental_options(
            {"disable_meta_optimizer": True}
        )
    return runs.load_some(path, names, is_brief, **asked)


def refuse_for_task(names: list[str], task: str) -> None:
    """Refuses options that a model's task does not take here.

    Args:
        names: of the options.
        task: what the model does.

    Raises:
        ValueError: If there are names.
    """
    if not names:
        return
    both = [name for name in names if name in searches.OF_LANGUAGE_MODELS]
    flags = " and ".join(f"--{name}" for name in both or names)
    if both and task == "language_modelling":
        raise ValueError(
            f"A language model is scored without a search. Leave {flags} out."
        )
    raise ValueError(
        f"Only translation{' and language' if both else ''} models take "
        f"{flags}; this model does {task.replace('_', ' ')}."
    )


def find_file(name: str, path: str | None) -> pathlib.Path | None:
    """A file that an option names, or None.

    Raises:
        ValueError: If there is no such file.
    """
    if path is None:
        return None
    found = pathlib.Path(path).expanduser()
    if not found.is_file():
        raise ValueError(f"--{name}: there is no file {path}.")
    return found


def check_picture(path: str | None, may_move: bool = False) -> None:
    """Checks that a path, if there is one, names a format of pictures.

    Raises:
        ValueError: If it does not end in .png, .svg or .pdf, nor in .gif where
            the picture may move.
    """
    if path is not None:
        from keras_attention.plotting import drawing

        moving = (drawing.MOVING,) if may_move else ()
        drawing.check_path(path, drawing.SUFFIXES + moving)


# What a command calls when its arguments are right.
import_tensorflow = on_demand.import_tensorflow


def _convert(kind, tokens):
    if isinstance(tokens, dict):
        raise ValueError(
            "Write the mapping as one value, such as "
            "--model_arguments '{\"num_layers\": 2}'."
        )
    values = [token.value for token in tokens]
    return values if kind == list[str] else choices.parse(kind, values[0])


def explain(error: cyclopts.CycloptsError) -> str:
    """A mistake on the command line, in the words of the package."""
    name = error.argument.name if error.argument else ""
    match error:
        case cyclopts.UnknownOptionError():
            received = error.token.keyword or error.token.value
            names = [n for a in error.argument_collection for n in a.names]
            return _unknown("option", received, names)
        case cyclopts.UnknownCommandError():
            names = [name for name in error.app if not name.startswith("-")]
            return _unknown("command", error.unused_tokens[0], names)
        case cyclopts.UnusedCliTokensError():
            return (
                f"Unexpected argument: {' '.join(error.unused_tokens)}. (Write "
                "the value of a true-or-false option as --NAME=false.)"
            )
        case cyclopts.MissingArgumentError():
            return f"The value of {name} is missing."
        case cyclopts.CoercionError(token=cyclopts.Token() as token):
            expected = choices.expectation(error.target_type)
            return (
                f"Expected {name.lstrip('-')} to be {expected}. "
                f"Received: {token.value}"
            )
    error.verbose = False
    return str(error)


def _unknown(what, received, names):
    hint = suggestions.closest(received.partition("=")[0], names)
    return f"There is no {what} {received}{hint or ' (see --help)'}."
