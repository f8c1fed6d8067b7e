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


def unroll_with_attention(advance, state, inputs, padding_mask):
    """Like `unroll`, of a step that looks at a source.

    Args:
        advance: function of ([B, D], state), returns the next state and the
            attention weights [B, S].
        state: the state before the first step; every leaf is [B, ...].
        inputs: [B, T, D].
        padding_mask: bool [B, S], True at real source tokens.

    Returns:
        `(states, attention_weights)`: the states after each step, every leaf
        [B, T, ...], and where each step looked, float32 [B, T, S].
    """

    def look(step_inputs, carry):
        state, attention_weights = advance(step_inputs, carry["state"])
        attention_weights = ops.cast(attention_weights, "float32")
        return {"state": state, "attention_weights": attention_weights}

    nowhere = ops.zeros_like(padding_mask, dtype="float32")
    carry = {"state": state, "attention_weights": nowhere}
    unrolled = unroll(look, carry, inputs)
    return unrolled["state"], unrolled["attention_weights"]


def reverse_sequences(sequences, padding_mask):
    """Reverses the real part of each row; padding stays at the end.

    Args:
        sequences: [B, S], or [B, S, D].
        padding_mask: bool [B, S], True at real tokens, which come first.

    Returns:
        As `sequences`.
    """
    lengths = ops.sum(ops.cast(padding_mask, "int32"), axis=1, keepdims=True)
    positions = ops.arange(ops.shape(sequences)[1])[None, :]
    mirrored = ops.where(
        positions < lengths, lengths - 1 - positions, positions
    )
    if len(sequences.shape) == 3:
        mirrored = mirrored[..., None]
    return ops.take_along_axis(sequences, mirrored, axis=1)
