"""Texts of several sentences: where each ends, and what belongs together."""

from keras import ops

from keras_attention.layers import masks


def sentence_ends(token_ids, end_id, padding_id=0):
    """Marks the last token of each sentence of a padded batch.

    It is `end_id`, or the last token of a text that has none behind it.

    Args:
        token_ids: int tensor [B, S].
        end_id: the id that stands behind each sentence.
        padding_id: the id that fills up short rows.

    Returns:
        bool tensor [B, S].
    """
    is_real = masks.padding_mask(token_ids, padding_id)
    nothing = ops.zeros_like(is_real[:, :1])
    is_followed = ops.concatenate([is_real[:, 1:], nothing], axis=1)
    is_last = ops.logical_or(
        ops.equal(token_ids, end_id), ops.logical_not(is_followed)
    )
    return ops.logical_and(is_real, is_last)


def sentence_numbers(ends):
    """Which sentence each token is of, counted from 0.

    Args:
        ends: bool tensor [B, S], as `sentence_ends` gives it.

    Returns:
        int32 tensor [B, S]. Padding has the number of sentences.
    """
    ends = ops.cast(ends, "int32")
    return ops.cumsum(ends, axis=1) - ends


def same_sentence(ends):
    """Whether two tokens are of one sentence: bool [B, S, S].

    Args:
        ends: bool tensor [B, S], as `sentence_ends` gives it.
    """
    numbers = sentence_numbers(ends)
    return ops.equal(numbers[:, :, None], numbers[:, None, :])
