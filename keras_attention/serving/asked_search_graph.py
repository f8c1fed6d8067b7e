"""The functions of tensors of `asked_search`: texts and choices, search."""

import tensorflow as tf

from keras_attention import decoding
from keras_attention.config import search as searches
from keras_attention.serving import (
    asked_search,
    constraints_graph,
    draws,
)
from keras_attention.tokens import PAD


def functions_of(graph) -> dict:
    """The functions of both signatures, by their names.

    Args:
        graph: `translation_graph.TranslationGraph`.

    Returns:
        Name -> function of texts [B] and choices, each [B] or [1], to a dict of
        `translations` and `scores` [B, N]. The search has fewer beams where it
        is told so: the other places are "" and -inf.
    """
    most = graph.choices.num_beams

    # Their parameters stand in the order of the inputs.
    def search(
        coverage_penalty,
        length_penalty,
        min_length,
        no_repeat_ngram_size,
        num_beams,
        prefix,
        terms,
        text,
    ):
        rows = _Rows(graph, text)
        widths = rows.of("num_beams", num_beams, (1, most))
        with graph.weights.in_use():
            found = decoding.constrained_beam_search(
                **rows.arguments(no_repeat_ngram_size, min_length, prefix),
                alpha=rows.of("length_penalty", length_penalty),
                beta=rows.of("coverage_penalty", coverage_penalty),
                num_beams=most,
                n_best=most,
                widths=widths,
                term_ids=constraints_graph.term_ids(
                    graph.target_tokenizer, rows.of("terms", terms)
                ),
            )
        return rows.written(found)

    def sample(
        min_length,
        min_p,
        no_repeat_ngram_size,
        prefix,
        sampling_seed,
        temperature,
        text,
        top_k,
        top_p,
    ):
        rows = _Rows(graph, text)
        seeds = rows.of("sampling_seed", sampling_seed)
        with graph.weights.in_use():
            found = decoding.sampling_search(
                **rows.arguments(no_repeat_ngram_size, min_length, prefix),
                temperature=rows.of("temperature", temperature),
                top_k=rows.of("top_k", top_k),
                top_p=rows.of("top_p", top_p),
                min_p=rows.of("min_p", min_p),
                num_samples=most,
                uniforms=draws.uniforms(rows.source_ids, most, seeds),
            )
        return rows.written(found)

    return {asked_search.SEARCH: search, asked_search.SAMPLE: sample}


class _Rows:
    """Texts, their ids, and the choices that each has."""

    def __init__(self, graph, text):
        self._graph = graph
        self.source_ids, self._lengths = graph.encode_text(text)

    def of(self, name, value, bounds=None):
        """A choice for each row: [B] of [B] or of [1].

        A value out of bounds stops the call, with its name.
        """
        bounds = bounds or searches.BOUNDS.get(name)
        checks = []
        if bounds:
            least, most = bounds
            # A comparison with what is no number is false.
            is_right = (value >= least) & (value <= most)
            message = [f"{name} must be from {least} to {most}"]
            checks = [tf.debugging.Assert(tf.reduce_all(is_right), message)]
        # A bare session runs nothing that no output depends on.
        with tf.control_dependencies(checks):
            return tf.broadcast_to(value, tf.shape(self._lengths))

    def arguments(self, no_repeat_ngram_size, min_length, prefix):
        """What both searches take."""
        graph, ids = self._graph, self.source_ids
        sizes = self.of("no_repeat_ngram_size", no_repeat_ngram_size)
        least = self.of("min_length", min_length)
        prefix_ids = graph.target_tokenizer.tokenize(self.of("prefix", prefix))
        return {
            **graph.search_arguments(ids, graph.max_lengths(ids)),
            "no_repeat_ngram_size": sizes,
            "min_lengths": least,
            "prefix_ids": prefix_ids.to_tensor(PAD),
        }

    def written(self, found):
        """The texts and scores of a `SearchResult`."""
        return self._graph.write_n_best(found, self.source_ids, self._lengths)
