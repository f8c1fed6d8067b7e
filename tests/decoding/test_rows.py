"""In a graph of unknown batch size, rows that have stopped are left out."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_attention import decoding
from keras_attention.tokens import END, PAD

LIMITS = [9, 1, 7, 2, 2, 5, 1, 12, 3, 1, 6, 2, 1, 1, 4, 10, 2, 3, 1, 8]
PREFIX_IDS = np.resize([[1, 2], [0, 0], [2, 0]], (len(LIMITS), 2))
SEARCHES = {
    "greedy": functools.partial(decoding.greedy_search, beta=0.2),
    "sampling": functools.partial(decoding.sampling_search, seed=1),
    "beam": functools.partial(
        decoding.beam_search, num_beams=3, n_best=2, alpha=0.6, beta=0.2
    ),
    "beam with prefixes": functools.partial(
        decoding.beam_search, num_beams=3, alpha=0.6
    ),
    "greedy without repetitions": functools.partial(
        decoding.greedy_search, no_repeat_ngram_size=2
    ),
    "beam without repetitions": functools.partial(
        decoding.beam_search, num_beams=3, n_best=3, no_repeat_ngram_size=1
    ),
    "sampling without repetitions": functools.partial(
        decoding.sampling_search, seed=1, no_repeat_ngram_size=2
    ),
}


@pytest.fixture
def chain(draw_chain):
    """Each row has its own tables, and ends at its limit at the latest."""
    return draw_chain(2, LIMITS)


def sizes(chain):
    """The chain's step, and a list of how many hypotheses each call gets."""
    counts = []

    def count(token_ids):
        counts.append(len(token_ids))
        return token_ids

    def step(token_ids, memory, state):
        shape = token_ids.shape
        token_ids = tf.py_function(count, [token_ids], tf.int32)
        token_ids.set_shape(shape)
        return chain.step(token_ids, memory, state)

    return step, counts


def in_a_graph(search, arguments, known=None, jit_compile=None):
    """What a search finds where the graph knows no size of the batch.

    Args:
        search, arguments: of the search.
        known: name of an argument whose size it knows.
        jit_compile: whether XLA compiles it.
    """
    step, rest = arguments["step"], {**arguments}
    del rest["step"]

    def of_any_size(one):
        # Nor does it know the length of a source, a prefix, or labels.
        lengths = {2: [None], 5: [*one.shape[1:3], None, None]}
        sizes = lengths.get(len(one.shape), one.shape[1:])
        return tf.TensorSpec([None, *sizes], one.dtype)

    signature = {
        name: tf.nest.map_structure(
            tf.TensorSpec.from_tensor if name == known else of_any_size, one
        )
        for name, one in rest.items()
    }

    @tf.function(
        input_signature=[signature], autograph=False, jit_compile=jit_compile
    )
    def found(rest):
        return search(step=step, **rest)

    return found(rest)


@pytest.mark.parametrize("name", SEARCHES)
def test_the_same_is_found(name, chain):
    search, arguments = SEARCHES[name], chain.arguments()
    if "prefixes" in name:
        arguments["prefix_ids"] = tf.constant(PREFIX_IDS)
    found = in_a_graph(search, arguments)
    for values, others in zip(search(**arguments), found, strict=True):
        np.testing.assert_allclose(others, values, atol=1e-6)


def test_a_forced_search_finds_the_same(chain):
    best = decoding.greedy_search(**chain.arguments(), forbidden_ids=(PAD,))
    arguments = chain.arguments()
    del arguments["max_lengths"]
    arguments["labels"] = best.ids[:, 0]
    found = in_a_graph(decoding.forced_search, arguments)
    np.testing.assert_array_equal(found.lengths, best.lengths)
    np.testing.assert_allclose(
        found.log_probability, best.log_probability, atol=1e-6
    )
    length = found.ids.shape[2]
    np.testing.assert_allclose(
        found.attention_weights,
        best.attention_weights[:, :, :length],
        atol=1e-6,
    )


@pytest.mark.fast_for("greedy")
@pytest.mark.parametrize("name", ["greedy", "beam"])
@pytest.mark.parametrize("known", ["memory", "source_mask", "max_lengths"])
def test_one_known_size_is_enough_to_compute_all_rows(name, known, chain):
    found = in_a_graph(SEARCHES[name], chain.arguments(), known)
    expected = SEARCHES[name](**chain.arguments())
    np.testing.assert_array_equal(found.ids, expected.ids)


@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_xla_compiles_a_search_that_knows_its_room(name, chain):
    """Its graph still knows neither the size of the batch nor a length."""
    room = max(LIMITS) + 3
    search = functools.partial(SEARCHES[name], room=room)
    found = in_a_graph(search, chain.arguments(), jit_compile=True)
    assert found.ids.shape[2] == room
    expected = SEARCHES[name](**chain.arguments())
    most = max(LIMITS)
    np.testing.assert_array_equal(found.ids[:, :, :most], expected.ids)
    assert not found.ids[:, :, most:].numpy().any()
    np.testing.assert_allclose(found.score, expected.score, atol=1e-5)


@pytest.mark.parametrize("name", ["greedy", "sampling", "beam"])
def test_a_language_model_finds_the_same(name, chain):
    arguments = chain.language_model_arguments()
    del arguments["source_mask"]
    search = functools.partial(SEARCHES[name], source_mask=None, beta=0.0)
    if name == "sampling":
        search = functools.partial(SEARCHES[name], source_mask=None)
    found = in_a_graph(search, arguments)
    for values, others in zip(search(**arguments), found, strict=True):
        np.testing.assert_allclose(others, values, atol=1e-6)


@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_no_rows_give_no_rows(name, draw_chain):
    """With a source, and without."""
    chain = draw_chain(0, [])
    found = in_a_graph(SEARCHES[name], chain.arguments())
    assert len(found.ids) == len(found.score) == 0
    search = functools.partial(SEARCHES[name], source_mask=None)
    arguments = chain.language_model_arguments()
    del arguments["source_mask"]
    assert in_a_graph(search, arguments).attention_weights.shape[2:] == (1, 0)


@pytest.mark.parametrize(
    "num_beams", [None, pytest.param(1, marks=pytest.mark.slow), 3]
)
def test_at_most_a_quarter_of_the_rows_has_stopped(chain, num_beams):
    """The others go on. Without the cut, all would to the end."""
    chain.logits[..., END] = -20.0  # Each row goes on to its limit.
    search = decoding.greedy_search
    if num_beams:
        search = functools.partial(decoding.beam_search, num_beams=num_beams)
    step, counts = sizes(chain)
    arguments = {**chain.arguments(), "step": step}
    in_a_graph(search, arguments)
    assert len(counts) == max(LIMITS)
    for position, count in enumerate(counts):
        going = sum(limit > position for limit in LIMITS) * (num_beams or 1)
        assert going <= count
        assert position == 0 or count * 3 < going * 4
    counts.clear()
    search(**arguments)
    assert counts == [len(LIMITS) * (num_beams or 1)] * max(LIMITS)
