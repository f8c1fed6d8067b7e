"""Self-critical training: a model's own texts, and a reward for each.

Paulus et al. 2017, section 3. It goes with any `Seq2Seq` that has a
`keras.random.SeedGenerator`, `seeds`.

Reference: https://arxiv.org/abs/1705.04304
"""

import keras
from keras import ops

from keras_attention.tokens import END, PAD, START

# The log-probability of what cannot be. Gradients stay finite, unlike -inf's.
IMPOSSIBLE = -1e9


def longest_common_subsequence(ids, others):
    """The length of the longest sequence that two texts share, with gaps.

    Args:
        ids: int [B, T].
        others: int [B, U]. Padding is in no sequence.

    Returns:
        int32 [B].
    """
    steps = ops.arange(ops.shape(others)[1])
    is_before = (steps[None] <= steps[:, None])[None]  # [1, U, U]
    is_real = ops.not_equal(others, PAD)

    def read(row, token):
        """The lengths with one more token of `ids`, by beginnings of others."""
        same = ops.logical_and(ops.equal(token[:, None], others), is_real)
        longer = ops.pad(row, ((0, 0), (1, 0)))[:, :-1]
        row = ops.maximum(row, longer + ops.cast(same, "int32"))
        row = ops.max(ops.where(is_before, row[:, None], 0), axis=-1)
        return row, row

    nothing = ops.zeros(ops.shape(others), "int32")
    row, _ = ops.scan(read, nothing, ops.swapaxes(ids, 0, 1))
    return row[:, -1]


def rouge_l(texts, references):
    """ROUGE-L: F1 of the longest common subsequence, in tokens (Lin 2004).

    Args:
        texts: int [B, T] (tokens, END, padding).
        references: int [B, U], likewise.

    Returns:
        float32 [B], from 0 to 1. Two empty texts have 1.
    """
    texts, references = (
        ops.where(ops.equal(ids, END), PAD, ids) for ids in (texts, references)
    )
    num_tokens = sum(
        ops.sum(ops.cast(ops.not_equal(ids, PAD), "float32"), axis=1)
        for ids in (texts, references)
    )
    common = longest_common_subsequence(texts, references)
    common = ops.cast(common, "float32")
    return ops.where(
        num_tokens > 0, 2 * common / ops.maximum(num_tokens, 1), 1.0
    )


def _allowed(logits):
    """Log-probabilities of what may be written: not PAD, and not START."""
    ids = ops.arange(logits.shape[-1])
    is_control = ops.logical_or(ops.equal(ids, PAD), ops.equal(ids, START))
    return ops.log_softmax(ops.where(is_control, IMPOSSIBLE, logits), axis=-1)


def write(model, source_ids, length, uniforms=None):
    """Writes texts of at most `length` tokens, by greedy search or by chance.

    Args:
        model: a `Seq2Seq`.
        source_ids: int [B, S].
        length: of the texts.
        uniforms: numbers from 0 to 1, [B, length], that draw the tokens. By
            default each token is the most probable one.

    Returns:
        int32 [B, length] (tokens, END, padding). A text that did not end has
        no END.
    """
    memory, step = model.encode(source_ids), model.prepared_step()
    places = ops.arange(length)[None]

    def advance(position, carry):
        texts, token_ids, has_ended, state = carry
        logits, state, _ = step(token_ids, memory, state)
        log_p = _allowed(logits)
        if uniforms is None:
            token_ids = ops.argmax(log_p, axis=-1)
        else:
            sums = ops.cumsum(ops.exp(log_p), axis=-1)  # [B, V]
            drawn = ops.take(uniforms, position, axis=1) * sums[:, -1]
            token_ids = ops.sum(
                ops.cast(sums <= drawn[:, None], "int32"), axis=-1
            )
            token_ids = ops.minimum(token_ids, logits.shape[-1] - 1)
        token_ids = ops.where(has_ended, PAD, ops.cast(token_ids, "int32"))
        texts = ops.where(
            ops.equal(places, position), token_ids[:, None], texts
        )
        has_ended = ops.logical_or(has_ended, ops.equal(token_ids, END))
        return texts, token_ids, has_ended, state

    first = ops.full_like(ops.cast(source_ids[:, 0], "int32"), START)
    texts = ops.zeros((ops.shape(source_ids)[0], length), "int32")
    state = model.initial_state(memory, length)
    carry = (texts, first, ops.equal(first, END), state)
    texts, *_ = ops.fori_loop(0, length, advance, carry)
    return texts


def self_critical_loss(model, source_ids, labels, reward=rouge_l):
    """The reward of the greedy text less a sample's, times its likelihood.

    ```
    L_rl = (r(greedy) - r(sample)) log p(sample | x)      equation 15
    ```

    The mean of its gradient is that of -r(sample), whatever r(greedy) is. No
    dropout acts. Texts have at most the length of the labels, and END.

    Args:
        model: a `Seq2Seq` with a `SeedGenerator`, `seeds`.
        source_ids: int [B, S].
        labels: int [B, T].
        reward: a function of texts and labels, as `write` makes them. It
            returns float32 [B].

    Returns:
        float32 [B].
    """
    shape = ops.shape(labels)
    uniforms = keras.random.uniform(shape, seed=model.seeds)
    sample = write(model, source_ids, shape[1], uniforms)
    greedy = write(model, source_ids, shape[1])
    advantage = reward(greedy, labels) - reward(sample, labels)
    starts = ops.full_like(sample[:, :1], START)
    inputs = ops.concatenate([starts, sample[:, :-1]], axis=1)
    inputs = {"source_ids": source_ids, "target_ids": inputs}
    log_p = _allowed(model(inputs, training=False))
    log_p = ops.take_along_axis(log_p, sample[..., None], axis=-1)[..., 0]
    log_p = ops.where(ops.not_equal(sample, PAD), log_p, 0.0)
    return ops.stop_gradient(advantage) * ops.sum(log_p, axis=1)


def mixed_objective(
    model, batch, training, reward_weight=0.9984, reward=rouge_l
):
    """Likelihood and reward at once (Paulus et al. 2017, section 3).

    ```
    L_ml = -sum_t log p(y*_t | y*_<t, x)                  equation 14
    L    = gamma L_rl + (1 - gamma) L_ml                  equation 16
    ```

    Paulus et al. train by L_ml first. On validation data, the loss is L_ml.

    Args:
        model, batch, training: see `training.objectives`.
        reward_weight: gamma. The default is the paper's.
        reward: see `self_critical_loss`. The paper's is ROUGE-L of words; the
            default is that of tokens.

    Returns:
        {"loss": (values, weights)}, one for each text.
    """
    inputs, labels, weights = batch
    source_ids = inputs["source_ids"]
    real = ops.cast(ops.any(weights > 0, axis=1), "float32")
    loss = -model.log_probability(source_ids, labels, training)
    if training and reward_weight:
        rewarded = self_critical_loss(model, source_ids, labels, reward)
        loss = reward_weight * rewarded + (1 - reward_weight) * loss
    return {"loss": (loss, real)}
