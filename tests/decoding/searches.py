"""Runs every search on whatever backend Keras has.

    python searches.py results.npz

The test beside this file compares two backends.
"""

import sys

import numpy as np
from keras import ops

from keras_attention import decoding
from keras_attention.tokens import START

MAX_LENGTHS = np.array([5, 2, 4], "int32")
PREFIX_IDS = np.array([[1, 2, 0], [0, 0, 0], [2, 0, 0]], "int32")
LABELS = np.array([[1, 2, 3], [3, 0, 0], [2, 1, 0]], "int32")
MIN_LENGTHS = np.array([4, 1, 3], "int32")
TERM_IDS = np.array([[[3, 1]], [[0, 0]], [[1, 0]]], "int32")
UNIFORMS = np.random.default_rng(1).random((6, 8)).astype("float32")
SOURCE_MASK = np.array([[True, True], [True, False], [True, True]])


def step(token_ids, memory, state):
    """The next token depends on the last two, as in `MarkovChain`."""
    size = memory["logits"].shape[-1]
    places = (state["before"] * size + token_ids)[:, None]  # [B, 1]

    def at_places(table):  # [B, V, V, X] -> [B, X]
        rows = ops.reshape(table, (-1, size * size, table.shape[-1]))
        return ops.take_along_axis(rows, places[..., None], axis=1)[:, 0]

    return (
        at_places(memory["logits"]),
        {"before": token_ids},
        at_places(memory["weights"]),
    )


def language_model_step(token_ids, state):
    """The same without a source: the tables are part of the state."""
    logits, before, _ = step(token_ids, state, state)
    return logits, {**state, **before}


def run():
    """The results of all searches, by name."""
    rng = np.random.default_rng(0)
    memory = {
        "logits": rng.normal(scale=2.0, size=(3, 4, 4, 4)).astype("float32"),
        "weights": rng.random((3, 4, 4, 2)).astype("float32"),
    }
    memory = {name: ops.convert_to_tensor(memory[name]) for name in memory}
    state = {"before": ops.full((3,), START, dtype="int32")}
    sources = {
        "source": (step, memory, state, SOURCE_MASK),
        "language_model": (
            decoding.without_source(language_model_step),
            (),
            {**memory, **state},
            None,
        ),
    }
    prefixes = {"free": None, "prefix": PREFIX_IDS}
    results = {}
    for source, arguments in sources.items():
        results[f"forced/{source}"] = decoding.forced_search(*arguments, LABELS)
        for prefix, prefix_ids in prefixes.items():
            options = {"max_lengths": MAX_LENGTHS, "prefix_ids": prefix_ids}
            name = f"{source}/{prefix}"
            results[f"greedy/{name}"] = decoding.greedy_search(
                *arguments, **options, alpha=0.6, beta=0.1
            )
            results[f"beam/{name}"] = decoding.beam_search(
                *arguments, **options, num_beams=3, n_best=2, alpha=0.6
            )
            results[f"beam_without_repetitions/{name}"] = decoding.beam_search(
                *arguments, **options, num_beams=3, no_repeat_ngram_size=2
            )
            results[f"greedy_without_repetitions/{name}"] = (
                decoding.greedy_search(
                    *arguments, **options, no_repeat_ngram_size=1
                )
            )
            results[f"diverse/{name}"] = decoding.diverse_beam_search(
                *arguments, **options, num_beams=4, num_groups=2, n_best=2
            )
            results[f"constrained/{name}"] = decoding.constrained_beam_search(
                *arguments, **options, num_beams=3, term_ids=TERM_IDS
            )
            results[f"beam_of_at_least/{name}"] = decoding.beam_search(
                *arguments, **options, num_beams=3, min_lengths=MIN_LENGTHS
            )
            # The only token that is left to draw is the most probable one.
            results[f"sampling/{name}"] = decoding.sampling_search(
                *arguments, **options, seed=0, top_k=1
            )
            # Backends draw other numbers, so these are given.
            results[f"samples/{name}"] = decoding.sampling_search(
                *arguments, **options, num_samples=2, uniforms=UNIFORMS
            )
    return {
        f"{name}/{field}": np.array(values)
        for name, result in results.items()
        for field, values in result._asdict().items()
    }


if __name__ == "__main__":
    np.savez(sys.argv[1], **run())
