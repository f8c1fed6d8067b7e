"""Models by a configuration's choices."""

import inspect

from keras_attention import suggestions
from keras_attention.models import catalog


def create(choices, **arguments):
    """The model that a configuration names, with fresh weights.

    Args:
        choices: the group `architecture` of a configuration.
        arguments: of the model, which the task decides.

    Raises:
        ValueError: If the model does not take its `model_arguments`, or if
            nobody has decided its precision.
    """
    if choices.precision == "auto":
        raise ValueError(
            "A model needs a precision. `training.precision.decided` chooses "
            "one where a configuration says auto."
        )
    model_arguments = dict(choices.model_arguments)
    if choices.dropout is not None:
        model_arguments.setdefault("dropout", choices.dropout)
    mixed = choices.precision == "bfloat16"
    try:
        model = catalog.create(
            choices.model,
            choices.size,
            dtype="mixed_bfloat16" if mixed else "float32",
            name=choices.model,
            **arguments,
            **model_arguments,
        )
        model.build()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{choices.model} does not take "
            f"model_arguments={choices.model_arguments} beside its "
            f"vocabularies, name and dtype: {error}"
            f"{_suggested(choices.model, model_arguments)}"
        ) from error
    return model


def _suggested(model: str, arguments) -> str:
    """The arguments that the first one that nobody knows may have meant."""
    classes = catalog.model_class(model).__mro__
    known = {
        name
        for one in classes
        if one.__module__.startswith("keras_attention.")
        for name in inspect.signature(one.__init__).parameters
    }
    unknown = [name for name in arguments if name not in known]
    return suggestions.closest(unknown[0], known) if unknown else ""
