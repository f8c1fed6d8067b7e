"""The translation that is most like the others: a signature.

`evaluation.minimum_bayes_risk` in graph. The measure is sacrebleu's sentence
chrF (Popović 2015), of up to six characters, with beta = 2.
"""

import tensorflow as tf

from keras_attention.serving import kinds

NAME = "minimum_risk"
SIGNATURE = kinds.Signature(("text",), {"translation": ()}, ("translation",))
ORDER = 6
BETA = 2.0


def chosen(texts, is_there):
    """The text of each row that has the greatest chrF with all of them.

    Args:
        texts: string [B, N].
        is_there: bool [B, N], whether there is such a text. A text that stands
            there twice counts twice.

    Returns:
        string [B]; of equal ones the first, and "" where there is none.
    """
    return tf.map_fn(
        lambda row: _chosen_of_row(*row),
        (texts, is_there),
        fn_output_signature=tf.TensorSpec([], tf.string),
        parallel_iterations=1,  # The memory of one row at a time.
    )


def _chosen_of_row(texts, is_there):
    texts = tf.boolean_mask(texts, is_there)

    def best():
        gains = tf.reduce_sum(chrf(texts), axis=1)
        # Rounding may not decide between equal ones.
        is_best = gains >= tf.reduce_max(gains) - 1e-9
        return texts[tf.argmax(tf.cast(is_best, tf.int32))]

    return tf.cond(tf.size(texts) > 0, best, lambda: tf.constant(""))


def chrf(texts):
    """The sentence chrF of each text with each as its reference, from 0 to 1.

    Args:
        texts: string [N].

    Returns:
        float64 [N, N]; row i has the text i as the hypothesis.
    """
    # As Python's `split`, all that is blank is left out.
    letters = tf.strings.regex_replace(texts, r"[\s\pZ\x{1c}-\x{1f}\x{85}]", "")
    letters = tf.strings.unicode_split(letters, "UTF-8")
    precision = recall = orders = tf.constant(0.0, tf.float64)
    for size in range(1, ORDER + 1):
        matches, totals = _matches(letters, size)
        is_both = (totals[:, None] > 0) & (totals > 0)
        of_each = tf.maximum(totals, 1)
        precision += tf.where(is_both, matches / of_each[:, None], 0.0)
        recall += tf.where(is_both, matches / of_each, 0.0)
        orders += tf.cast(is_both, tf.float64)
    precision, recall = (
        tf.math.divide_no_nan(one, orders) for one in (precision, recall)
    )
    return tf.math.divide_no_nan(
        (1 + BETA**2) * precision * recall, BETA**2 * precision + recall
    )


def _matches(letters, size: int):
    """How many n-grams two texts share, [N, N], and how many each has, [N]."""
    grams = tf.strings.ngrams(letters, size, separator="")
    names, ids = tf.unique(grams.values)
    num_texts, num_names = letters.nrows(tf.int32), tf.size(names)
    places = tf.cast(grams.value_rowids(), tf.int32) * num_names + ids
    counts = tf.math.unsorted_segment_sum(
        tf.ones_like(places, tf.float64), places, num_texts * num_names
    )
    counts = tf.reshape(counts, [num_texts, num_names])
    # One text after the other: all at once, pairs take N times the memory.
    matches = tf.map_fn(
        lambda row: tf.reduce_sum(tf.minimum(row, counts), axis=-1),
        counts,
        parallel_iterations=1,
    )
    return matches, tf.reduce_sum(counts, axis=-1)
