"""Keys and values of the tokens so far: what attention keeps while decoding."""

import typing

from keras import ops


class FixedCache(typing.NamedTuple):
    """Room for the keys and values of so many tokens and no more.

    Each is [B, G, max_length, key_dim], G heads of keys and values.
    """

    key: typing.Any
    value: typing.Any


class GrowingCache(typing.NamedTuple):
    """Keys and values of the tokens so far, one more after each step.

    Each is [B, G, tokens so far, key_dim].
    """

    key: typing.Any
    value: typing.Any


def empty(batch_size, num_heads, max_length, key_dim, dtype):
    """A cache for `max_length` tokens to come.

    Where TensorFlow does not know `max_length` when it makes the graph, the
    cache grows: at each write in a loop TensorFlow copies the whole room,
    while joining copies what is filled.

    Returns:
        A `FixedCache`, or a `GrowingCache` where TensorFlow does not know
        `max_length`.
    """

    def zeros(length):
        return ops.zeros((batch_size, num_heads, length, key_dim), dtype)

    cache = FixedCache(key=zeros(max_length), value=zeros(max_length))
    is_known = cache.key.shape[2] is not None
    if is_known:
        return cache
    # TensorFlow must not see that this is 0: a loop would take the length to
    # be 0 at every step.
    no_tokens = 0 * max_length
    return GrowingCache(key=zeros(no_tokens), value=zeros(no_tokens))


def can_settle(cache):
    """Whether its first tokens can be taken over by `settle`."""
    return isinstance(cache, GrowingCache)


def settle(settled, cache, length, num_hypotheses):
    """Takes the first tokens of a growing cache over, once for each text.

    Args:
        settled: `GrowingCache`, [B, G, S, key_dim]: the tokens before.
        cache: `GrowingCache`, [B * num_hypotheses, G, T, key_dim].
        length: int scalar. All hypotheses of a text have the same first
            `length` tokens, those of `settled` among them.
        num_hypotheses: N.

    Returns:
        `(settled, cache)`, of `length` and S + T - `length` tokens.
    """
    count = length - ops.shape(settled.key)[2]
    pairs = list(zip(settled, cache, strict=True))
    longer = (
        ops.concatenate([before, rows[::num_hypotheses, :, :count]], axis=2)
        for before, rows in pairs
    )
    return (
        GrowingCache(*longer),
        GrowingCache(*(rows[:, :, count:] for _, rows in pairs)),
    )


def write(cache, key, value, position):
    """Puts one more token into a cache.

    Args:
        cache: as `empty` or the last `write` returned it.
        key, value: [B, G, 1, key_dim].
        position: int scalar, 0 for the first token.

    Returns:
        `(cache, mask)`: the mask, bool [1, length], is True up to this
        token; it is None where the cache has no place after it.
    """
    if isinstance(cache, GrowingCache):
        cache = GrowingCache(
            key=ops.concatenate([cache.key, key], axis=2),
            value=ops.concatenate([cache.value, value], axis=2),
        )
        return cache, None
    place = (0, 0, position, 0)
    cache = FixedCache(
        key=ops.slice_update(cache.key, place, key),
        value=ops.slice_update(cache.value, place, value),
    )
    length = ops.shape(cache.key)[2]
    mask = (ops.arange(length) <= position)[None, :]
    return cache, mask
