"""Weights of a layer, and its methods that need them before a call."""

import keras


def another(initializer):
    """An initializer for one more weight.

    A random initializer of Keras draws the same values at each call: two
    weights of one shape would start equal. Its clone draws others. A function
    is taken as it is.
    """
    if isinstance(initializer, keras.initializers.Initializer) and hasattr(
        initializer, "seed"
    ):
        return initializer.clone()
    return initializer


def check_ready(layer, tensor=None):
    """Raises `ValueError` for a method that cannot work yet.

    Args:
        layer: the layer; it must have its weights.
        tensor: what the method gets; no symbolic input of a functional model,
            which would not know the weights.
    """
    has_weights = type(layer).build is not keras.layers.Layer.build
    if has_weights and not layer.built:
        raise ValueError(
            f"{type(layer).__name__} has no weights yet. Call or build the "
            "layer first."
        )
    if isinstance(tensor, keras.KerasTensor):
        raise ValueError(
            "A functional model is made of calls of layers. Call the layer "
            "itself, or use this method in the `call` of a layer or model. "
            f"Received: a symbolic input of shape {tensor.shape}"
        )
