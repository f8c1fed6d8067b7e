"""Which model a folder holds, and which tensor is which weight."""

import pathlib
import re
import typing

from keras_attention.published import files, gpt2, marian, t5, vit

# What `config.json` calls a family -> its file. Each has
# - `MODEL`, the name of ours;
# - `PREFIX`, which stands before the names of a whole model, but not before
#   those of its body alone;
# - `NOT_WEIGHTS`, the names of what the file may hold beside the weights;
# - `arguments(config)` of our model;
# - `rules(config)`: `(our name, their name, change)` of each weight, where
#   their name may be "A or B": the first that is there;
# - `copies(config)`: the names of tensors that must equal another one.
FAMILIES = {
    "gpt2": gpt2,
    "marian": marian,
    "mt5": t5,
    "t5": t5,
    "vit": vit,
}
# Arguments that a training has by its data, or by a choice of its own.
LEFT_TO_A_TRAINING = (
    "vocabulary_size",
    "source_vocabulary_size",
    "num_classes",
    "image_shape",
    "control_ids",
    "dropout",
)
# Weights with a row for each token or class, by the beginning of their names.
_OF_DATA = ("embedding/", "source/", "output_bias", "head/")


class Weights(typing.NamedTuple):
    """What a folder's file holds.

    - `values`: our name -> an array;
    - `origins`: our name -> the tensor's name;
    - `missing`: our name -> the name of a tensor that is not there;
    - `left_over`: the name of a tensor that is none of our weights -> its
      shape.
    """

    values: dict
    origins: dict
    missing: dict
    left_over: dict


def is_published(path) -> bool:
    """Whether a path is such a folder, or the file of weights in it."""
    return files.is_of_folder(path)


def belongs_to_data(name: str) -> bool:
    """Whether a weight, by our name, has a row for each token or class."""
    return name.startswith(_OF_DATA)


def _family(config, folder):
    name = config.get("model_type")
    if name not in FAMILIES:
        raise ValueError(
            f"{folder} holds a model of the family {name!r}. Families whose "
            f"weights can be read: {', '.join(FAMILIES)}."
        )
    return FAMILIES[name]


def choices(path) -> tuple[str, dict]:
    """Which model a folder holds.

    Args:
        path: the folder, or the file of weights in it.

    Returns:
        `(name, arguments)`: that of the catalogue, and those of its class.

    Raises:
        ValueError: If there is no such folder, if its family is not known, or
            if its model has something that ours does not.
    """
    folder = files.folder_of(path)
    config = files.read_config(folder)
    family = _family(config, folder)
    try:
        return family.MODEL, family.arguments(config)
    except KeyError as error:
        raise ValueError(
            f"{folder / 'config.json'} does not say {error.args[0]}."
        ) from None


def read(path) -> Weights:
    """The weights of a folder, by our names.

    Args:
        path: as for `choices`.

    Raises:
        ValueError: As for `choices`, and if there is no file of weights, or if
            a copy of a tensor is not equal to it.
        ImportError: If the package `safetensors` is not installed.
    """
    choices(path)
    folder = files.folder_of(path)
    config = files.read_config(folder)
    family = _family(config, folder)
    tensors = files.Tensors(folder)

    def there(*names):
        both = [name for one in names for name in (one, family.PREFIX + one)]
        return next((name for name in both if name in tensors.shapes), both[1])

    values, origins, missing = {}, {}, {}
    for ours, theirs, change in family.rules(config):
        name = there(*theirs.split(" or "))
        if name in tensors.shapes:
            values[ours] = change(tensors[name])
            origins[ours] = name
        else:
            missing[ours] = name
    taken = {*origins.values()}
    for copy, original in family.copies(config).items():
        copy, original = there(copy), there(original)
        if copy in tensors.shapes and copy not in taken:
            _check_equal(tensors, copy, original)
            taken.add(copy)
    left_over = {
        name: shape
        for name, shape in tensors.shapes.items()
        if name not in taken and not re.search(family.NOT_WEIGHTS, name)
    }
    return Weights(values, origins, missing, left_over)


def _check_equal(tensors, copy, original):
    equal = original in tensors.shapes and (
        tensors.shapes[copy] == tensors.shapes[original]
        and bool((tensors[copy] == tensors[original]).all())
    )
    if not equal:
        raise ValueError(
            f"{copy} and {original} of {tensors.folder} must be equal: our "
            f"model has one weight for both. {copy} has the shape "
            f"{list(tensors.shapes[copy])}."
        )


def few(names, most: int = 4) -> str:
    """The first of some names, and how many more there are."""
    names = list(names)
    rest = len(names) - most
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(names[:most]) + more


def file_of(path) -> pathlib.Path:
    """The file that stands for a folder's weights in a message."""
    return files.weights_file(files.folder_of(path))
