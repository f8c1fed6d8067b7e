"""Attention by an online softmax: the same numbers, and far less memory."""

import math

from keras import ops

from keras_attention.layers import attention, masks


def _pad_end(tensor, axis, count):
    widths = [(0, 0)] * len(tensor.shape)
    widths[axis] = (0, count)
    return ops.pad(tensor, widths)


def _block(tensor, axis, index, size):
    """The `index`-th `size` entries of an axis."""
    start = [0] * len(tensor.shape)
    shape = list(ops.shape(tensor))
    start[axis], shape[axis] = index * size, size
    return ops.slice(tensor, start, shape)


def _scores(query, key, keep, use_causal_mask, first_key):
    """Scores of all queries and a block of keys, and which of them count.

    Args:
        query: [B, H, T, d_k], divided by sqrt(d_k).
        key: [B, H, N, d_k].
        keep: bool [B, N], True at real keys.
        use_causal_mask: whether a query sees keys up to its own place only.
        first_key: the place of the block's first key.

    Returns:
        `(scores, keep)`: float32 [B, H, T, N], and float32 of 0 and 1 that
        broadcasts over it.
    """
    scores = ops.matmul(query, ops.swapaxes(key, -1, -2))
    keep = keep[:, None, None]  # [B, 1, 1, N]
    if use_causal_mask:
        places = ops.arange(ops.shape(query)[2])[:, None]  # [T, 1]
        key_places = first_key + ops.arange(key.shape[2])  # [N]
        keep = ops.logical_and(keep, key_places <= places)  # [B, 1, T, N]
    keep = ops.cast(keep, "float32")
    return ops.cast(scores, "float32") + (1.0 - keep) * (
        attention.MASKED_SCORE
    ), keep


def _forward(query, key, value, keep, use_causal_mask, block_size):
    """The context and the logarithm of each row's sum, block by block."""
    num_blocks = ops.shape(key)[2] // block_size
    rows = ops.zeros_like(query[..., :1], dtype="float32")  # [B, H, T, 1]
    sums = rows + ops.zeros(value.shape[-1])  # [B, H, T, d_v]

    def add_block(index, maximum, total, context):
        scores, kept = _scores(
            query,
            _block(key, 2, index, block_size),
            _block(keep, 1, index, block_size),
            use_causal_mask,
            index * block_size,
        )  # [B, H, T, N]
        greatest = ops.maximum(maximum, ops.max(scores, axis=-1, keepdims=True))
        # What was summed so far was relative to a smaller maximum.
        shrink = ops.exp(maximum - greatest)
        exps = ops.exp(scores - greatest) * kept
        block_value = _block(value, 2, index, block_size)
        part = ops.matmul(ops.cast(exps, value.dtype), block_value)
        return (
            index + 1,
            greatest,
            total * shrink + ops.sum(exps, axis=-1, keepdims=True),
            context * shrink + ops.cast(part, "float32"),
        )

    _, maximum, total, context = ops.while_loop(
        lambda index, *_: index < num_blocks,
        add_block,
        (0, rows + attention.MASKED_SCORE, rows, sums),
    )
    # A row without any key has context 0, as in `masked_softmax`.
    total = ops.where(total > 0, total, 1.0)
    return context / total, maximum + ops.log(total)


