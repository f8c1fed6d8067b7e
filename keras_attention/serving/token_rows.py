"""Rows of token ids: with END and padding, and as pieces of text."""

import tensorflow as tf

from keras_attention.tokens import END, END_TEXT, PAD, START, UNK

# What no search may write.
FORBIDDEN_IDS = (PAD, UNK, START)


def ended(ids):
    """Ragged ids [B, None] with END, then padding: int [B, S].

    A batch without rows has one column: recurrent networks cannot compute no
    step.
    """
    ends = tf.fill([ids.nrows(), 1], END)
    rows = tf.concat([ids, ends], axis=1).to_tensor(PAD)
    missing = tf.maximum(1 - tf.shape(rows)[1], 0)
    return tf.pad(rows, [[0, 0], [0, missing]], constant_values=PAD)


def last_lines(ids):
    """What stands after the last END of each row: ragged [B, None]."""
    ends = tf.cast(ids.to_tensor(PAD) == END, tf.int32)  # [B, L]
    ends_ahead = tf.cumsum(ends, axis=1, reverse=True)
    is_last = tf.RaggedTensor.from_tensor(ends_ahead == 0, ids.row_lengths())
    return tf.ragged.boolean_mask(ids, is_last)


def pieces(tokenizer, ids):
    """The piece of each id: [B, T] -> string [B, T].

    END is a piece of its own; padding gives "".
    """
    return tf.where(ids == END, END_TEXT, tokenizer.pieces(ids))
