"""Unrolling a decoder's step over a whole target."""

from keras import ops, tree


def unroll(advance, state, inputs):
    """Applies `state = advance(inputs[:, t], state)` for t = 0 ... T-1.

    Args:
        advance: function of ([B, D], state), returns the next state.
        state: the state before the first step; every leaf is [B, ...].
        inputs: [B, T, D].

    Returns:
        The states after each step: like `state`, every leaf [B, T, ...].
    """

    def body(carry, step_inputs):
        carry = advance(step_inputs, carry)
        return carry, carry

    _, states = ops.scan(body, state, xs=ops.swapaxes(inputs, 0, 1))
    return tree.map_structure(lambda leaf: ops.swapaxes(leaf, 0, 1), states)


def reverse_sequences(sequences, padding_mask):
    """Reverses the real part of each row; padding stays at the end.

    Args:
        sequences: [B, S].
        padding_mask: bool [B, S], True at real tokens, which come first.

    Returns:
        [B, S].
    """
    lengths = ops.sum(ops.cast(padding_mask, "int32"), axis=1, keepdims=True)
    positions = ops.arange(ops.shape(sequences)[1])[None, :]
    mirrored = ops.where(
        positions < lengths, lengths - 1 - positions, positions
    )
    return ops.take_along_axis(sequences, mirrored, axis=1)
