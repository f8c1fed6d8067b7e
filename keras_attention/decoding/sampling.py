"""Sampling: each token drawn from the model's distribution."""

import math

import keras
from keras import ops, tree

from keras_attention.decoding import (
    answers,
    buffers,
    next_tokens,
    one_path,
    penalties,
    search_result,
    source,
)
from keras_attention.tokens import END, PAD, START

# Draws of one row; an answer that is longer begins with them again.
MAX_DRAWS = 4096
SMALLEST_TEMPERATURE = 1.2e-38  # The smallest normal number of float32.


def truncate_distribution(log_probs, top_k=None, top_p=None, min_p=None):
    """Keeps the most probable tokens only, for sampling.

    Args:
        log_probs: [B, V], normalised.
        top_k: keep this many, and all that are level with the last (Fan et
            al. 2018, arXiv 1805.04833), or None. Or int [B], with 0 for all.
        top_p: keep the smallest set whose probability reaches this, the
            nucleus of the whole distribution (Holtzman et al. 2019, arXiv
            1904.09751), or None. Or float [B], with 1 for all.
        min_p: keep the tokens with at least this share of the greatest
            probability (Nguyen et al. 2024, arXiv 2407.01082), or None. Or
            float [B], with 0 for all.

    Returns:
        [B, V], the tokens left out at log 0; not normalised again.

    Raises:
        ValueError: If `top_k`, `top_p` or `min_p` is out of range. Values of
            rows are not looked at.
    """
    _check_truncation(top_k, top_p, min_p)
    impossible = next_tokens.IMPOSSIBLE
    descending = -ops.sort(-log_probs, axis=-1)
    if top_k is not None:
        threshold = _kth(descending, top_k)
        log_probs = ops.where(log_probs >= threshold, log_probs, impossible)
    if top_p is not None:
        probabilities = ops.exp(descending)
        before = ops.cumsum(probabilities, axis=-1) - probabilities
        is_in = before < penalties.column(top_p)
        if penalties.has_rows(top_p):
            # Rounding may come to 1 before the last token.
            is_in = ops.logical_or(is_in, penalties.column(top_p) >= 1)
        kept = ops.where(is_in, descending, -impossible)
        # By the threshold, so that tokens of one probability share a fate.
        threshold = ops.min(kept, axis=-1, keepdims=True)
        log_probs = ops.where(log_probs >= threshold, log_probs, impossible)
    if min_p is not None:
        # No truncation leaves the greatest out.
        greatest = ops.max(log_probs, axis=-1, keepdims=True)
        least = (
            ops.log(penalties.column(min_p))
            if penalties.has_rows(min_p)
            else math.log(min_p)
        )
        threshold = greatest + least
        log_probs = ops.where(log_probs >= threshold, log_probs, impossible)
    return log_probs


def _check_truncation(top_k, top_p, min_p):
    """Refuses numbers that keep no token."""
    values = {"top_k": top_k, "top_p": top_p, "min_p": min_p}
    for name, value in values.items():
        if value is None or penalties.has_rows(value):
            continue
        if name == "top_k" and value < 1:
            raise ValueError(
                f"`top_k` must be at least 1 or None. Received: top_k={value}"
            )
        if name != "top_k" and not 0 < value <= 1:
            raise ValueError(
                f"`{name}` must be in (0, 1] or None. Received: {name}={value}"
            )


def _kth(descending, top_k):
    """The k-th greatest of each row: [B, 1]."""
    size = descending.shape[-1]
    if not penalties.has_rows(top_k):
        return descending[:, min(top_k, size) - 1, None]
    top_k = ops.cast(top_k, "int32")
    top_k = ops.where(top_k < 1, size, ops.minimum(top_k, size))
    return buffers.pick(descending, top_k[:, None] - 1)


def _at_temperature(log_probs, temperature):
    """The distribution [B, V] sharpened or flattened, normalised again."""
    possible = log_probs > next_tokens.IMPOSSIBLE / 2
    # From the greatest down, so that no temperature overflows.
    log_probs = log_probs - ops.max(log_probs, axis=-1, keepdims=True)
    return ops.log_softmax(
        ops.where(
            possible,
            log_probs / penalties.column(temperature),
            next_tokens.IMPOSSIBLE,
        ),
        axis=-1,
    )


def _draw(log_probs, uniforms):
    """The tokens [B] in whose share of [0, 1) the numbers [B] lie."""
    cumulative = ops.cumsum(ops.exp(log_probs), axis=-1)  # [B, V]
    threshold = uniforms[:, None] * cumulative[:, -1:]
    passed = ops.cast(cumulative <= threshold, "int32")
    # Rounding must not step past the last token that may be drawn.
    last = ops.max(
        ops.where(
            ops.exp(log_probs) > 0,
            ops.arange(log_probs.shape[-1], dtype="int32"),
            0,
        ),
        axis=-1,
    )
    return ops.minimum(ops.sum(passed, axis=-1), last)


