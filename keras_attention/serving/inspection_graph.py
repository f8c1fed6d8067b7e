"""The outputs of `inspect`, as tensors."""

import functools

import tensorflow as tf

from keras_attention.serving import inspection, token_rows
from keras_attention.tokens import PAD, PAD_TEXT, START


def piece_of(tokenizer):
    """A function of ids: the piece of each, "" for padding."""
    # One table for all texts of a signature, which has a piece for each id.
    ids = tf.range(tokenizer.vocabulary_size)
    return functools.partial(tf.gather, token_rows.pieces(tokenizer, ids))


def inputs_of(labels):
    """What the steps read that write the labels: START, the labels before.

    Args:
        labels: int [B, T], with END and then padding.
    """
    starts = tf.fill([tf.shape(labels)[0], 1], START)
    return tf.concat([starts, labels[:, :-1]], axis=1)


def chosen(is_given, given, own):
    """The labels of each row, given ones or the model's own: [B, T].

    There is a column where all is padding: no network computes no step.

    Args:
        is_given: bool [B].
        given, own: int [B, T], with END and then padding.
    """
    longest = tf.maximum(tf.shape(given)[1], tf.shape(own)[1])
    given, own = (
        tf.pad(one, [[0, 0], [0, longest - tf.shape(one)[1]]])
        for one in (given, own)
    )
    labels = tf.where(is_given[:, None], given, own)
    lengths = tf.math.count_nonzero(labels, axis=1, dtype=tf.int32)
    return labels[:, : tf.maximum(tf.reduce_max(lengths), 1)]


def steps(pieces, inputs, labels, logits) -> dict:
    """`inspection.STEPS`: what was read and written, and might have been.

    Args:
        pieces: see `piece_of`.
        inputs, labels: int [B, T].
        logits: [B, T, V].
    """
    real = labels != PAD
    log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
    count = min(inspection.MOST_CHOICES, logits.shape[-1])
    best, ids = tf.math.top_k(log_probs, count)
    # It is possible that a model prefers padding.
    tokens = tf.where(ids == PAD, PAD_TEXT, pieces(ids))
    of_labels = tf.gather(log_probs, labels, batch_dims=2)
    return {
        "input_tokens": pieces(tf.where(real, inputs, PAD)),
        "target_tokens": pieces(labels),
        "token_log_probabilities": tf.where(real, of_labels, 0.0),
        "best_tokens": tf.where(real[..., None], tokens, ""),
        "best_log_probabilities": tf.where(real[..., None], best, 0.0),
    }


def nodes(pieces, tree, is_shown) -> dict:
    """`inspection.TREE`: the beam as a list, each node after its parent.

    Args:
        pieces: see `piece_of`.
        tree: `decoding.BeamTree`.
        is_shown: bool [B], of which rows.
    """
    shape = tf.shape(tree.token_ids)
    width, count = shape[2], shape[1] * shape[2]
    is_node = (tree.is_live | tree.is_finished) & is_shown[:, None, None]

    def flat(values):
        return tf.reshape(values, [shape[0], count])

    is_node, places = flat(is_node), tf.range(count)
    numbers = tf.cumsum(tf.cast(is_node, tf.int32), axis=1)
    # The places that hold a node, in their order, then all others.
    order = tf.argsort(tf.where(is_node, places, count + places))
    longest = tf.maximum(tf.reduce_max(numbers), 0)
    order = order[:, :longest]
    is_kept = tf.range(longest) < tf.reduce_max(numbers, axis=1)[:, None]

    def kept(values, padding):
        values = tf.gather(values, order, batch_dims=1)
        return tf.where(is_kept, values, padding)

    before = (places // width - 1) * width + flat(tree.parents)
    parents = tf.gather(numbers, tf.maximum(before, 0), batch_dims=1) - 1
    columns = (
        kept(pieces(flat(tree.token_ids)), ""),
        kept(tf.where(places < width, -1, parents), 0),
        kept(flat(tree.log_probability), 0.0),
        kept(flat(tree.score), 0.0),
        kept(flat(tree.is_finished), False),
    )
    return dict(zip(inspection.TREE, columns, strict=True))


def without_padding(maps, declared, is_real) -> dict:
    """Maps with 0 at the rows and columns of padding.

    Args:
        maps: name -> [B, layers, heads, rows, columns].
        declared: name -> what rows and columns are.
        is_real: word -> bool [B, its tokens].
    """
    shown = {}
    for name, (rows, columns) in declared.items():
        weights = tf.cast(maps[name], tf.float32)
        if rows in is_real:
            mask = is_real[rows][:, None, None, :, None]
            weights = tf.where(mask, weights, 0.0)
        if columns in is_real:
            mask = is_real[columns][:, None, None, None]
            weights = tf.where(mask, weights, 0.0)
        shown[name] = weights
    return shown
