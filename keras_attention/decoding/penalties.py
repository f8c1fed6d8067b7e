"""From a log-probability to a score: Wu et al. 2016, equation 14.

`score(Y) = log P(Y | X) / lp(Y) + cp(X; Y)`

Reference: https://arxiv.org/abs/1609.08144
"""

import math

from keras import ops


def check_penalties(alpha, beta):
    """Refuses a penalty that would be a reward.

    Raises:
        ValueError: If alpha or beta is negative, or not finite.
    """
    if not (0 <= alpha < math.inf and 0 <= beta < math.inf):
        raise ValueError(
            "Expected finite alpha >= 0 and beta >= 0. "
            f"Received: alpha={alpha}, beta={beta}"
        )


def score(log_probability, lengths, attention_sums, source_mask, alpha, beta):
    """Equation 14: scores [B, N] from log-probabilities [B, N].

    The sums are [B, N, S], the mask is bool [B, S]; without beta, neither
    matters.
    """
    score = log_probability / length_penalty(lengths, alpha)
    if beta:
        mask = source_mask[:, None]
        score += coverage_penalty(attention_sums, mask, beta)
    return score


def length_penalty(lengths, alpha):
    """`lp(Y) = ((5 + |Y|) / 6)^alpha` (Wu et al. 2016, equation 14).

    `|Y|` counts END. Reference: https://arxiv.org/abs/1609.08144
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
    # A source token that nothing looked at has log 0, which is not finite.
    logs = ops.log(ops.clip(attention_sum, 1e-9, 1.0))
    return beta * ops.sum(ops.where(source_mask, logs, 0.0), axis=-1)
