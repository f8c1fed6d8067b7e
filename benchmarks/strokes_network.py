"""A network that writes strokes, and is told which by a window.

Graves 2013: a mixture density says where the pen goes next (section 4), and a
window that only moves forward reads what is to be written (section 5).

Reference: https://arxiv.org/abs/1308.0850
"""

import math

import keras
import numpy as np
from keras import ops

from keras_attention import layers

READS = ("nothing", "all", "window")
# Wider than a hundredth of the offsets' deviation, and never quite a line.
LEAST_SIGMA = 0.01
MOST_RHO = 0.99


def split(outputs):
    """Numbers of the mixture, before equations 18 to 22.

    Args:
        outputs: [..., 6 M + 1], for M components.

    Returns:
        `(up, pi, mu, log_sigma, rho)`: [...], [..., M], [..., 2, M],
        [..., 2, M] and [..., M]. `up` and `pi` are logits, and `up` is that of
        the pen's end of a stroke. (The paper has the other sign.)
    """
    pi, mu_x, mu_y, sigma_x, sigma_y, rho = ops.split(outputs[..., 1:], 6, -1)
    log_sigma = ops.stack([sigma_x, sigma_y], axis=-2)
    log_sigma = ops.maximum(log_sigma, math.log(LEAST_SIGMA))
    mu = ops.stack([mu_x, mu_y], axis=-2)
    return outputs[..., 0], pi, mu, log_sigma, MOST_RHO * ops.tanh(rho)


def log_density(points, outputs):
    """log Pr(x_{t+1} | y_t) of equations 23 to 25, in nats.

    Args:
        points: [..., 3], rows (dx, dy, up).
        outputs: [..., 6 M + 1].

    Returns:
        [...].
    """
    up, pi, mu, log_sigma, rho = split(outputs)
    distances = (points[..., :2, None] - mu) / ops.exp(log_sigma)
    x, y = distances[..., 0, :], distances[..., 1, :]
    rest = 1 - rho**2
    z = x**2 + y**2 - 2 * rho * x * y  # equation 25
    logs = -z / (2 * rest) - math.log(2 * math.pi) - 0.5 * ops.log(rest)
    logs -= ops.sum(log_sigma, axis=-2)  # equation 24
    place = ops.logsumexp(ops.log_softmax(pi, axis=-1) + logs, axis=-1)
    return place + ops.log_sigmoid(ops.where(points[..., 2] > 0, up, -up))


class NegativeLogLikelihood(keras.losses.Loss):
    """The mean over the points of weight 1 (equation 26, a point)."""

    def __init__(self):
        super().__init__(reduction="mean_with_sample_weight")

    def call(self, y_true, y_pred):
        return -log_density(y_true, y_pred)


class StrokeWriter(keras.Model):
    """Two LSTMs with a window between them (Graves 2013, figure 12).

    Call arguments: a dict of "points" [B, T, 3] and "kinds" int [B, S], where
    -1 is padding.

    Returns: the outputs [B, T, 6 M + 1] for the points that follow.

    `reads` says what is known of the kinds c_u: "nothing", "all" (their sum, at
    each point) or "window" (equations 46 to 51). The weights of the network are
    the same in number, but for those of the window.

    Deviations: two LSTMs in place of three, of fewer cells, without peepholes.
    sigma and |rho| are bounded.

    Args:
        num_kinds: The kinds of strokes.
        reads: "nothing", "all" or "window".
        units: Cells of each LSTM.
        num_mixtures: M, the components of the mixture density; the paper has
            20.
        num_components: K, the Gaussians of the window; the paper has 10.
        step_size: The strokes that an untrained window passes at a point.
    """

    def __init__(
        self,
        num_kinds,
        reads="window",
        units=200,
        num_mixtures=20,
        num_components=3,
        step_size=0.4,
    ):
        super().__init__()
        if reads not in READS:
            raise ValueError(
                f"`reads` must be one of {READS}. Received: {reads!r}"
            )
        self.num_kinds = num_kinds
        self.reads = reads
        self.units = units
        self.first = keras.layers.LSTMCell(units, name="first")
        self.second = keras.layers.LSTMCell(units, name="second")
        self.window = layers.GaussianWindow(
            num_components, step_size, name="window"
        )
        self.outputs_layer = keras.layers.Dense(6 * num_mixtures + 1)

    def build(self, input_shape=None):
        # Before the loop over points: it may not make weights.
        width = 3 + self.num_kinds
        self.first.build((None, width))
        self.second.build((None, width + self.units))
        self.outputs_layer.build((None, None, 2 * self.units))
        if self.reads == "window":
            self.window.build(
                (None, None, self.units), (None, None, self.num_kinds)
            )
        self.built = True

    def source(self, kinds):
        """c: [B, S, num_kinds], zero at padding."""
        return ops.one_hot(kinds, self.num_kinds)

    def initial_state(self, source):
        """What `step` carries, before the first point."""
        batch, length = ops.shape(source)[:2]
        cells = ops.zeros((batch, self.units))
        return {
            "first": [cells, cells],
            "second": [cells, cells],
            "context": ops.zeros((batch, self.num_kinds)),
            "weights": ops.zeros((batch, length)),
            # The place before the first stroke.
            "places": ops.full((batch, self.window.num_components), -1.0),
        }

    def step(self, points, source, state):
        """The state after one point [B, 3] more.

        It has the window's `weights` [B, S], phi, and its `places` [B, K],
        kappa.
        """
        inputs = ops.concatenate([points, state["context"]], axis=-1)
        hidden, first = self.first(inputs, state["first"])
        places = state["places"]
        if self.reads == "window":
            query = hidden[:, None]
            places = self.window.places(query, places)  # [B, 1, K]
            context, weights = self.window.attend(
                query=query,
                projected_key=source,
                value=source,
                places=places,
            )
            context, weights = context[:, 0], weights[:, 0]
            places = places[:, 0]
        else:
            share = 1.0 if self.reads == "all" else 0.0
            weights = ops.full_like(state["weights"], share)
            context = share * ops.sum(source, axis=1)
        inputs = ops.concatenate([points, context, hidden], axis=-1)
        _, second = self.second(inputs, state["second"])
        return {
            "first": first,
            "second": second,
            "context": context,
            "weights": weights,
            "places": places,
        }

    def read_out(self, state):
        """The outputs of a state, or of all states along an axis."""
        hidden = [state["first"][0], state["second"][0]]
        return self.outputs_layer(ops.concatenate(hidden, axis=-1))

    def states(self, inputs):
        """The states after each point, every leaf [B, T, ...]."""
        source = self.source(inputs["kinds"])
        return layers.unroll(
            lambda points, state: self.step(points, source, state),
            self.initial_state(source),
            inputs["points"],
        )

    def call(self, inputs):
        return self.read_out(self.states(inputs))


