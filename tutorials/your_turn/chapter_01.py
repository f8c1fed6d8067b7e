"""Chapter 1: a recurrent network that does not read padding."""

import numpy as np

_rng = np.random.default_rng(1)


def right(x, mask, w, u, b, at_padding="keep", carry=True, squash=np.tanh):
    states = np.zeros((len(x), len(b)))
    h = np.zeros(len(b))
    for t in range(len(x)):
        if mask[t] or at_padding == "read":
            total = b.copy()
            for i in range(len(x[t])):
                total += x[t][i] * w[i]
            for i in range(len(h)):
                total += carry * h[i] * u[i]
            h = squash(total)
        elif at_padding == "forget":
            h = np.zeros(len(b))
        states[t] = h
    return states


def _case(mask, units):
    T = len(mask)
    w, u = _rng.normal(size=(units, units)), _rng.normal(size=(units, units))
    x, b = _rng.normal(size=(T, units)), _rng.normal(size=units)
    return x, np.array(mask), w, u, b


cases = [
    _case([True], 1),
    _case([True, True], 2),
    _case([True] * 3 + [False] * 2, 3),
]
mistakes = {
    "There is no mask: your network goes on reading where the mask is False. "
    "There the state must stand still.": (
        lambda *inputs: right(*inputs, at_padding="read")
    ),
    "Your network forgets at padding. Where the mask is False, the state must "
    "stand still, and not become 0.": (
        lambda *inputs: right(*inputs, at_padding="forget")
    ),
    "The state is not carried: each step must add h @ u, with h of the step "
    "before.": lambda *inputs: right(*inputs, carry=False),
    "There is no tanh.": lambda *inputs: right(*inputs, squash=lambda x: x),
    "There is no bias b.": lambda x, mask, w, u, b: right(x, mask, w, u, 0 * b),
    "w and u have changed places: x_t goes with w, and h with u.": (
        lambda x, mask, w, u, b: right(x, mask, u, w, b)
    ),
    "w and u are transposed. Vectors are rows: write x_t @ w.": (
        lambda x, mask, w, u, b: right(x, mask, w.T, u.T, b)
    ),
}

_left = 1.0
for _step in range(20):
    _left *= 0.9
_weights = np.ones((16, 32)), np.ones((32, 32)), np.ones(32)
answers = {
    "a": sum(weight.size for weight in _weights),
    "b": len([np.tanh for _token in range(100)]),
    "c": _left,
}
