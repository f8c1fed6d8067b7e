"""A Keras model as a module that computes in graph and exports itself."""

import os
import pathlib
import types

import keras
import tensorflow as tf

from keras_attention.serving import cards, savedmodel, stored_weights


class LiveModel(tf.Module):
    """A Keras model and the functions that answer with it: abstract.

    A subclass fills `_signatures`: name -> `tf.function` of strings [B], which
    returns a dict of tensors whose axis 0 is the batch.

    Args:
        model: a built Keras model.
        stored_precision: in which weights of float32 are kept, "float32" or
            "float16".
        name: of the module.

    Raises:
        ValueError: If the model is not built, if the precision is another
            one, or if the weights are too large for it.
    """

    def __init__(self, model: keras.Model, stored_precision: str, name: str):
        super().__init__(name=name)
        if not model.built:
            raise ValueError(
                "Expected a model with weights: train it, or call its "
                f"`build()`. Received: {model.name}, which is not built"
            )
        weights = stored_weights.StoredWeights(model, stored_precision)
        # A SavedModel must see the variables, not the Keras model: of a
        # tracked Keras model a bare session finds no variable.
        self._hidden = types.SimpleNamespace(model=model, weights=weights)
        self._variables = weights.variables
        self._signatures = {}
        self.stored_precision = stored_precision

    @property
    def model(self) -> keras.Model:
        """The model that answers."""
        return self._hidden.model

    @property
    def signatures(self) -> dict:
        """The functions by the names that they have in a SavedModel."""
        return self._signatures

    def export(self, folder: str | os.PathLike, card: str = "") -> pathlib.Path:
        """Writes the next version of a SavedModel.

        Args:
            folder: `savedmodels/NAME`; the version is `NAME/1`, or one more
                than the greatest there is.
            card: text of `NAME/README.md`; by default the one there stays,
                or `cards.plain` is written.

        Returns:
            Path of the version.
        """
        card = card or cards.plain_if_none(self, folder)
        return savedmodel.export(self, folder, card)
