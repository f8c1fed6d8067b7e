"""Our models with weights that others publish."""

import importlib
import os
import typing

from keras_attention import published
from keras_attention.models import catalog
from keras_attention.published import families


def from_pretrained(folder: str | os.PathLike) -> typing.Any:
    """Makes one of our models with published weights.

    | config.json says | model |
    |---|---|
    | `gpt2` | `TransformerLanguageModel` |
    | `marian`, as OPUS-MT's | `Marian` |
    | `t5`, `mt5` | `T5` |
    | `vit` | `VisionTransformer` |

    The ids of tokens are those of the folder's vocabulary, and so are the
    model's `control_ids`. Pictures are [B, height, width, channels].

    Args:
        folder: a folder with `config.json` and `model.safetensors`, as
            `save_pretrained` of the package transformers writes it.

    Returns:
        The model, with all its weights.

    Raises:
        ValueError: If it is no such folder, if its model has something that
            ours does not, or if a tensor is missing, left over or of another
            shape.
        ImportError: If the package `safetensors` is not installed.
    """
    name, arguments = published.choices(folder)
    class_name = catalog.entry(name).class_name
    module = importlib.import_module(f"keras_attention.models.{name}")
    weights = published.read(folder)
    model = getattr(module, class_name)(**arguments)
    model.build()
    own = {one.path.partition("/")[2]: one for one in model.weights}
    own = {path: one for path, one in own.items() if "seed_gen" not in path}
    problems = _problems(own, weights)
    if problems:
        raise ValueError(
            f"{families.file_of(folder)} does not fit its config.json. "
            + " ".join(problems)
        )
    for path, variable in own.items():
        variable.assign(weights.values[path])
    return model


def _problems(own: dict, weights: families.Weights) -> list[str]:
    """What does not fit, in words."""
    missing = [
        f"{weights.missing[path]} (our {path} {list(own[path].shape)})"
        for path in own
        if path in weights.missing
    ]
    left_over = [
        f"{name} {list(shape)}" for name, shape in weights.left_over.items()
    ]
    shapes = [
        f"{weights.origins[path]} gives {list(weights.values[path].shape)} "
        f"(our {path} {list(own[path].shape)})"
        for path in own
        if path in weights.values
        and tuple(weights.values[path].shape) != tuple(own[path].shape)
    ]
    return [
        f"{what}: {families.few(names)}."
        for what, names in (
            ("Missing", missing),
            ("Left over", left_over),
            ("Of another shape", shapes),
        )
        if names
    ]
