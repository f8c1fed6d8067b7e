"""What searches share: the result, penalties, forced scores, buffers."""

import collections

from keras import ops

from keras_attention.tokens import PAD

# Stands for log 0: far below any log-probability, and finite, so that sums
# of two stay finite and nothing becomes NaN.
IMPOSSIBLE = -1e9

SearchResult = collections.namedtuple(
    "SearchResult",
    ["ids", "lengths", "log_probability", "score", "attention_weights"],
)
SearchResult.__doc__ = """Hypotheses of a search, best first.

ids: int32 [B, N, L], END included, then PAD.
lengths: int32 [B, N], END included; 0 where there is no N-th hypothesis,
    whose log-probability and score are then -1e9.
log_probability: float32 [B, N], sum of the tokens' log p, END included.
score: float32 [B, N], the log-probability after the penalties.
attention_weights: float32 [B, N, L, S], 0 after END.
"""


def check_penalties(alpha, beta):
    """Raises `ValueError` for a penalty that would be a reward."""
    if alpha < 0 or beta < 0:
        raise ValueError(
            "Expected alpha >= 0 and beta >= 0. "
            f"Received: alpha={alpha}, beta={beta}"
        )


def length_penalty(lengths, alpha):
    """`lp(Y) = ((5 + |Y|) / 6)^alpha` (Wu et al. 2016, equation 14).

    |Y| counts END. Reference: https://arxiv.org/abs/1609.08144
    """
    return ((5.0 + ops.cast(lengths, "float32")) / 6.0) ** alpha


def coverage_penalty(attention_sum, source_mask, beta):
    """`cp = beta sum_i log(min(sum_j p_ij, 1))` (Wu et al. 2016, eq. 14).

    Args:
        attention_sum: [..., S], weights summed over the target.
        source_mask: bool that broadcasts over it, True at real tokens.
        beta: weight of the penalty.

    Returns:
        [...], at most 0: 0 where each source token got weight 1 in all.
    """
    logs = ops.log(ops.clip(attention_sum, 1e-9, 1.0))
    return beta * ops.sum(ops.where(source_mask, logs, 0.0), axis=-1)


def sequence_log_probability(logits, labels, pad_id=PAD):
    """Forced scores: log p of given labels.

    Args:
        logits: [B, T, V].
        labels: int [B, T], END included, then `pad_id`.
        pad_id: the id that does not count.

    Returns:
        `(log_probability, num_tokens)`: float32 [B] and int32 [B].
    """
    log_probs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    chosen = ops.take_along_axis(log_probs, labels[..., None], axis=-1)
    real = ops.not_equal(labels, pad_id)
    total = ops.sum(ops.where(real, ops.squeeze(chosen, -1), 0.0), axis=-1)
    return total, ops.sum(ops.cast(real, "int32"), axis=-1)


def allowed_log_probs(logits, position, max_lengths, end_id, forbidden_ids):
    """Log-probabilities of the next token, before any choice.

    Args:
        logits: [B, V].
        position: int scalar, how many tokens stand before it.
        max_lengths: int [B]; a row at its limit can only end.
        end_id: id of END.
        forbidden_ids: ids that are never produced.

    Returns:
        float32 [B, V]. What is forbidden is at log 0; the rest is not
        normalised again, so that sums equal forced scores.
    """
    log_probs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
    ids = ops.arange(logits.shape[-1])
    for forbidden_id in forbidden_ids:
        log_probs = ops.where(ids == forbidden_id, IMPOSSIBLE, log_probs)
    must_end = (position + 1 >= max_lengths)[:, None]
    impossible = ops.logical_and(must_end, (ids != end_id)[None, :])
    return ops.where(impossible, IMPOSSIBLE, log_probs)


def mean_over_heads(attention_weights):
    """Weights [B, S] of a step, from [B, S] or [B, H, S]."""
    if len(attention_weights.shape) == 3:
        return ops.mean(attention_weights, axis=1)
    return attention_weights


def write(buffer, position, values):
    """Puts `values` [B, ...] at `buffer[:, position]`."""
    start = (0, position, *(0 for _ in buffer.shape[2:]))
    return ops.slice_update(buffer, start, ops.expand_dims(values, 1))
