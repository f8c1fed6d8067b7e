"""The density of points, and who is told which kinds."""

import math

import few_strokes
import numpy as np
import pytest
import strokes_network

from keras_attention import layers

M, K = 3, 2


def network(reads):
    made = strokes_network.StrokeWriter(
        len(few_strokes.NAMES), reads, few_strokes.UNITS, M, K
    )
    made.build()
    return made


@pytest.fixture
def inputs(rng):
    points = rng.normal(size=(2, 6, 3)).astype("float32")
    points[..., 2] = points[..., 2] > 0
    return {
        "points": points,
        "kinds": np.array([[0, 2, 1, -1], [3] + 3 * [-1]]),
    }


def density(point, outputs):
    """Equations 18 to 25 for one point, one component after another."""
    e, (pi, mu_x, mu_y, sigma_x, sigma_y, rho) = (
        1 / (1 + math.exp(-outputs[0])),
        outputs[1:].reshape(6, M),
    )
    pi = np.exp(pi) / np.exp(pi).sum()
    total = 0.0
    for m in range(M):
        sx = max(math.exp(sigma_x[m]), strokes_network.LEAST_SIGMA)
        sy = max(math.exp(sigma_y[m]), strokes_network.LEAST_SIGMA)
        r = strokes_network.MOST_RHO * math.tanh(rho[m])
        covariance = np.array([[sx**2, r * sx * sy], [r * sx * sy, sy**2]])
        difference = point[:2] - np.array([mu_x[m], mu_y[m]])
        z = difference @ np.linalg.inv(covariance) @ difference
        area = 2 * math.pi * math.sqrt(np.linalg.det(covariance))
        total += pi[m] * math.exp(-z / 2) / area
    return total * (e if point[2] else 1 - e)


def test_density_is_that_of_the_equations(rng):
    outputs = rng.normal(size=(4, 5, 6 * M + 1))
    outputs[0, 0, 10] = -9.0  # A sigma below the least one.
    points = rng.normal(size=(4, 5, 3))
    points[..., 2] = points[..., 2] > 0
    found = np.array(
        strokes_network.log_density(
            points.astype("float32"), outputs.astype("float32")
        )
    )
    for place in np.ndindex(4, 5):
        expected = math.log(density(points[place], outputs[place]))
        assert found[place] == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_the_loss_is_the_mean_over_real_points(rng):
    outputs = rng.normal(size=(2, 3, 6 * M + 1)).astype("float32")
    points = np.ones((2, 3, 3), "float32")
    weights = np.array([[1, 1, 1], [1, 0, 0]], "float32")
    logs = [
        math.log(density(points[place], outputs[place].astype("float64")))
        for place in zip(*np.nonzero(weights), strict=True)
    ]
    found = strokes_network.NegativeLogLikelihood()(points, outputs, weights)
    assert float(found) == pytest.approx(-np.mean(logs), rel=1e-5)


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_points_are_drawn_from_the_mixture(bias, rng):
    """Of two components: their shares, means and covariances."""
    pi, sigma, rho = np.log([0.3, 0.7]), np.log([[0.1, 0.4], [0.2, 0.3]]), 0.6
    outputs = np.zeros(13)
    outputs[0] = np.log(0.25 / 0.75)
    outputs[1:3], outputs[3:5], outputs[5:7] = pi, [-5, 5], [1, 2]
    outputs[7:11] = sigma.ravel()
    outputs[11:13] = np.arctanh(rho / strokes_network.MOST_RHO)
    points = strokes_network.draw_points(
        np.tile(outputs, (20_000, 1)).astype("float32"), rng, bias
    )
    assert points[:, 2].mean() == pytest.approx(0.25, abs=0.02)
    share = 0.7 ** (1 + bias) / (0.7 ** (1 + bias) + 0.3 ** (1 + bias))
    second = points[:, 0] > 0
    assert second.mean() == pytest.approx(share, abs=0.02)
    for m, chosen in enumerate((points[~second, :2], points[second, :2])):
        x, y = np.exp(sigma[:, m] - bias)
        np.testing.assert_allclose(
            chosen.mean(axis=0), [(-5, 5)[m], (1, 2)[m]], atol=0.02
        )
        expected = [[x**2, rho * x * y], [rho * x * y, y**2]]
        np.testing.assert_allclose(np.cov(chosen.T), expected, rtol=0.1)


