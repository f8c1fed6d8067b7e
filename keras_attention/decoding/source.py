"""The source of an answer, and what stands for it where there is none."""

from keras import ops


def without_source(step):
    """A language model's step, as a search takes it.

    Args:
        step: `step(token_ids, state)` -> `(logits, state)`.

    Returns:
        `step(token_ids, memory, state)` -> `(logits, state, None)`.
    """

    def step_without_source(token_ids, memory, state):
        logits, state = step(token_ids, state)
        return logits, state, None

    return step_without_source


def mask_of(source_mask, batch_size):
    """The mask bool [B, S]; [B, 0] where there is no source."""
    if source_mask is None:
        return ops.zeros((batch_size, 0), dtype="bool")
    return source_mask


def weights_over(attention_weights, logits, source_length):
    """Where a step looked, as one weight for each source token.

    Args:
        attention_weights: [B, S], or [B, H, S] of several heads, whose mean
            is taken, or None of a step that looks nowhere.
        logits: [B, V], of the same step.
        source_length: S; the number 0 where nobody asks.

    Returns:
        [B, S]; 0 for None.
    """
    is_asked = not isinstance(source_length, int) or source_length
    if attention_weights is None or not is_asked:
        shape = (ops.shape(logits)[0], source_length)
        return ops.zeros(shape, dtype="float32")
    if len(attention_weights.shape) == 3:
        return ops.mean(attention_weights, axis=1)
    return attention_weights
