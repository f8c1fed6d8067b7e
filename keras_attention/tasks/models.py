"""Models by a configuration's choices."""

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
        ) from error
    return model
