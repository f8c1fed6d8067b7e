"""Diverse beam search: groups of beams that avoid each other's tokens.

Reference: Vijayakumar et al. 2018 (arXiv 1610.02424), algorithm 1 with Hamming
diversity.
"""

import functools
import math

from keras import ops, tree

from keras_attention.decoding import (
    answers,
    beam,
    buffers,
    penalties,
    search_result,
    source,
)
from keras_attention.tokens import END, PAD, START


def check_groups(num_beams, num_groups, diversity):
    """Refuses beams that do not make equal groups, and negative diversity.

    Raises:
        ValueError: If there are no such groups.
    """
    if num_groups < 1 or num_beams % num_groups:
        raise ValueError(
            "The beams are divided into groups of one size, so num_beams must "
            "be a multiple of num_groups. Received: "
            f"num_beams={num_beams}, num_groups={num_groups}"
        )
    if not 0 <= diversity < math.inf:
        raise ValueError(
            f"Expected a finite diversity >= 0. Received: diversity={diversity}"
        )


def diverse_beam_search(
    step,
    memory,
    state,
    source_mask,
    max_lengths,
    num_beams,
    num_groups,
    diversity=0.5,
    n_best=1,
    alpha=0.0,
    beta=0.0,
    start_id=START,
    end_id=END,
    pad_id=PAD,
    forbidden_ids=(),
    prefix_ids=None,
    no_repeat_ngram_size=0,
    room=None,
    min_lengths=None,
) -> search_result.SearchResult:
    """Beam searches side by side, each unlike those before it.

    Each of G groups is a beam search of N / G beams. At each position the
    groups take their next tokens one after the other. A candidate loses
    `diversity` for each time that its token was taken at this position by the
    groups before. So the first group finds what a beam search of its width
    finds.

    The paper leaves open whether a hypothesis keeps what it has lost. Here it
    does not: what is lost decides which candidates a group takes, and all
    log-probabilities and scores are the model's.

    Args:
        step, memory, state, source_mask, max_lengths: see the package.
        num_beams: width of all groups together, N.
        num_groups: G, which divides N; 1 is `beam_search`.
        diversity: strength lambda of the diversity, at least 0.
        n_best: how many hypotheses are wanted, of all groups, at most N.
        alpha, beta: penalties, see `beam_search`.
        start_id, end_id, pad_id, forbidden_ids: see `beam_search`.
        prefix_ids, no_repeat_ngram_size, room, min_lengths: see the package.

    Returns:
        `SearchResult` with N = `n_best`, by their scores. Two groups may find
        the same hypothesis.

    Raises:
        ValueError: As `beam_search`; if the groups would not have one size, or
            if the diversity is negative.
    """
    beam.check_width(num_beams, n_best)
    check_groups(num_beams, num_groups, diversity)
    penalties.check_penalties(alpha, beta)
    rules = answers.check_rules(
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
    # A structure has no leaf where there is no mask.
    batch_size = ops.shape(rules.max_lengths)[0]
    source_mask = source.mask_of(source_mask, batch_size)
    # To the search, each group is a row of its own.
    rules = answers.repeated(rules, num_groups)
    memory, state, source_mask = tree.map_structure(
        lambda leaf: ops.repeat(leaf, num_groups, axis=0),
        (memory, state, source_mask),
    )
    size = num_beams // num_groups
    loop, max_length = beam.loop_of(
        rules,
        (step, memory, state, source_mask, None),
        size,
        # A group that stopped sooner would leave its tokens to the others.
        size,
        penalties.repeated(alpha, num_groups),
        penalties.repeated(beta, num_groups),
        _choosing(num_groups, diversity),
        # The best tokens of a group may be those that the others have taken.
        functools.partial(beam.read_offers, count=num_beams),
    )
    _, beams, _ = ops.while_loop(*loop)
    found = beam.result_of(rules, max_length, beams, size)
    return search_result.best(found, num_groups, n_best)


def _choosing(num_groups, diversity):
    """A function that takes the candidates of all groups, see `beam.best`."""

    def of_groups(leaf):
        """The rows [B * G, ...] of each group: G times [B, ...]."""
        leaf = ops.reshape(leaf, (-1, num_groups, *ops.shape(leaf)[1:]))
        return [leaf[:, group] for group in range(num_groups)]

    def choose(offers, beams):
        totals, token_ids, count = beam.totals(offers, beams.log_probs)
        width = beams.log_probs.shape[1]
        parts = [of_groups(leaf) for leaf in (totals, token_ids, beams.stopped)]
        lengths = of_groups(beams.finished.lengths)
        taken, chosen = [], []
        for group, (total, ids, stopped) in enumerate(zip(*parts, strict=True)):
            scores = total
            for other_ids, is_kept in taken:
                same = ops.equal(ids[:, :, None], other_ids[:, None, :])
                same = ops.logical_and(same, is_kept[:, None, :])
                times = ops.sum(ops.cast(same, "float32"), axis=-1)
                scores = scores - diversity * times
            _, places = ops.top_k(scores, width)
            places = ops.cast(places, "int32")
            log_probs, next_ids = buffers.pick((total, ids), places)
            is_kept = beam.within_width(log_probs, lengths[group], stopped)
            taken.append((next_ids, is_kept))
            chosen.append((log_probs, next_ids, places // count))
        return tuple(
            ops.reshape(ops.stack(of_all, axis=1), (-1, width))
            for of_all in zip(*chosen, strict=True)
        )

    return choose
