"""Searches over the models' own `step`: batches, padding, forced scores."""

import numpy as np
import pytest

from keras_attention import decoding
from keras_attention.tokens import END, PAD, START, UNK

CONTROL = (PAD, UNK, START)
SOURCES = [[7, 12, 30, 4, END], [9, END], [5, 5, 21, 17, 8, 26, END]]
LIMITS = [6, 3, 9]


def padded(rows, length=None):
    length = length or max(map(len, rows))
    return np.array([row + [PAD] * (length - len(row)) for row in rows])


def search(model, rows, limits, num_beams=None, length=None):
    source_ids = padded(rows, length)
    memory = model.encode(source_ids)
    state = model.initial_state(memory, max(limits))
    arguments = {
        "step": model.step,
        "memory": memory,
        "state": state,
        "source_mask": source_ids != PAD,
        "max_lengths": np.array(limits),
        "forbidden_ids": CONTROL,
    }
    if num_beams is None:
        return decoding.greedy_search(**arguments)
    return decoding.beam_search(
        **arguments, num_beams=num_beams, n_best=num_beams, alpha=0.6
    )


@pytest.fixture(scope="module", params=[None, 3], ids=["greedy", "beam"])
def num_beams(request):
    return request.param


@pytest.fixture(scope="module")
def together(model, num_beams):
    return search(model, SOURCES, LIMITS, num_beams)


@pytest.mark.fast_for("rnnsearch", "transformer")
@pytest.mark.parametrize(
    "row, length",
    [(0, None), pytest.param(1, 11, marks=pytest.mark.slow), (2, 11)],
)
def test_a_row_alone_and_padded_gives_the_same(
    model, num_beams, together, row, length
):
    source, limit = SOURCES[row], LIMITS[row]
    alone = search(model, [source], [limit], num_beams, length)
    np.testing.assert_array_equal(alone.lengths[0], together.lengths[row])
    np.testing.assert_array_equal(alone.ids[0], together.ids[row, :, :limit])
    np.testing.assert_allclose(alone.score[0], together.score[row], rtol=1e-4)
    real = len(source)
    np.testing.assert_allclose(
        alone.attention_weights[0, :, :, :real],
        together.attention_weights[row, :, :limit, :real],
        atol=1e-4,
    )


@pytest.mark.fast_for("rnnsearch", "transformer", "bytenet")
def test_weights_are_a_distribution_over_the_source(together):
    weights = together.attention_weights.numpy()
    for row, source in enumerate(SOURCES):
        for rank, length in enumerate(together.lengths[row].numpy()):
            seen = weights[row, rank]
            np.testing.assert_allclose(seen[:length].sum(-1), 1, atol=1e-5)
            assert not seen[length:].any()
            assert not seen[:, len(source) :].any()


@pytest.mark.fast_for(
    "rnnsearch", "transformer", "bytenet", "bytenet_convolution"
)
def test_hypotheses_are_scored_like_forced_ones(model, together):
    for rank in range(together.ids.shape[1]):
        labels = together.ids[:, rank].numpy()
        assert (together.lengths[:, rank].numpy() > 0).all()
        inputs = np.concatenate([np.full((3, 1), START), labels[:, :-1]], 1)
        logits = model({"source_ids": padded(SOURCES), "target_ids": inputs})
        total, num_tokens = decoding.sequence_log_probability(logits, labels)
        np.testing.assert_allclose(
            together.log_probability[:, rank], total, rtol=1e-4
        )
        np.testing.assert_array_equal(num_tokens, together.lengths[:, rank])
        forced = model.log_probability(padded(SOURCES), labels)
        np.testing.assert_allclose(
            together.log_probability[:, rank], forced, rtol=1e-4
        )


@pytest.mark.fast_for(
    "rnnsearch", "transformer", "bytenet", "bytenet_convolution"
)
def test_hypotheses_are_not_trivial(together):
    # Otherwise the tests above would prove little.
    assert together.lengths.numpy().max() > 2
    words = set(together.ids.numpy().flatten().tolist())
    assert len(words - {PAD, END}) > 1


@pytest.mark.fast_for("rnnsearch", "transformer", "bytenet")
def test_better_hypotheses_come_first(together):
    scores = together.score.numpy()
    assert (np.diff(scores, axis=1) <= 0).all()
    for row in together.ids.numpy().tolist():
        assert len({tuple(ids) for ids in row}) == len(row)
