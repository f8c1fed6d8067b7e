"""Values by their places, in one operation of TensorFlow.

`keras.ops.take` makes six, as a place may be negative there, and
`keras.ops.take_along_axis` twenty. A search looks up a dozen times at each
position, where a graph's time is that of its operations.
"""

import keras
from keras import ops, tree

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf


def rows(structure, places):
    """`leaf[places]` of each leaf [B, ...] of a structure.

    Args:
        structure: tensors [B, ...].
        places: int32 of any shape, from 0.

    Returns:
        The structure with leaves [*places.shape, ...].
    """
    if keras.backend.backend() == "tensorflow":
        return tree.map_structure(
            lambda leaf: tf.gather(leaf, places), structure
        )
    return tree.map_structure(
        lambda leaf: ops.take(leaf, places, axis=0), structure
    )


def within_rows(structure, places):
    """`leaf[b, places[b, k]]` of each leaf [B, V, ...] of a structure.

    Args:
        structure: tensors [B, V, ...].
        places: int32 [B, K], from 0.

    Returns:
        The structure with leaves [B, K, ...].
    """
    if keras.backend.backend() == "tensorflow":
        return tree.map_structure(
            lambda leaf: tf.gather(leaf, places, batch_dims=1), structure
        )

    def picked(leaf):
        # One axis for both, as `take` has no axis of a batch.
        batch_size, size = ops.shape(leaf)[:2]
        firsts = ops.arange(batch_size, dtype="int32") * size
        joined = ops.reshape(leaf, (-1, *ops.shape(leaf)[2:]))
        return ops.take(joined, firsts[:, None] + places, axis=0)

    return tree.map_structure(picked, structure)
