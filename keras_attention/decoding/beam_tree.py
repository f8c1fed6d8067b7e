"""Beam search that also tells what it had in its beam, as a tree."""

import collections

from keras import ops

from keras_attention.decoding import (
    answers,
    beam,
    buffers,
    next_tokens,
    penalties,
    search_result,
)
from keras_attention.tokens import END, PAD, START

BeamTree = collections.namedtuple(
    "BeamTree", "token_ids parents log_probability score is_live is_finished"
)
BeamTree.__doc__ = """What stood in each place of the beam at each position.

- `token_ids`: int32 [B, L, N], the token.
- `parents`: int32 [B, L, N], the place at the position before that it extends;
  0 at the first position, whose parent is START.
- `log_probability`: float32 [B, L, N], of the tokens from START to this one.
- `score`: float32 [B, L, N], after the penalties; 0 unless it has ended.
- `is_live`: bool [B, L, N], whether the hypothesis went on.
- `is_finished`: bool [B, L, N], whether it ended here, in END. All fields are
  arbitrary where neither of the two is True.
"""


def beam_tree(
    step,
    memory,
    state,
    source_mask,
    max_lengths,
    num_beams,
    alpha=0.0,
    beta=0.0,
    forbidden_ids=(),
    prefix_ids=None,
    no_repeat_ngram_size=0,
    settle=None,
    min_lengths=None,
) -> tuple[search_result.SearchResult, BeamTree]:
    """`beam_search` for all `num_beams` hypotheses, and its beam as a tree.

    Its loop is the one of `beam_search`, which keeps no tree.

    Args: see `beam_search`, with `n_best=num_beams`.

    Returns:
        `(SearchResult, BeamTree)`. Each hypothesis of the result ends in a
        place of the tree that is finished.

    Raises:
        ValueError: As `beam_search` does.
    """
    beam.check_width(num_beams, num_beams)
    penalties.check_penalties(alpha, beta)
    rules = answers.check_rules(
        max_lengths,
        START,
        END,
        PAD,
        forbidden_ids,
        prefix_ids,
        no_repeat_ngram_size,
        min_lengths=min_lengths,
    )
    batch_size = ops.shape(rules.max_lengths)[0]
    parts = (step, memory, state, source_mask, settle)
    (proceed, body, first), max_length = beam.loop_of(
        rules, parts, num_beams, num_beams, alpha, beta
    )
    shape = (batch_size, max_length, num_beams)
    # log p, score, live, finished, as numbers.
    record = tuple(buffers.empty_rows(*shape) for _ in range(4))

    def watched(position, beams, computed, record):
        following, beams, computed = body(position, beams, computed)
        record = tuple(
            buffers.write(buffer, position, values)
            for buffer, values in zip(record, _at(position, beams), strict=True)
        )
        return following, beams, computed, record

    _, beams, _, record = ops.while_loop(
        lambda position, beams, computed, _: proceed(position, beams, computed),
        watched,
        (*first, record),
    )
    seen = (beams.history.token_ids, beams.history.parents, *record)
    *seen, is_live, is_finished = (
        buffers.fill(buffer, max_length) for buffer in seen
    )
    return (
        beam.result_of(rules, max_length, beams, num_beams),
        BeamTree(*seen, is_live > 0, is_finished > 0),
    )


def _at(position, beams):
    """log p, score, live and finished of each place: float32 [B, N] each."""
    finished = beams.finished
    places = ops.arange(finished.slots.shape[1])
    # Those that have ended here left the beam. They are known by their place.
    ended_here = ops.equal(finished.lengths, position + 1)
    ended = ops.logical_and(
        ops.equal(finished.slots[:, :, None], places), ended_here[:, :, None]
    )
    ended = ops.cast(ended, "float32")  # [B, finished, N]

    def of_ended(values):
        return ops.sum(ended * values[:, :, None], axis=1)

    is_live = ops.cast(beams.log_probs > next_tokens.IMPOSSIBLE / 2, "float32")
    return (
        is_live * beams.log_probs + of_ended(finished.log_probability),
        of_ended(finished.score),
        is_live,
        ops.sum(ended, axis=1),
    )
