"""The beam as a tree: what plain Python's beam holds, and the same answers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attention import decoding
from keras_attention.tokens import END

SETTINGS = {"num_beams": 3, "alpha": 0.6, "beta": 0.1}


def paths(tree, row, flags):
    """Place -> (ids, log p, score) of each hypothesis that has the flag."""
    found = {}
    for position, place in np.argwhere(flags[row]):
        ids, slot = [], place
        for step in range(position, -1, -1):
            ids.insert(0, int(tree.token_ids[row, step, slot]))
            slot = int(tree.parents[row, step, slot])
        found[tuple(ids)] = (
            float(tree.log_probability[row, position, place]),
            float(tree.score[row, position, place]),
        )
    return found


def test_finished_leaves_are_the_hypotheses_of_the_search(draw_chain):
    chain = draw_chain(0, [5, 2, 6, 1] * 4, vocabulary_size=7)
    plain = decoding.beam_search(**chain.arguments(), **SETTINGS, n_best=3)
    result, tree = decoding.beam_tree(**chain.arguments(), **SETTINGS)
    keras.tree.map_structure(np.testing.assert_array_equal, plain, result)
    for row in range(16):
        leaves = paths(tree, row, tree.is_finished)
        hypotheses = {
            tuple(result.ids[row, n, : result.lengths[row, n]].numpy()): (
                float(result.log_probability[row, n]),
                float(result.score[row, n]),
            )
            for n in range(3)
            if result.lengths[row, n]
        }
        assert leaves == hypotheses
        assert all(ids[-1] == END for ids in leaves)


@pytest.mark.parametrize("seed", range(4))
def test_the_live_ones_are_those_of_plain_python(draw_chain, seed):
    """A search by sorting all extensions, that never stops early."""
    limit, num_beams = 4, 3
    chain = draw_chain(seed, [limit], vocabulary_size=7)
    _, tree = decoding.beam_tree(**chain.arguments(), num_beams=num_beams)
    live, num_finished, expected = [()], 0, {}
    for position in range(limit):
        words = [END] if position + 1 == limit else range(7)
        candidates = [(*ids, word) for ids in live for word in words]
        candidates.sort(key=lambda ids: -chain.follow(0, ids)[0])
        best = candidates[: num_beams - num_finished]
        num_finished += sum(ids[-1] == END for ids in best)
        live = [ids for ids in best if ids[-1] != END]
        expected |= {ids: chain.follow(0, ids)[0] for ids in live}
    found = paths(tree, 0, tree.is_live)
    # It may have stopped where nothing could win any more.
    assert found and found.keys() <= expected.keys()
    depth = max(map(len, found))
    assert found.keys() == {ids for ids in expected if len(ids) <= depth}
    for ids, (log_probability, score) in found.items():
        assert log_probability == pytest.approx(expected[ids], 1e-5)
        assert score == 0


def test_in_a_graph_that_knows_no_size(draw_chain):
    """There, rows that have stopped are left out of the step."""
    chain = draw_chain(0, [6, 1, 1, 2], vocabulary_size=7)
    arguments = chain.arguments()
    _, eager = decoding.beam_tree(**arguments, **SETTINGS)
    tensors = {
        name: arguments.pop(name)
        for name in ("memory", "state", "source_mask", "max_lengths")
    }

    def search(tensors):
        return decoding.beam_tree(**arguments, **tensors, **SETTINGS)[1]

    specs = tf.nest.map_structure(
        lambda one: tf.TensorSpec([None, *one.shape[1:]], one.dtype), tensors
    )
    tree = tf.function(search, input_signature=[specs])(tensors)
    for flags in ("is_live", "is_finished"):
        for row in range(4):
            ours, theirs = (
                paths(one, row, getattr(one, flags)) for one in (tree, eager)
            )
            assert ours.keys() == theirs.keys()
            for ids, numbers in ours.items():
                assert numbers == pytest.approx(theirs[ids], 1e-5)


def test_a_beam_of_one_is_a_path(draw_chain):
    chain = draw_chain(0, [6], vocabulary_size=7)
    _, tree = decoding.beam_tree(**chain.arguments(), num_beams=1)
    greedy = decoding.greedy_search(**chain.arguments())
    (ids,) = paths(tree, 0, tree.is_finished)
    assert ids == tuple(greedy.ids[0, 0, : greedy.lengths[0, 0]].numpy())


def test_no_beam(draw_chain):
    with pytest.raises(ValueError, match="Received: n_best=0, num_beams=0"):
        decoding.beam_tree(**draw_chain(0, [3]).arguments(), num_beams=0)
