"""What Tab offers as an option's value.

This module imports neither TensorFlow nor Keras.
"""

import dataclasses
from collections.abc import Iterable

from keras_attention import config
from keras_attention.models import catalog

# Fields that know the values that there are.
_ONE_OF = {
    field.name: field.metadata["one_of"]
    for group in config.GROUPS.values()
    for field in dataclasses.fields(group)
    if field.metadata["one_of"]
}


def of(context) -> Iterable[str]:
    """The values that an argument may have; none where they are many.

    Args:
        context: a `cyclopts.completion.CompletionContext`.
    """
    name = context.argument.name.lstrip("-")
    match name:
        case "config":
            return sorted(config.RECIPES)
        case "corpus":
            return config.EMBEDDED
        case "learns":
            return catalog.OTHER_TASKS
        case "size":
            return catalog.sizes(context["model"].value)
    literal = context.argument.get_choices(force=True)
    return literal or _ONE_OF.get(name, ())
