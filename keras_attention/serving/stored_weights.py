"""In which precision a translator keeps its model's weights."""

import contextlib

import keras
import numpy as np
import tensorflow as tf

PRECISIONS = ("float32", "float16")


class StoredWeights:
    """A model's weights as they are exported, and how to compute with them.

    Args:
        model: a built Keras model.
        precision: "float32" leaves the model's own variables, "float16" makes
            copies of those in float32.

    Attributes:
        precision: as given.
        variables: list of `tf.Variable`, one for each of the model's.

    Raises:
        ValueError: If the precision is another one, or if the weights are too
            large for it.
    """

    def __init__(self, model, precision: str):
        if precision not in PRECISIONS:
            raise ValueError(
                f"Expected stored_precision to be one of {PRECISIONS}. "
                f"Received: stored_precision={precision!r}"
            )
        self.precision = precision
        self._rounded = []
        self.variables = [
            self._stored(variable) for variable in model.variables
        ]

    def _stored(self, variable):
        if self.precision == "float32" or variable.dtype != "float32":
            return variable.value
        value = tf.cast(variable.value, self.precision)
        if not np.isfinite(value).all():
            raise ValueError(
                f"{variable.path} has weights too large for {self.precision}: "
                "keep them in float32."
            )
        stored = tf.Variable(value, trainable=False)
        self._rounded.append((variable, stored))
        return stored

    def in_use(self):
        """A context in which the model computes with what is stored."""
        if not self._rounded:
            return contextlib.nullcontext()
        values = [
            (variable, tf.cast(stored, variable.dtype))
            for variable, stored in self._rounded
        ]
        return keras.StatelessScope(values, initialize_variables=False)