def _backward(
    query, key, value, keep, use_causal_mask, block_size, context, log_sum, up
):
    """Gradients, from weights that are computed once more."""
    num_blocks = ops.shape(key)[2] // block_size
    up = ops.cast(up, "float32")
    along = ops.sum(up * context, axis=-1, keepdims=True)  # [B, H, T, 1]
    wide_query = ops.cast(query, "float32")

    def add_block(index, by_query, by_key, by_value):
        block_key = _block(key, 2, index, block_size)
        scores, kept = _scores(
            query,
            block_key,
            _block(keep, 1, index, block_size),
            use_causal_mask,
            index * block_size,
        )
        weights = ops.exp(scores - log_sum) * kept  # [B, H, T, N]
        block_value = ops.cast(_block(value, 2, index, block_size), "float32")
        by_weights = ops.matmul(up, ops.swapaxes(block_value, -1, -2))
        by_scores = weights * (by_weights - along)  # [B, H, T, N]
        place = (0, 0, index * block_size, 0)
        return (
            index + 1,
            by_query + ops.matmul(by_scores, ops.cast(block_key, "float32")),
            ops.slice_update(
                by_key,
                place,
                ops.matmul(ops.swapaxes(by_scores, -1, -2), wide_query),
            ),
            ops.slice_update(
                by_value, place, ops.matmul(ops.swapaxes(weights, -1, -2), up)
            ),
        )

    _, *gradients = ops.while_loop(
        lambda index, *_: index < num_blocks,
        add_block,
        (0, *(ops.zeros_like(x, "float32") for x in (query, key, value))),
    )
    return gradients


def online_softmax_attention(
    query,
    key,
    value,
    padding_mask=None,
    use_causal_mask=False,
    block_size=256,
):
    """`softmax(Q K^T / sqrt(d_k)) V`, without the matrix of all weights.

    The keys come in blocks. A row keeps the greatest score m so far, the sum l
    of exponentials and the sum c of values, both relative to m. A block with
    the scores x and the values v makes of them

    ```
    m' = max(m, max_j x_j)
    l' = l e^(m - m') + sum_j e^(x_j - m')
    c' = c e^(m - m') + sum_j e^(x_j - m') v_j
    ```

    and behind the last block the context is c / l (Milakov and Gimelshein
    2018, algorithm 3; Rabe and Staats 2021, section 2.1). So memory grows with
    T and not with T S. The gradient computes the weights of a block once more
    from m + ln l, as Dao et al. 2022 do. Deviation: the queries are not cut
    into blocks, and a causal mask saves no time.

    There are no weights to draw: they were never in memory together.

    Args:
        query: [B, H, T, d_k].
        key: [B, H, S, d_k].
        value: [B, H, S, d_v].
        padding_mask: bool [B, S], True at real keys.
        use_causal_mask: position t attends to positions 0 ... t only.
        block_size: keys in a block, N.

    Returns:
        The context [B, H, T, d_v], in the dtype of `value`. A row without any
        key has context 0.

    Raises:
        ValueError: If `block_size` is not positive or the mask holds floats.

    References: https://arxiv.org/abs/1805.02867,
    https://arxiv.org/abs/2112.05682, https://arxiv.org/abs/2205.14135
    """
    if block_size < 1:
        raise ValueError(
            "`block_size` must be a positive number of keys. Received: "
            f"{block_size}"
        )
    batch_size, _, length = ops.shape(key)[:3]
    if padding_mask is None:
        padding_mask = ops.ones((batch_size, length), "bool")
    masks.refuse_floats(padding_mask)
    # Whole blocks only: the keys that are added do not count.
    missing = -length % block_size
    keep = _pad_end(ops.cast(padding_mask, "bool"), 1, missing)
    options = keep, use_causal_mask, block_size

    @ops.custom_gradient
    def attend(query, key, value):
        # Outside of a graph, TensorFlow's tape would keep every block.
        query, key, value = map(ops.stop_gradient, (query, key, value))
        context, log_sum = _forward(query, key, value, *options)

        def gradient(*gradients, upstream=None):
            upstream = gradients[0] if upstream is None else upstream
            found = _backward(
                query, key, value, *options, context, log_sum, upstream
            )
            return tuple(
                ops.cast(one, tensor.dtype)
                for one, tensor in zip(found, (query, key, value), strict=True)
            )

        return ops.cast(context, value.dtype), gradient

    return attend(
        query * (1.0 / math.sqrt(query.shape[-1])),
        _pad_end(key, 2, missing),
        _pad_end(value, 2, missing),
    )
