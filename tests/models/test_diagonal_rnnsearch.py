"""RNNsearch whose cursor nobody moves."""

import numpy as np
import pytest
import test_rnnsearch

from keras_attention import models

V, SOURCE_V, EMBEDDING, UNITS, READOUT = 23, 19, 7, 11, 5
SOURCE_IDS = np.array([[5, 7, 11, 13, 3], [17, 6, 3, 0, 0]])
TARGET_IDS = np.array([[2, 19, 5, 9], [2, 22, 4, 7]])


@pytest.mark.parametrize(
    "ratio, places",
    [(1.0, [[0, 1, 2, 3], [0, 1, 2, 2]]), (1.5, [[0, 2, 3, 4], [0, 2, 2, 2]])],
)
def test_each_token_looks_at_its_place(ratio, places, randomize):
    model = randomize(
        models.DiagonalRNNSearch(
            V, SOURCE_V, EMBEDDING, UNITS, READOUT, ratio=ratio
        ),
        1,
    )
    ids = {"source_ids": SOURCE_IDS, "target_ids": TARGET_IDS}
    logits = model(ids)
    memory = model.encode(SOURCE_IDS)
    state, found = model.initial_state(memory), []
    for t in range(4):
        _, state, weights = model.step(TARGET_IDS[:, t], memory, state)
        found.append(np.argmax(weights, axis=1))
    assert np.transpose(found).tolist() == places
    for row, length in enumerate([5, 3]):

        def look(model, s, h, before, row=row):
            return np.eye(len(h))[places[row][len(before)]]

        expected, _ = test_rnnsearch.translate(
            model, SOURCE_IDS[row, :length], TARGET_IDS[row], look
        )
        np.testing.assert_allclose(logits[row], expected, atol=1e-4)


def test_a_cursor_that_stands_still_is_refused():
    with pytest.raises(ValueError, match="`ratio` must be positive"):
        models.DiagonalRNNSearch(V, ratio=0)
