"""From a log-probability to a score: Wu et al. 2016, equation 14.

`score(Y) = log P(Y | X) / lp(Y) + cp(X; Y)`

Reference: https://arxiv.org/abs/1609.08144
"""

import math

from keras import ops


def check_penalties(alpha, beta):
    """Refuses a penalty that would be a reward.

    Raises:
        ValueError: If alpha or beta is negative, or not finite. Values of
            rows are not looked at.
    """
    numbers = [one for one in (alpha, beta) if not has_rows(one)]
    if not all(0 <= one < math.inf for one in numbers):
        raise ValueError(
            "Expected finite alpha >= 0 and beta >= 0. "
            f"Received: alpha={alpha}, beta={beta}"
        )


def has_rows(value):
    """Whether a choice has a value for each row: [B]."""
    return len(getattr(value, "shape", ())) == 1


def column(value):
    """A number as it is, and [B] as [B, 1]."""
    return ops.cast(value, "float32")[:, None] if has_rows(value) else value


def repeated(value, count):
    """A number as it is, and [B] as [B * count]."""
    return ops.repeat(value, count, axis=0) if has_rows(value) else value


def counts(beta):
    """Whether a coverage penalty may change a score."""
    return has_rows(beta) or beta != 0


def score(log_probability, lengths, attention_sums, source_mask, alpha, beta):
    """Equation 14: scores [B, N] from log-probabilities [B, N].

    The sums are [B, N, S], the mask is bool [B, S]; without beta, neither
    matters. A penalty is a number, or [B].
    """
    score = log_probability / length_penalty(lengths, column(alpha))
    if counts(beta):
        mask = source_mask[:, None]
        score += coverage_penalty(attention_sums, mask, column(beta))
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
