"""Boolean masks: True means "attend here"."""

import keras
from keras import ops


def padding_mask(token_ids, padding_id=0):
    """Marks the real tokens of a padded batch.

    Args:
        token_ids: int tensor [B, S].
        padding_id: the id that fills up short rows.

    Returns:
        bool tensor [B, S], True at real tokens.
    """
    return ops.not_equal(token_ids, padding_id)


def causal_mask(length):
    """Lets position t see positions 0 ... t (Vaswani et al. 2017, 3.2.3).

    Args:
        length: int or int scalar tensor T.

    Returns:
        bool tensor [1, T, T], True where the column is not after the row.
    """
    positions = ops.arange(length)
    return ops.expand_dims(positions[:, None] >= positions[None, :], 0)


def combine_masks(padding_mask=None, attention_mask=None):
    """Joins the two kinds of mask to one that broadcasts over scores.

    Args:
        padding_mask: bool [B, S], or None: which keys are real.
        attention_mask: bool [B, T, S] (1 for any axis but the last
            broadcasts), [T, S] for all rows alike, or None: which keys each
            query may see.

    Returns:
        bool [B or 1, T or 1, S], or None if both are None.

    Raises:
        ValueError: If a mask has another rank, or holds floats.
    """
    refuse_floats(padding_mask, attention_mask)
    _check_rank("padding_mask", padding_mask, [2])
    _check_rank("attention_mask", attention_mask, [2, 3])
    if attention_mask is not None and len(attention_mask.shape) == 2:
        attention_mask = ops.expand_dims(attention_mask, 0)
    if padding_mask is None:
        return attention_mask
    padding_mask = ops.expand_dims(padding_mask, 1)  # [B, 1, S]
    if attention_mask is None:
        return padding_mask
    return ops.logical_and(padding_mask, attention_mask)


def either_or_both(mask, other):
    """True where no mask is False: two masks [B, S], of which any may be None.

    Returns:
        bool [B, S], or None if both are None.
    """
    if mask is None or other is None:
        return other if mask is None else mask
    return ops.logical_and(mask, other)


def refuse_floats(*masks):
    """Raises `ValueError` for a mask that other packages add to scores.

    As a truth value its 0 would mean "no" and its -inf "yes".

    Args:
        masks: masks, in which None and other things without a dtype pass.
    """
    for mask in masks:
        dtype = getattr(mask, "dtype", None)
        if dtype is not None and keras.backend.is_float_dtype(dtype):
            raise ValueError(
                "A mask must be boolean, with True where a query may attend. "
                "To convert a mask of 0 and -inf, pass `mask == 0`. "
                f"Received: a mask of {keras.backend.standardize_dtype(dtype)}"
            )


def _check_rank(name, mask, ranks):
    if mask is not None and len(ops.shape(mask)) not in ranks:
        expected = " or ".join(map(str, ranks))
        raise ValueError(
            f"`{name}` must have rank {expected}. Received: shape "
            f"{tuple(mask.shape)}"
        )
