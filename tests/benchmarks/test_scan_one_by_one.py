"""`benchmarks/scan_one_by_one.py` learns; its parts against numpy and Keras."""

import importlib.util
import pathlib
import runpy
import sys

import keras
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = ROOT / "benchmarks" / "scan_one_by_one.py"
LINES = [
    "IN: jump OUT: I_JUMP",
    "IN: jump twice OUT: I_JUMP I_JUMP",
    "IN: walk OUT: I_WALK",
    "IN: walk twice OUT: I_WALK I_WALK",
]


@pytest.fixture
def program():
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed")
    return runpy.run_path(str(PROGRAM))


def test_lstm_is_that_of_keras(program):
    units = program["UNITS"]
    rng = np.random.default_rng(1)
    kernel = rng.normal(size=(2 * units, 4 * units)).astype("float32")
    bias = rng.normal(size=4 * units).astype("float32")
    x, output, memory = rng.normal(size=(3, units)).astype("float32")
    weights = {"encoder_0": kernel, "encoder_0_bias": bias}
    ours = program["lstm"](weights, "encoder_0", x, (output, memory))
    cell = keras.layers.LSTMCell(units)
    cell.build((1, units))
    cell.set_weights([kernel[:units], kernel[units:], bias])
    _, theirs = cell(x[None], [output[None], memory[None]])
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own, np.array(other)[0], atol=1e-5)


def numpy_lstm(weights, name, x, state):
    output, memory = state
    x = np.concatenate([x, output]) @ weights[name] + weights[f"{name}_bias"]
    i, f, g, o = np.split(x, 4)
    i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
    memory = f * memory + i * np.tanh(g)
    return o * np.tanh(memory), memory


def numpy_loss(program, weights, source, target, own):
    """The loss without dropout, and the words that the decoder reads."""
    zeros = np.zeros(program["UNITS"])
    lower, upper = (zeros, zeros), (zeros, zeros)
    for word in source:
        if word != program["PADDING"]:
            x = weights["source"][word]
            lower = numpy_lstm(weights, "encoder_0", x, lower)
            upper = numpy_lstm(weights, "encoder_1", lower[0], upper)
    total, words, word = 0.0, [], program["START"]
    for right in target:
        if right == program["PADDING"]:
            break
        words.append(word)
        x = weights["target"][word]
        lower = numpy_lstm(weights, "decoder_0", x, lower)
        upper = numpy_lstm(weights, "decoder_1", lower[0], upper)
        logits = upper[0] @ weights["output"] + weights["output_bias"]
        total += np.log(np.exp(logits).sum()) - logits[right]
        best = logits.argmax()
        if own and best == program["END"]:
            break
        word = best if own else right
    return total / np.count_nonzero(target != program["PADDING"]), words


@pytest.fixture
def without_dropout(program):
    program["drop"].__globals__["DROPOUT"] = 0.0
    return program


# Weights of seed 28 write END too early, as their fourth word.
@pytest.mark.parametrize(
    ("seed", "own", "num_words"),
    [(1, False, 5), (1, True, 5), (28, False, 5), (28, True, 4)],
)
def test_loss_is_that_of_numpy(without_dropout, seed, own, num_words):
    program = without_dropout
    weights = program["initial_weights"](9, 8, np.random.default_rng(seed))
    source = np.array([3, 8, 5, program["END"], program["PADDING"]])
    target = np.array([4, 4, 7, 3, program["END"], program["PADDING"]])
    arrays = {name: np.array(weight) for name, weight in weights.items()}
    expected, words = numpy_loss(program, arrays, source, target, own)
    assert len(words) == num_words
    assert (words[1:] == target[: num_words - 1].tolist()) != own
    key = program["jax"].random.key(1)
    source = np.pad(source, (0, program["SOURCE_LENGTH"] - len(source)))
    loss = program["loss"](weights, source, target, own, key)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_update_is_that_of_keras(without_dropout):
    program = without_dropout
    jax, jnp = program["jax"], program["jnp"]
    weights = program["initial_weights"](9, 8, np.random.default_rng(1))
    weights["output"] *= 50  # A norm to clip.
    mean = square = jax.tree.map(jnp.zeros_like, weights)
    source = np.array([3, 8, 5, 2] + 6 * [program["PADDING"]])
    target = np.array([4, 4, 7, 2])
    key = jax.random.key(1)
    variables = [keras.Variable(np.array(w)) for w in jax.tree.leaves(weights)]
    adam = keras.optimizers.Adam(1e-3, global_clipnorm=5.0)
    gradient = jax.jit(jax.grad(program["loss"]))
    for step in (1.0, 2.0, 3.0):
        gradients = jax.tree.leaves(
            gradient(weights, source, target, False, key)
        )
        assert sum((g**2).sum() for g in gradients) > 5.0**2
        # Keras adds epsilon before the correction of the second moment.
        adam.epsilon = 1e-8 * (1 - 0.999**step) ** 0.5
        adam.apply([keras.ops.array(np.array(g)) for g in gradients], variables)
        weights, mean, square, _ = program["update"](
            weights, mean, square, step, source, target, False, key
        )
        leaves = jax.tree.leaves(weights)
        for own, other in zip(leaves, variables, strict=True):
            np.testing.assert_allclose(own, np.array(other), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("own_share", ["0", "1"])
def test_it_learns_a_few_commands(
    own_share, program, tmp_path, monkeypatch, capsys
):
    for half in ("train", "test"):
        path = tmp_path / f"tasks_{half}_toy.txt"
        path.write_text("\n".join(LINES) + "\n")
    argv = [str(tmp_path), "toy", "--steps", "600", "--own_share", own_share]
    monkeypatch.setattr(sys, "argv", [str(PROGRAM), *argv])
    program["main"]()
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("60 steps, ")
    assert last.startswith("600 steps, ")
    assert last.endswith("test 100.0 %")
