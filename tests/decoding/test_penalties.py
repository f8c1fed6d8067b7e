"""The formulas of Wu et al. 2016 by hand."""

import math

import numpy as np
import pytest

from keras_attention import decoding


def test_length_penalty_by_hand():
    # ((5 + 1) / 6)^a = 1; ((5 + 7) / 6)^2 = 4; ((5 + 13) / 6)^0.5 = sqrt 3.
    np.testing.assert_allclose(decoding.length_penalty(1, 0.6), 1)
    np.testing.assert_allclose(decoding.length_penalty(7, 2.0), 4)
    np.testing.assert_allclose(
        decoding.length_penalty(np.array([1, 13]), 0.5), [1, math.sqrt(3)]
    )
    np.testing.assert_array_equal(
        decoding.length_penalty(np.array([1, 5, 9]), 0.0), [1, 1, 1]
    )


def test_coverage_penalty_by_hand():
    sums = np.array([[0.5, 1.0, 3.0, 0.25], [0.5, 0.1, 0.0, 0.0]], "float32")
    mask = np.array([[True, True, True, True], [True, False, False, False]])
    np.testing.assert_allclose(
        decoding.coverage_penalty(sums, mask, 0.2),
        [0.2 * (math.log(0.5) + math.log(0.25)), 0.2 * math.log(0.5)],
        rtol=1e-6,
    )


def test_an_unseen_source_token_is_no_infinity():
    penalty = decoding.coverage_penalty(
        np.array([[0.0, 1.0]], "float32"), np.array([[True, True]]), 0.2
    )
    assert np.isfinite(penalty).all()
    assert penalty[0] < -1


@pytest.mark.parametrize("wrong", [-0.1, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_a_penalty_that_is_none_is_refused(name, wrong, draw_chain):
    arguments = draw_chain(0, [3]).arguments() | {name: wrong}
    with pytest.raises(ValueError, match=f"{name}={wrong}"):
        decoding.greedy_search(**arguments)
    with pytest.raises(ValueError, match=f"{name}={wrong}"):
        decoding.beam_search(**arguments, num_beams=2)
