"""The random numbers of a text: they depend on the text, not on its place."""

import tensorflow as tf

from keras_attention.config import search as searches
from keras_attention.tokens import PAD

# Numbers of an answer; one that is longer begins with them again.
NUM_DRAWS = 1024
_MOST_SAMPLES = 2**20


def uniforms(ids, num_samples: int, seed):
    """Numbers from [0, 1) for `decoding.sampling_search`.

    An answer must not depend on the other texts of a batch, nor on where the
    text stands in it. So its numbers come from its own tokens and the seed.

    Args:
        ids: int32 [B, S], padding at the end.
        num_samples: answers for each text, N.
        seed: of all texts; or int64 [B], that of each.

    Returns:
        float32 [B * N, NUM_DRAWS].
    """
    pieces = tf.where(ids == PAD, "", tf.strings.as_string(ids) + " ")
    text = tf.strings.reduce_join(pieces, axis=1)
    hashes = tf.strings.to_hash_bucket_fast(text, 2**62)
    first = tf.reshape(tf.cast(seed, tf.int64), [-1, 1]) * _MOST_SAMPLES
    samples = first + tf.range(num_samples, dtype=tf.int64)  # [B or 1, N]
    shape = [tf.size(hashes), num_samples]
    pairs = (hashes[:, None], samples)
    seeds = tf.stack([tf.broadcast_to(one, shape) for one in pairs], axis=-1)
    return tf.map_fn(
        lambda pair: tf.random.stateless_uniform([NUM_DRAWS], pair),
        tf.reshape(seeds, [-1, 2]),
        fn_output_signature=tf.TensorSpec([NUM_DRAWS], tf.float32),
    )


def arguments(search: searches.Search, ids, num_samples: int = 1) -> dict:
    """What `decoding.sampling_search` takes of a search's choices.

    Args:
        search: `config.Search`, without a choice that must be filled.
        ids, num_samples: see `uniforms`.
    """
    return {
        "temperature": search.temperature,
        "top_k": search.top_k,
        "top_p": search.top_p,
        "min_p": search.min_p,
        "num_samples": num_samples,
        "uniforms": uniforms(ids, num_samples, search.sampling_seed),
    }
