"""Initializers that several weights of one layer share."""


def clone(initializer):
    """A fresh copy: Keras's initializers repeat their values when reused.

    An initializer without a seed of its own draws one when it is made, and
    then gives every weight of one shape the same values.

    Args:
        initializer: a `keras.initializers.Initializer`.

    Returns:
        One of the same configuration, with another seed unless one is set.
    """
    return type(initializer).from_config(initializer.get_config())