def test_who_is_told_what(inputs):
    """Rows of the same kinds, of these in another order, and of others."""
    kinds = np.array([[0, 2, 1, -1], [2, 1, 0, -1], [0, 2, 3, -1]])
    points = np.repeat(inputs["points"][:1], 3, axis=0)
    equal = {}
    for reads in strokes_network.READS:
        found = np.array(
            network(reads)({"points": points, "kinds": kinds})[:, -1]
        )
        equal[reads] = [np.allclose(found[0], one) for one in found[1:]]
    assert equal == {
        "nothing": [True, True],
        "all": [True, False],
        "window": [False, False],
    }
    with pytest.raises(ValueError, match="`reads` must be one of"):
        network("some")


def test_the_window_is_that_of_the_layer(inputs):
    made = network("window")
    states = made.states(inputs)
    assert isinstance(made.window, layers.GaussianWindow)
    source = np.eye(len(few_strokes.NAMES))[inputs["kinds"]].astype("float32")
    source[inputs["kinds"] < 0] = 0
    hidden = states["first"][0]
    context, weights = made.window(query=hidden, value=source)
    np.testing.assert_allclose(states["context"], context, atol=1e-5)
    np.testing.assert_allclose(states["weights"], weights, atol=1e-5)
    places = made.window.places(hidden)
    np.testing.assert_allclose(states["places"], places, atol=1e-5)


def test_outputs_know_neither_the_future_nor_padding(inputs):
    made = network("window")
    whole = made(inputs)
    assert whole.shape == (2, 6, 6 * M + 1)
    kinds = np.pad(inputs["kinds"], ((0, 0), (0, 3)), constant_values=-1)
    part = made({"points": inputs["points"][:, :4], "kinds": kinds})
    np.testing.assert_allclose(part, whole[:, :4], atol=1e-5)


def test_a_drawing_ends_where_the_window_passes_the_last_kind(rng):
    """Steps of 0.4 from -1: 1 is next from the 4th on, 3 from the 9th."""
    made = network("window")
    made.window.set_weights([0 * w for w in made.window.get_weights()])
    kinds = np.array([[2, -1, -1, -1], [0, 1, 3, -1]])
    first, second = strokes_network.write(made, kinds, rng)
    assert [len(first["points"]), len(second["points"])] == [3, 8]
    expected = -1 + 0.4 * np.arange(1, 9)[:, None].repeat(K, axis=1)
    np.testing.assert_allclose(second["places"], expected, atol=1e-5)
    distances = second["places"][..., None] - np.arange(4)
    phi = np.exp(-(distances**2)).sum(axis=1)
    np.testing.assert_allclose(second["weights"], phi, atol=1e-5)


def test_without_a_window_it_ends_after_as_many_strokes(rng):
    made = network("nothing")
    kernel, bias = made.outputs_layer.get_weights()
    bias[0] = 100.0  # Each point ends a stroke.
    made.outputs_layer.set_weights([0 * kernel, bias])
    kinds = np.array([[2, -1, -1, -1], [0, 1, 3, -1]])
    written = strokes_network.write(made, kinds, rng)
    assert [len(one["points"]) for one in written] == [1, 3]
    bias[0] = -100.0  # None does.
    made.outputs_layer.set_weights([0 * kernel, bias])
    written = strokes_network.write(made, kinds, rng, most_points=5)
    assert [len(one["points"]) for one in written] == [5, 5]
