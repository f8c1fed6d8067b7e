"""The files of a published folder: `config.json` and `*.safetensors`."""

import json
import pathlib

CONFIG, WEIGHTS = "config.json", "model.safetensors"
# Great models are cut into several files.
INDEX = "model.safetensors.index.json"


def folder_of(path) -> pathlib.Path:
    """The folder: the path itself, or where the file of weights lies."""
    found = pathlib.Path(path).expanduser()
    return found.parent if found.is_file() else found


def is_of_folder(path) -> bool:
    """Whether a path is a folder with a `config.json`, or its weights."""
    found = pathlib.Path(path).expanduser()
    if found.is_file() and found.suffix not in (".safetensors", ".json"):
        return False  # Keras's files may lie beside a `config.json`, too.
    return (folder_of(found) / CONFIG).is_file()


def _unreadable(path: pathlib.Path, error) -> ValueError:
    return ValueError(
        f"{path} cannot be read: {error}. Get the file again. (Git without "
        "LFS gets a few lines of text in place of weights.)"
    )


def _read_json(path: pathlib.Path) -> dict:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if not isinstance(content, dict):
        raise ValueError(
            f"{path} holds no names and values. Get the file again."
        )
    return content


def read_config(folder: pathlib.Path) -> dict:
    """What `config.json` says.

    Raises:
        ValueError: If there is none, or if it is no JSON.
    """
    path = folder / CONFIG
    if not folder.is_dir():
        raise ValueError(
            f"There is no folder {folder}. Nothing is downloaded here: get the "
            f"folder first, with its {CONFIG} and {WEIGHTS}."
        )
    if not path.is_file():
        raise ValueError(
            f"{folder} has no {CONFIG}. Give a folder with {CONFIG} and "
            f"{WEIGHTS}, as `model.save_pretrained(FOLDER)` of the package "
            "transformers writes it."
        )
    return _read_json(path)


def weights_file(folder: pathlib.Path) -> pathlib.Path:
    """The file of weights, or the list of its parts.

    Raises:
        ValueError: If there is neither.
    """
    for name in (WEIGHTS, INDEX):
        if (folder / name).is_file():
            return folder / name
    others = sorted(
        path.name
        for path in folder.glob("*")
        if path.suffix in (".bin", ".h5", ".msgpack", ".ot")
    )
    advice = ""
    if others:
        advice = (
            f" {others[0]} is of an older format. With the package "
            "transformers, `MODEL.from_pretrained(FOLDER)` and then "
            "`model.save_pretrained(FOLDER)` write it anew, where MODEL is "
            f'"architectures" of {CONFIG}.'
        )
    raise ValueError(f"{folder} has no {WEIGHTS}.{advice}")


def _safetensors():
    try:
        import safetensors
    except ImportError:
        raise ImportError(
            "Reading published weights needs the package safetensors. In a "
            'clone of the package: python -m pip install -e ".[published]". '
            "Elsewhere: python -m pip install safetensors"
        ) from None
    return safetensors


class Tensors:
    """The tensors of a folder by name, each read when it is asked for.

    Args:
        path: the folder, or a file of weights.

    Attributes:
        shapes: name -> shape, of all tensors.

    Raises:
        ValueError: If there is no file of weights, or if one is damaged.
        ImportError: If the package `safetensors` is not installed.
    """

    def __init__(self, path: pathlib.Path):
        file = path if path.is_file() else weights_file(path)
        self.folder = folder = file.parent
        self.shapes: dict = {}
        self._files: dict = {}
        names = [file.name]
        if file.name == INDEX:
            names = sorted({*_read_json(file).get("weight_map", {}).values()})
        for name in names:
            opened = self._open(folder / name)
            for tensor in opened.keys():
                shape = opened.get_slice(tensor).get_shape()
                self.shapes[tensor] = tuple(shape)
                self._files[tensor] = opened

    def _open(self, path: pathlib.Path):
        safetensors = _safetensors()
        try:
            return safetensors.safe_open(str(path), framework="numpy")
        except (OSError, safetensors.SafetensorError) as error:
            raise _unreadable(path, error) from None

    def __getitem__(self, name: str):
        return self._files[name].get_tensor(name)
