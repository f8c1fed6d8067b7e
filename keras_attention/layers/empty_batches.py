"""Convolutions of batches that have no rows."""

from keras import ops


def with_width(outputs, inputs, width):
    """The outputs of a convolution, in their shape for an empty batch too.

    On processors with AVX-512, TensorFlow computes convolutions by oneDNN. It
    then gives an empty batch of outputs the shape of the inputs.

    Args:
        outputs: [B, ..., F], as long as the inputs.
        inputs: [B, ..., D], what was convolved.
        width: F.

    Returns:
        `outputs`, [B, ..., F].
    """
    return ops.reshape(outputs, (*ops.shape(inputs)[:-1], width))
