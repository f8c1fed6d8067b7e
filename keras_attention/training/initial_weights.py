"""The first weights of a training that goes on from another one's."""

import collections
import pathlib
import zlib

import keras
import numpy as np

from keras_attention import config as configuration
from keras_attention import files, published
from keras_attention.config import beginnings
from keras_attention.training import checkpoints, lora, run_directory


def take_vocabulary(
    path: str,
    directory: run_directory.RunDirectory,
    choices: configuration.Vocabulary,
) -> None:
    """Gives a new run the vocabularies that weights were trained with.

    A file that lies in no run's folder has none.

    Raises:
        ValueError: If the new run has chosen another kind of vocabulary.
    """
    folder = beginnings.run_of(path)
    if folder is None:
        return
    source = run_directory.at(folder)
    theirs = run_directory.read_config(source).vocabulary
    for name in configuration.VOCABULARY:
        there, value = getattr(theirs, name), getattr(choices, name)
        if value != there:
            raise ValueError(
                f"--init takes over the vocabulary of {folder}, whose {name} "
                f"is {there!r}. Leave {name}={value!r} out, or set it to "
                f"{there!r}."
            )
    for vocabulary in source.vocabularies():
        copy = directory.path / vocabulary.name
        files.write_atomically(copy, vocabulary.read_bytes())


def draw(model: keras.Model, weight_range: float, seed: int) -> None:
    """Draws all weights evenly around their middle.

    The middle is 0, or the value that all numbers of a weight have at first:
    the scales of a normalization stay around 1, and the gates of
    `char_cnn_language_model` almost closed. Zaremba et al. 2014 and Kim et al.
    2016 draw so.

    Args:
        model: with weights, which are replaced.
        weight_range: the greatest distance from the middle.
        seed: of the draw.
    """
    generator = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        first = keras.ops.convert_to_numpy(variable)
        middle = first.flat[0] if np.all(first == first.flat[0]) else 0.0
        drawn = generator.uniform(-weight_range, weight_range, first.shape)
        variable.assign(middle + drawn)


def take(model: keras.Model, path: str) -> int:
    """Gives a model the weights of a run or a file, by name and shape.

    It prints what was taken and what not. The first part of a name is the
    model's own and does not count: a classifier takes the encoder of a
    translator. `language_model_names` of a translator says which weights of
    its decoder take those of a language model. A file of Keras has to hold
    all weights of this model. A published folder may have another vocabulary
    or other classes: weights of tokens and classes then remain the model's
    own.

    Args:
        model: with weights of its own, which remain where there are no others.
        path: of a run's folder, a published folder or a file.

    Returns:
        A checksum of the file.

    Raises:
        ValueError: If there are no such weights, if no name is among the
            model's, or if one of that name has another shape. If several have
            one name, and the models are not built alike.
        ImportError: If safetensors are to be read, and their package is not
            installed.
    """
    file = beginnings.weights_of(path)
    if file.suffix == ".npz":
        words = _take_by_name(model, file, _read(file))
    elif file.suffix in (".safetensors", ".json"):
        words = _take_by_name(model, file, *_read_safetensors(file))
    else:
        try:
            model.load_weights(file)
        except (ValueError, OSError) as error:
            # Keras's message may have many lines, and name every layer.
            raise ValueError(
                f"{file} does not hold the weights of this model: "
                f"{' '.join(str(error).split())[:300]}"
            ) from error
        words = "all its weights"
    print(f"The model begins with {words}, from {file}.")
    # Workers compare it: each reads the file on its own machine.
    return zlib.crc32(file.read_bytes())


def _own(model) -> dict:
    # What is trained, and no more: the seeds of dropout stay the model's own.
    return _named((one.path, one) for one, _ in lora.plain_weights(model))