def _checked(temperature, num_samples):
    """The temperature of a search; refuses what draws nothing."""
    if num_samples < 1:
        raise ValueError(
            f"Expected num_samples of at least 1. Received: {num_samples}"
        )
    if penalties.has_rows(temperature):
        return ops.maximum(
            ops.cast(temperature, "float32"), SMALLEST_TEMPERATURE
        )
    if not temperature > 0:  # Also where it is no number.
        raise ValueError(
            "`temperature` must be above 0 (greedy_search is its limit at "
            f"0). Received: temperature={temperature}"
        )
    # A smaller one would be 0 in float32, and 0 / 0 is no number.
    return max(temperature, SMALLEST_TEMPERATURE)


def _choosing(rules, draws, temperature, truncation):
    """What `one_path.loop` asks for the next tokens.

    Args:
        rules: `answers.Rules`.
        draws: [B, D], the numbers that decide.
        temperature: above 0.
        truncation: the arguments of `truncate_distribution`.
    """
    num_draws = draws.shape[1]

    def choose(offers, position):
        logits, blocked_ids = offers
        allowed = next_tokens.allowed_log_probs(
            logits, position, rules, blocked_ids
        )
        log_probs = _at_temperature(allowed, temperature)
        log_probs = truncate_distribution(log_probs, *truncation)
        token_ids = _draw(log_probs, draws[:, position % num_draws])
        chosen = ops.take_along_axis(allowed, token_ids[:, None], axis=1)
        return token_ids, chosen[:, 0]

    return choose


def sampling_search(
    step,
    memory,
    state,
    source_mask,
    max_lengths,
    seed=None,
    temperature=1.0,
    top_k=None,
    top_p=None,
    min_p=None,
    num_samples=1,
    uniforms=None,
    start_id=START,
    end_id=END,
    pad_id=PAD,
    forbidden_ids=(),
    prefix_ids=None,
    no_repeat_ngram_size=0,
    min_lengths=None,
) -> search_result.SearchResult:
    """Draws each token from the model's distribution.

    Args:
        step, memory, state, source_mask, max_lengths: see the package.
        seed: int; the same seed draws the same tokens. A row's draws
            depend on the seed and on its place in the batch alone. None draws
            other tokens each time.
        temperature: above 0; below 1 sharpens, above 1 flattens. At infinity
            every token that may be drawn is as probable. A number, or
            float [B].
        top_k, top_p, min_p: see `truncate_distribution`; they act after the
            temperature.
        num_samples: how many answers to draw for each row, N.
        uniforms: float32 [B * N, D], evenly from [0, 1), those of a row's
            answers one after the other: each token takes the next of them,
            from the first again after D tokens. By default they are drawn by
            the seed; with them, there is no need of a seed.
        start_id, end_id, pad_id: control ids.
        forbidden_ids: ids that are never chosen.
        prefix_ids: what each answer begins with, see the package.
        no_repeat_ngram_size: n of the n-grams that no answer holds twice, see
            the package; 0 for none.
        min_lengths: the fewest tokens of each answer, see the package.

    Returns:
        `SearchResult`, the most probable answer of a row first. The
        log-probability is the model's own, before temperature and truncation.

    Raises:
        ValueError: If the temperature, `top_k`, `top_p`, `min_p`,
            `num_samples` or the n-grams' size is out of range, if END is
            forbidden, or for another rank of `max_lengths` or `prefix_ids`.
    """
    temperature = _checked(temperature, num_samples)
    rules = answers.check_rules(
        max_lengths,
        start_id,
        end_id,
        pad_id,
        forbidden_ids,
        prefix_ids,
        no_repeat_ngram_size,
        min_lengths=min_lengths,
    )
    batch_size = ops.shape(rules.max_lengths)[0]
    source_mask = source.mask_of(source_mask, batch_size)
    if num_samples > 1:
        rules = answers.repeated(rules, num_samples)
        memory, state, source_mask = tree.map_structure(
            lambda leaf: ops.repeat(leaf, num_samples, axis=0),
            (memory, state, source_mask),
        )
        temperature, top_k, top_p, min_p = (
            penalties.repeated(one, num_samples)
            for one in (temperature, top_k, top_p, min_p)
        )
        batch_size = batch_size * num_samples
    # One uniform number for each token to come, drawn before the loop. The
    # width is fixed: a row's numbers must not depend on the other rows.
    if uniforms is None:
        uniforms = keras.random.uniform((batch_size, MAX_DRAWS), seed=seed)
    uniforms = ops.convert_to_tensor(uniforms)
    choose = _choosing(rules, uniforms, temperature, (top_k, top_p, min_p))

    def offer(logits, blocked_ids):
        return logits, blocked_ids

    loop = one_path.loop(offer, choose, step, memory, state, source_mask, rules)
    found = one_path.result(ops.while_loop(*loop), rules)
    if num_samples == 1:
        return found
    return search_result.best(found, num_samples, num_samples)
