"""The n-grams that a hypothesis holds, so that none is written twice.

Paulus et al. 2017, section 2.5: a token that would write three tokens again
has probability 0. Here their number is `no_repeat_ngram_size`.

Reference: https://arxiv.org/abs/1705.04304
"""

import collections

from keras import ops

from keras_attention.decoding import penalties

# What stands in a row before its tokens: room, and START when it was read.
ROOM, START_READ = -1, -2

Written = collections.namedtuple(
    "Written", "token_ids runs sizes", defaults=((),)
)
Written.__doc__ = """What each hypothesis holds, as a part of its state.

- `token_ids`: int32 [B, L], its tokens, the last one in the last place.
- `runs`: int32 [B, L]: as many tokens before this one are the last tokens of
  the hypothesis, in their order. After "a b c a b", the run of "c" is 2.
- `sizes`: int32 [B], the limit of each row, or () if all have the same.
"""


def check_size(size):
    """Refuses what is no length of an n-gram.

    Raises:
        ValueError: Unless it is a whole number of at least 0. Sizes of rows
            are not looked at.
    """
    if penalties.has_rows(size):
        return
    if not isinstance(size, int) or size < 0:
        raise ValueError(
            "`no_repeat_ngram_size` must be a whole number, 0 for no limit. "
            f"Received: no_repeat_ngram_size={size!r}"
        )


def are_limited(size):
    """Whether some n-grams may not come twice."""
    return penalties.has_rows(size) or size > 0


def watched(step, state, rules, settle=None):
    """A step and a state that also know what each hypothesis has written.

    Args:
        step, state, settle: see the package.
        rules: `answers.Rules`.

    Returns:
        `(step, state, settle)`. The state is `(state, written)`. All are as
        they were if n-grams may come again.
    """
    size = rules.no_repeat_ngram_size
    if not are_limited(size):
        return step, state, settle
    shape = (
        ops.shape(rules.max_lengths)[0],
        rules.room or ops.max(rules.max_lengths, initial=1),
    )
    written = Written(
        token_ids=ops.full(shape, ROOM, dtype="int32"),
        runs=ops.zeros(shape, dtype="int32"),
        sizes=size if penalties.has_rows(size) else (),
    )

    def watched_step(token_ids, memory, state):
        state, written = state
        logits, state, weights = step(token_ids, memory, state)
        return logits, (state, _append(written, token_ids)), weights

    def watched_settle(memory, state, *arguments):
        state, written = state
        memory, state = settle(memory, state, *arguments)
        return memory, (state, written)

    return watched_step, (state, written), settle and watched_settle


def _append(written, token_ids):
    """What is written with one more token: int [B]."""
    # START is read first. It is no token of the answer.
    is_first = ops.equal(written.token_ids[:, -1], ROOM)
    last = ops.where(is_first, START_READ, ops.cast(token_ids, "int32"))[
        :, None
    ]
    # All tokens move one place. So what stands in a place now is what stands
    # directly before the token that comes to it.
    runs = ops.where(ops.equal(written.token_ids, last), written.runs + 1, 0)
    token_ids = ops.concatenate([written.token_ids[:, 1:], last], axis=1)
    return written._replace(token_ids=token_ids, runs=runs)


def blocked_ids(state, rules):
    """The tokens that would write an n-gram again.

    Args:
        state: of a `watched` step, after it.
        rules: `answers.Rules`.

    Returns:
        int32 [B, L], END in all other places; () if n-grams may come again.
    """
    size = rules.no_repeat_ngram_size
    if not are_limited(size):
        return ()
    _, written = state
    if penalties.has_rows(size):
        # Of the rows that are computed. Some may have no limit.
        size = written.sizes[:, None]
        size = ops.where(size > 0, size, ops.shape(written.runs)[1] + 1)
    # The n - 1 tokens before it are the last ones: with it, n come again.
    would_repeat = ops.logical_and(
        written.runs >= size - 1, written.token_ids >= 0
    )
    return ops.where(would_repeat, written.token_ids, rules.end_id)