def _take_by_name(model, file, found, others=()) -> str:
    """What was taken, in words; `others` are names that are not."""
    own = _own(model)
    found = _renamed(found, own, model)
    taken = {name: own[name] for name in own if name in found}
    if not taken:
        raise ValueError(
            f"No weight name in {file} matches this model. The file has "
            f"{published.few(found)}. The model has {published.few(own)}. "
            "Train a model of the same kind, or leave --init out."
        )
    fresh = [name for name in own if name not in taken]
    if fresh and lora.is_enabled(model):
        raise ValueError(
            f"lora_rank trains attention alone, and {file} has no weights for "
            f"{published.few(fresh)}: they would stay random. Leave lora_rank "
            "out, or begin with weights of all of the model."
        )
    _check_order(file, [*found], [*own])
    for name, variable in taken.items():
        there, here = list(found[name].shape), list(variable.shape)
        if there != here:
            raise ValueError(
                f"{name} has the shape {there} in {file}, and {here} in this "
                "model. Give the size, model_arguments and vocabulary with "
                "which the weights were trained, or leave --init out."
            )
    # Only now: a refusal leaves the model as it was.
    for name, variable in taken.items():
        variable.assign(found[name])
    words = f"{len(taken)} of its {len(own)} weights"
    for label, names in (("fresh", own), ("not taken", [*found, *others])):
        if rest := [name for name in names if name not in taken]:
            words += f" ({label}: {published.few(rest)})"
    return words


def _renamed(found: dict, own: dict, model) -> dict:
    """What was found, a language model's weights by the decoder's names."""
    beginnings_of = getattr(model, "language_model_names", {})

    def name_here(name):
        for theirs, ours in beginnings_of.items():
            renamed = ours + name.removeprefix(theirs)
            if name.startswith(theirs) and renamed in own:
                return renamed
        return name

    return {name_here(name): weight for name, weight in found.items()}


def _check_order(file, found: list[str], own: list[str]) -> None:
    """Refuses names of several weights, unless both models are built alike.

    Their order alone tells such weights apart: in a model of another depth, a
    layer would take the weights of another one.
    """
    second = [name for name in (*found, *own) if name.endswith(" (2)")]
    shared = {name.removesuffix(" (2)") for name in second} & {*found} & {*own}
    if shared and found != own:
        raise ValueError(
            f"Several weights are called {min(shared)}, and {file} has other "
            "weights than this model, so they cannot be matched. Give "
            "the size and the model_arguments with which they were trained, or "
            "leave --init out."
        )


def _read(file: pathlib.Path) -> dict[str, np.ndarray]:
    """The weights of a model in a checkpoint, by their names."""
    arrays, _ = checkpoints.load(file)
    if any(name.endswith("_lora_a") for name in arrays):
        raise ValueError(
            f"{file} holds changes of LoRA apart from the kernels. The run's "
            "weights.npz has them in its kernels: name that file, or the run."
        )
    # model/0007/transformer/embedding/embeddings, see `checkpoints`.
    parts = {name: name.split("/", 2) for name in arrays}
    return _named(
        (path, arrays[name])
        for name, (kind, _, path) in parts.items()
        if kind == "model"
    )


def _read_safetensors(file) -> tuple[dict, list[str]]:
    """The weights by our names, and the names of those that are not taken.

    A training has a vocabulary and classes of its own. So weights of other
    tokens and classes do not fit, whatever their shapes.
    """
    if not published.is_published(file):
        tensors = published.Tensors(file)
        return {name: tensors[name] for name in tensors.shapes}, []
    weights = published.read(file)
    shapes = {
        name: weights.values.pop(name).shape
        for name in [*weights.values]
        if published.belongs_to_data(name)
    }
    others = (shapes | weights.left_over).items()
    return weights.values, [f"{name} {list(shape)}" for name, shape in others]


def _named(weights) -> dict:
    """Weights by their paths, without the model's own name.

    A model is named first in the path of its first weight, an embedding. The
    cells of a loop have paths without it, and some have the same one: they are
    numbered.
    """
    named, counts, root = {}, collections.Counter(), None
    for path, weight in weights:
        root = root or path.partition("/")[0]
        name = path.removeprefix(f"{root}/")
        counts[name] += 1
        count = counts[name]
        named[f"{name} ({count})" if count > 1 else name] = weight
    return named