def draw_points(outputs, rng, bias=0.0):
    """Draws the next points [B, 3] from outputs [B, 6 M + 1].

    Args:
        outputs: Those of the network.
        rng: A NumPy generator.
        bias: b of equations 61 and 62: the greater, the neater.
    """
    up, *others = split(outputs)
    ends, pi, mu, log_sigma, rho = map(
        ops.convert_to_numpy, (ops.sigmoid(up), *others)
    )
    batch, rows = len(ends), np.arange(len(ends))
    # The largest of logits with Gumbel's noise is a draw from their softmax.
    noise = rng.gumbel(size=pi.shape)
    chosen = np.argmax(pi * (1 + bias) + noise, axis=-1)
    mu, sigma = mu[rows, :, chosen], np.exp(log_sigma[rows, :, chosen] - bias)
    rho = rho[rows, chosen]
    x, y = rng.normal(size=(2, batch))
    y = rho * x + np.sqrt(1 - rho**2) * y
    offsets = mu + sigma * np.stack([x, y], axis=-1)
    lifted = rng.uniform(size=batch) < ends
    return np.column_stack([offsets, lifted]).astype("float32")


def write(network, kinds, rng, bias=0.0, most_points=100):
    """Writes a drawing for each row of kinds.

    A drawing ends where the window looks most at what follows the last kind
    (section 5.3), or after `most_points` points, or after as many strokes as
    there are kinds if the network has no window.

    Args:
        network: A `StrokeWriter`.
        kinds: int [B, S], with -1 after the last kind of each row.
        rng: A NumPy generator.
        bias: As in `draw_points`.
        most_points: The longest drawing.

    Returns:
        A list of dicts: "points" [N, 3], and for each of them the "weights"
        [N, S] and the "places" [N, K] of the window by which it was written.
    """
    source = network.source(kinds)
    state = network.initial_state(source)
    lengths = np.sum(kinds >= 0, axis=1)
    points = np.zeros((len(kinds), 3), "float32")
    done, num_up = np.zeros(len(kinds), bool), np.zeros(len(kinds))
    steps, ends = [], np.full(len(kinds), most_points)
    for place in range(most_points):
        state = network.step(points, source, state)
        weights = ops.convert_to_numpy(state["weights"])
        if network.reads == "window":
            ending = np.argmax(weights, axis=1) >= lengths
        else:
            ending = num_up >= lengths
        ends[ending & ~done] = place
        done |= ending
        points = draw_points(network.read_out(state), rng, bias)
        num_up += points[:, 2]
        places = ops.convert_to_numpy(state["places"])
        steps.append((points, weights, places))
        if done.all():
            break
    names = ("points", "weights", "places")
    arrays = [np.stack(one, axis=1) for one in zip(*steps, strict=True)]
    return [
        {n: a[row, :end] for n, a in zip(names, arrays, strict=True)}
        for row, end in enumerate(ends)
    ]
