"""Forced scores: how probable the model finds given answers."""

from keras import ops

from keras_attention.decoding import answers, one_path, search_result, source
from keras_attention.tokens import END, PAD, START


def forced_search(
    step,
    memory,
    state,
    source_mask,
    labels,
    start_id=START,
    end_id=END,
    pad_id=PAD,
) -> search_result.SearchResult:
    """Follows given answers: what the model thinks of them, and looks at.

    Args:
        step, memory, state, source_mask: see the package.
        labels: int [B, T], END included, then `pad_id`.
        start_id, end_id, pad_id: control ids.

    Returns:
        `SearchResult` with N = 1 and L the longest answer; its lengths are
        those of the labels, its log-probabilities those of
        `sequence_log_probability`.
    """
    labels = ops.cast(labels, "int32")
    real = ops.not_equal(labels, pad_id)
    lengths = ops.sum(ops.cast(real, "int32"), axis=1)
    source_mask = source.mask_of(source_mask, ops.shape(labels)[0])

    def offer(logits, _):
        return logits

    def choose(logits, position):
        token_ids = ops.take(labels, position, axis=1)
        log_probs = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        chosen = ops.take_along_axis(log_probs, token_ids[:, None], axis=1)
        # A row that was cut has no END that would stop it.
        padding = ops.equal(token_ids, pad_id)
        return token_ids, ops.where(padding, 0.0, chosen[:, 0])

    rules = answers.Rules(lengths, start_id, end_id, pad_id, (), None)
    loop = one_path.loop(offer, choose, step, memory, state, source_mask, rules)
    path = one_path.result(ops.while_loop(*loop), rules)
    # A row of padding alone has no END.
    real = real[:, None, : ops.shape(path.ids)[2]]  # [B, 1, L]
    weights = ops.where(real[..., None], path.attention_weights, 0.0)
    return path._replace(lengths=lengths[:, None], attention_weights=weights)


def sequence_log_probability(logits, labels, pad_id=PAD):
    """Forced scores of logits that are there already: log p of the labels.

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
