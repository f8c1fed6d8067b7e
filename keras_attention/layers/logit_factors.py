"""Where logits come from: the product that every decoder ends with."""

import contextlib
import contextvars
import dataclasses
import typing

import keras
from keras import ops

_left_to_caller = contextvars.ContextVar("left_to_caller", default=False)


@dataclasses.dataclass(frozen=True)
class LogitFactors:
    """Logits that are not computed yet: `inputs kernel + bias`.

    Attributes:
        inputs: [..., D], in the layer's compute dtype, as are the others.
        kernel: [D, V], or [V, D] if `is_turned`.
        bias: [V], or None.
        is_turned: whether the kernel has a row for each token, as an embedding
            has.
    """

    inputs: typing.Any
    kernel: typing.Any
    bias: typing.Any
    is_turned: bool


@contextlib.contextmanager
def left_in_factors():
    """In its block, `logits` returns `LogitFactors` wherever it can.

    Logits are the largest tensor of a training step. Who calls a model in this
    block decides how many of them are in memory at a time:

    ```
    with layers.left_in_factors():
        logits = model(inputs, training=True)
    ```

    A model whose logits are no such product, or that does not call `logits`,
    still gives all of them.
    """
    token = _left_to_caller.set(True)
    try:
        yield
    finally:
        _left_to_caller.reset(token)


def logits(layer, inputs):
    """The logits of a model's last layer.

    Args:
        layer: a `keras.layers.Dense`, or the `keras.layers.ReversibleEmbedding`
            that the tokens came in by.
        inputs: [..., D].

    Returns:
        float32 [..., V]. In a block of `left_in_factors`, `LogitFactors`, if
        the layer is a plain product.
    """
    if _left_to_caller.get():
        factors = _factors(layer, inputs)
        if factors is not None:
            return factors
    is_tied = isinstance(layer, keras.layers.ReversibleEmbedding)
    outputs = layer(inputs, reverse=True) if is_tied else layer(inputs)
    return ops.cast(outputs, "float32")


def _factors(layer, inputs):
    """The `LogitFactors` of a layer, or None if it does more than multiply."""
    # An int8 matrix has scales, known to its layer.
    if not layer.built or layer.quantization_mode:
        return None
    dtype = layer.compute_dtype
    bias, is_turned = None, type(layer) is keras.layers.ReversibleEmbedding
    if is_turned:
        changed = layer.reverse_dtype is not None or layer.logit_soft_cap
        if changed or not layer.tie_weights:
            return None
        kernel = layer.embeddings
    elif type(layer) is keras.layers.Dense:
        if layer.activation is not keras.activations.linear:
            return None
        kernel = layer.kernel
        if layer.bias is not None:
            bias = ops.cast(layer.bias, dtype)
    else:
        return None
    return LogitFactors(
        ops.cast(inputs, dtype), ops.cast(kernel, dtype), bias, is_turned
    )
