"""Weights of an attention, which its methods may need before `build`."""

import keras


def add(layer, name, shape, initializer):
    """`layer.add_weight`, or the weight of this name if there is one.

    Keras lists weights, and stores them, in the order in which a layer
    assigns them. What a method such as `project` has made before is therefore
    taken away and assigned again: now it stands where `build` has it.

    Args:
        layer: the layer; it must assign what is returned to `name`.
        name: of the weight and of the layer's attribute.
        shape: of the weight.
        initializer: what `keras.initializers.get` returned, or `another`.

    Returns:
        The weight.

    Raises:
        ValueError: If the weight exists in another shape.
    """
    if not hasattr(layer, name):
        return layer.add_weight(name=name, shape=shape, initializer=initializer)
    weight = getattr(layer, name)
    if tuple(weight.shape) != tuple(shape):
        raise ValueError(
            "Expected inputs of the width that `project` or `places` saw, for "
            f"which `{name}` has the shape {tuple(weight.shape)}. Received: "
            f"inputs for which its shape is {tuple(shape)}"
        )
    # A weight of a frozen layer is listed first, and then frozen: one that is
    # frozen already would stay so when the layer is thawed.
    is_trainable = weight.trainable
    delattr(layer, name)
    weight.trainable = True
    setattr(layer, name, weight)
    weight.trainable = is_trainable
    return weight


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


def scope(layer):
    """The context in which weights get the names that `build` gives them."""
    return keras.name_scope(layer.name, caller=layer)


def build_after_project(layer, query):
    """Makes the weights that `project` did not, at the first query.

    Raises:
        ValueError: If `project` has not been called either.
    """
    check_tensor(query)
    if layer.built:
        return
    if not hasattr(layer, "key_kernel"):
        raise ValueError(
            "Expected keys that `project` of this layer returned: before it, "
            "the shapes of the weights are not known. Call `project`, the "
            "layer itself or `build(query_shape, value_shape)` first. "
            f"Received: other keys for {layer.__class__.__name__}, which has "
            "no weights yet"
        )
    # The values of the additive score are not projected: no weight.
    value_kernel = getattr(layer, "value_kernel", layer.key_kernel)
    layer.build(
        query_shape=(None, None, query.shape[-1]),
        value_shape=(None, None, value_kernel.shape[0]),
        key_shape=(None, None, layer.key_kernel.shape[0]),
    )


def check_tensor(tensor):
    """Raises `ValueError` for what stands for an input of a model."""
    if isinstance(tensor, keras.KerasTensor):
        raise ValueError(
            "Expected a tensor: of a functional model, only the calls of "
            "layers are parts. Call the layer itself, or use this method in "
            "the `call` of a layer or model. Received: a symbolic input of "
            f"shape {tensor.shape}"
        )
