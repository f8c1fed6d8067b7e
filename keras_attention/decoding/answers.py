"""What an answer may hold: its limit, its END, its beginning."""

import collections

from keras import ops

from keras_attention.decoding import ngrams, penalties

Rules = collections.namedtuple(
    "Rules",
    "max_lengths start_id end_id pad_id forbidden_ids prefix_ids "
    "no_repeat_ngram_size room min_lengths",
    defaults=(0, None, None),
)
Rules.__doc__ = """Which tokens a hypothesis may hold.

- `max_lengths`: int32 [B]; a row at its limit can only end.
- `start_id`, `end_id`, `pad_id`: ids of START, which the first step reads, of
  END and PAD.
- `forbidden_ids`: ids that are never chosen.
- `prefix_ids`: int32 [B, P], the tokens that each row begins with, then
  `pad_id`; or None.
- `no_repeat_ngram_size`: how many tokens in a row may not come twice; 0 for
  no limit. A number, or int32 [B].
- `room`: int, the most tokens of any answer; or None, if the limits tell.
- `min_lengths`: int32 [B], the fewest tokens of each answer; or None.
"""


def check_rules(
    max_lengths,
    start_id,
    end_id,
    pad_id,
    forbidden_ids,
    prefix_ids,
    no_repeat_ngram_size,
    room=None,
    min_lengths=None,
):
    """The `Rules` of a search.

    Raises:
        ValueError: If no hypothesis could end, if the limits or the prefixes
            are not one for each row, or if there are no n-grams of this size.
            If a length is below 0.
    """
    ngrams.check_size(no_repeat_ngram_size)
    if penalties.has_rows(no_repeat_ngram_size):
        no_repeat_ngram_size = ops.cast(no_repeat_ngram_size, "int32")
    if end_id in forbidden_ids:
        raise ValueError(
            "Each answer ends in end_id, so it cannot be forbidden. "
            f"Received: end_id={end_id}, forbidden_ids={forbidden_ids}"
        )
    max_lengths = ops.cast(max_lengths, "int32")
    if len(max_lengths.shape) != 1:
        raise ValueError(
            "`max_lengths` must hold one limit for each row: shape [batch]. "
            f"Received: shape {tuple(max_lengths.shape)}"
        )
    if prefix_ids is not None:
        prefix_ids = ops.cast(prefix_ids, "int32")
        if len(prefix_ids.shape) != 2:
            raise ValueError(
                "`prefix_ids` must hold one row of ids for each answer: "
                "shape [batch, length]. Received: shape "
                f"{tuple(prefix_ids.shape)}"
            )
    if min_lengths is not None:
        min_lengths = _least(min_lengths, max_lengths)
    return Rules(
        max_lengths,
        start_id,
        end_id,
        pad_id,
        forbidden_ids,
        prefix_ids,
        no_repeat_ngram_size,
        room,
        min_lengths,
    )


def _least(min_lengths, max_lengths):
    """The fewest tokens of each row, at most its limit: int32 [B]."""
    if isinstance(min_lengths, int) and min_lengths < 0:
        raise ValueError(
            "`min_lengths` must be numbers of tokens, 0 for no minimum. "
            f"Received: min_lengths={min_lengths}"
        )
    min_lengths = ops.cast(min_lengths, "int32")
    if len(min_lengths.shape) > 1:
        raise ValueError(
            "`min_lengths` must be one number, or one for each row: shape "
            f"[batch]. Received: shape {tuple(min_lengths.shape)}"
        )
    return ops.minimum(min_lengths, max_lengths)


def repeated(rules, count):
    """The rules of a batch in which each row stands `count` times."""
    per_row = ("max_lengths", "prefix_ids", "min_lengths")
    if penalties.has_rows(rules.no_repeat_ngram_size):
        per_row += ("no_repeat_ngram_size",)
    values = {name: getattr(rules, name) for name in per_row}
    return rules._replace(
        **{
            name: ops.repeat(value, count, axis=0)
            for name, value in values.items()
            if value is not None
        }
    )


def max_length(rules):
    """How many positions a search has at most, at least one."""
    return rules.room or ops.max(rules.max_lengths, initial=1)


def must_end(rules, position):
    """Whether a row's token at `position` is its last: bool [B]."""
    return position + 1 >= rules.max_lengths


def is_short(rules, position):
    """Whether a row that ended at `position` would be too short: bool [B]."""
    return position + 1 < rules.min_lengths


def given_tokens(rules, position, must_end):
    """The prefix at one position.

    A prefix that leaves no room for END is cut: `must_end`, bool [B].

    Returns:
        `(token_ids, given)`: int32 [B], and bool [B], whether the row's
        prefix reaches that far.
    """
    # One more column, of padding, for all positions behind the prefix.
    padded = ops.pad(
        rules.prefix_ids, ((0, 0), (0, 1)), constant_values=rules.pad_id
    )
    last = ops.shape(padded)[1] - 1
    token_ids = ops.take(padded, ops.minimum(position, last), axis=1)
    given = ops.logical_and(
        ops.not_equal(token_ids, rules.pad_id),
        ops.logical_not(must_end),
    )
    return token_ids, given


def num_chosen(rules, lengths):
    """How many tokens of a hypothesis were chosen, not given.

    Args:
        rules: `Rules`.
        lengths: int32 [B, N] or [], END included.
    """
    if rules.prefix_ids is None:
        return lengths
    # What was given has log 1: it must not count in the length penalty.
    given = ops.not_equal(rules.prefix_ids, rules.pad_id)
    num_given = ops.sum(ops.cast(given, "int32"), axis=1)
    # A prefix without room for END was cut.
    num_given = ops.minimum(num_given, rules.max_lengths - 1)
    return ops.maximum(lengths - num_given[:, None], 0)
