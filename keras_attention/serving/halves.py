"""The two halves of a batch, searched side by side."""

import tensorflow as tf

from keras_attention.tokens import PAD


def side_by_side(search, source_ids, max_lengths):
    """Searches both halves of a batch at the same time.

    A search is one long chain of small operations, which leaves all cores
    but one idle. TensorFlow computes two chains at the same time. (On a GPU
    they wait for each other.)

    Args:
        search: concrete function of ids [b, S] and lengths [b] to a
            `SearchResult`.
        source_ids: int [B, S].
        max_lengths: int [B], the most tokens of each answer.

    Returns:
        `SearchResult` of all rows, in their order.
    """
    longest = tf.maximum(tf.reduce_max(max_lengths), 1)
    batch_size = tf.shape(source_ids)[0]
    half = batch_size // 2

    def answers(rows):
        result = search(source_ids[rows], max_lengths[rows])
        missing = [0, longest - tf.shape(result.ids)[2]]
        return result._replace(
            ids=tf.pad(
                result.ids, [[0, 0], [0, 0], missing], constant_values=PAD
            ),
            attention_weights=tf.pad(
                result.attention_weights, [[0, 0], [0, 0], missing, [0, 0]]
            ),
        )

    def both_halves():
        halves = [answers(slice(half)), answers(slice(half, None))]
        return tf.nest.map_structure(lambda *both: tf.concat(both, 0), *halves)

    return tf.cond(batch_size < 2, lambda: answers(slice(None)), both_halves)
