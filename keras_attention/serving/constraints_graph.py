"""The functions of tensors of `constraints`: texts, prefixes, terms, search."""

import numpy as np
import tensorflow as tf

from keras_attention import decoding
from keras_attention.serving import constraints
from keras_attention.tokens import PAD


def function_of(graph):
    """The function of the signature.

    Args:
        graph: `translation_graph.TranslationGraph`.

    Returns:
        Texts, prefixes and terms [B], a line for each term, to a dict of
        `translation` and `score` [B]. Where no hypothesis of the beam held all
        terms, the translation is "" and the score -inf.
    """
    tokenizer = graph.target_tokenizer

    def constrained(text, prefix, terms):
        sizes = tf.stack([tf.size(one) for one in (text, prefix, terms)])
        aligned = tf.debugging.assert_equal(
            sizes,
            tf.size(text),
            "There must be one `prefix` and one `terms` for each `text`",
        )
        # A bare session runs nothing that no output depends on.
        with tf.control_dependencies([aligned]):
            text = tf.identity(text)
        source_ids, lengths = graph.encode_text(text)
        prefix_ids = tokenizer.tokenize(tf.ensure_shape(prefix, [None]))
        with graph.weights.in_use():
            found = decoding.constrained_beam_search(
                **graph.search_arguments(
                    source_ids, graph.max_lengths(source_ids)
                ),
                **graph.penalties,
                num_beams=graph.choices.num_beams,
                prefix_ids=prefix_ids.to_tensor(PAD),
                term_ids=term_ids(tokenizer, terms),
            )
        is_found = found.lengths[:, 0] > 0
        score = tf.where(is_found, found.score[:, 0], -np.inf)
        return {
            "translation": graph.detokenize(found.ids[:, 0], lengths),
            "score": tf.where(lengths > 1, score, 0.0),
        }

    return constrained


def term_ids(tokenizer, terms):
    """Terms [B] as ids [B, K, M], at least one of each.

    A text with more than `constraints.MOST_TERMS` lines stops the call, and so
    does a term with more than `constraints.MOST_TERM_TOKENS` tokens.
    """
    terms = tf.strings.split(
        tf.ensure_shape(terms, [None]), constraints.SEPARATOR
    )
    most = constraints.MOST_TERMS
    few = _at_most(terms, most, f"`terms` must have at most {most} lines")
    # A bare session runs nothing that no output depends on.
    with tf.control_dependencies([few]):
        ids = tokenizer.tokenize(tf.identity(terms.values))
    most = constraints.MOST_TERM_TOKENS
    short = _at_most(ids, most, f"A term must have at most {most} tokens")
    with tf.control_dependencies([few, short]):
        ids = terms.with_values(ids).to_tensor(PAD)
        return tf.pad(ids, [[0, 0], [0, 1], [0, 1]])


def _at_most(rows, most, message):
    """An assertion about the lengths of ragged rows."""
    return tf.debugging.Assert(
        tf.reduce_all(rows.row_lengths() <= most), [message]
    )
