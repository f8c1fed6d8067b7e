"""`benchmarks/scan_one_by_one.py` learns; its parts are what they say."""

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


@pytest.fixture(scope="module")
def program():
    """Once, so that each of its functions is compiled once."""
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
    """The loss, the words that the decoder reads, and those that it writes."""
    zeros = np.zeros(program["UNITS"])
    lower, upper = (zeros, zeros), (zeros, zeros)
    for word in source:
        if word != program["PADDING"]:
            x = weights["source"][word]
            lower = numpy_lstm(weights, "encoder_0", x, lower)
            upper = numpy_lstm(weights, "encoder_1", lower[0], upper)
    total, read, written = 0.0, [program["START"]], []
    for right in target:
        if right == program["PADDING"]:
            break
        x = weights["target"][read[-1]]
        lower = numpy_lstm(weights, "decoder_0", x, lower)
        upper = numpy_lstm(weights, "decoder_1", lower[0], upper)
        logits = upper[0] @ weights["output"] + weights["output_bias"]
        total += np.log(np.exp(logits).sum()) - logits[right]
        written.append(int(logits.argmax()))
        if own and written[-1] == program["END"]:
            break
        read.append(written[-1] if own else int(right))
    length = np.count_nonzero(target != program["PADDING"])
    return total / length, read, written


@pytest.fixture(scope="module")
def value_and_gradient(program):
    jax = program["jax"]
    return jax.jit(jax.value_and_grad(program["loss"]))


@pytest.fixture(scope="module")
def weights(program):
    """Weights that write END too early, after a word that is wrong."""
    weights = program["initial_weights"](9, 8, np.random.default_rng(19))
    bias = weights["output_bias"].at[program["END"]].add(0.06)
    return weights | {"output_bias": bias}


@pytest.mark.parametrize("own", [False, True])
def test_loss_is_that_of_numpy(program, weights, own):
    end, padding = program["END"], program["PADDING"]
    source = np.array([3, 8, 5, end, padding])
    target = np.array([4, 4, 7, 3, end, padding])
    arrays = {name: np.array(weight) for name, weight in weights.items()}
    expected, read, written = numpy_loss(program, arrays, source, target, own)
    assert end in written[:4]  # Too early.
    if own:
        assert read[1] != target[0]
    source = np.pad(source, (0, program["SOURCE_LENGTH"] - len(source)))
    loss = program["loss"](weights, source, target, own)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1, 50])
def test_update_is_adam(program, value_and_gradient, weights, factor):
    """Kingma and Ba 2015, algorithm 1, upon clipped gradients."""
    jax, jnp = program["jax"], program["jnp"]
    weights = weights | {"output": factor * weights["output"]}
    mean = square = jax.tree.map(jnp.zeros_like, weights)
    length = program["SOURCE_LENGTH"]
    source = np.array([3, 8, 5, program["END"]])
    source = np.pad(source, (0, length - 4), constant_values=program["PADDING"])
    target = np.array([4, 4, 7, program["END"]])
    for step in (1.0, 2.0):
        expected_value, g = value_and_gradient(weights, source, target, False)
        norm = np.sqrt(sum(np.sum(np.square(part)) for part in g.values()))
        assert norm < 5.0 if factor == 1 else norm > 10.0
        before, old_mean, old_square = weights, mean, square
        weights, mean, square, value = program["update"](
            weights, mean, square, step, source, target, False, None
        )
        np.testing.assert_allclose(value, expected_value, rtol=1e-5)
        for name, part in g.items():
            clipped = np.array(part) * min(1, 5.0 / norm)
            m = 0.9 * old_mean[name] + 0.1 * clipped
            v = 0.999 * old_square[name] + 0.001 * clipped**2
            # Sums of another order differ in their last digits.
            tolerance = 1e-4 * np.abs(m).max(), 1e-4 * v.max()
            np.testing.assert_allclose(mean[name], m, atol=tolerance[0])
            np.testing.assert_allclose(square[name], v, atol=tolerance[1])
            m_hat = np.array(mean[name]) / (1 - 0.9**step)
            v_hat = np.array(square[name]) / (1 - 0.999**step)
            after = before[name] - 1e-3 * m_hat / (np.sqrt(v_hat) + 1e-8)
            np.testing.assert_allclose(weights[name], after, atol=1e-6)


def test_dropout_drops_half_and_doubles_the_rest(program):
    key = program["jax"].random.key(1)
    x = np.arange(1.0, 10_001.0)
    dropped = np.array(program["drop"](x, key))
    kept = dropped != 0
    assert 0.45 < kept.mean() < 0.55
    np.testing.assert_allclose(dropped[kept], 2 * x[kept])


def test_dropout_is_on_the_embeddings_and_between_the_lstms(
    program, weights, monkeypatch
):
    places = []
    functions = program["two_lstms"].__globals__
    monkeypatch.setitem(
        functions, "drop", lambda x, key: places.append((x, key)) or x
    )
    x, zeros = np.ones(program["UNITS"]), np.zeros(program["UNITS"])
    key = program["jax"].random.key(1)
    state = (zeros, zeros), (zeros, zeros)
    lower, _ = program["two_lstms"](weights, "encoder", x, state, key)
    (first, first_key), (second, second_key) = places
    np.testing.assert_array_equal(first, x)
    np.testing.assert_array_equal(second, lower[0])
    assert first_key != second_key


@pytest.mark.parametrize("word", [4, 2])
def test_exact_match_is_of_whole_answers(program, weights, word):
    """The network writes one word all the time: one answer is just END."""
    end = program["END"]
    bias = weights["output_bias"].at[word].set(100.0)
    percent = 100 / 3 if word == end else 0.0
    length = program["TARGET_LENGTHS"][-1]
    targets = [[end], [4, end], [4, 4, end]]
    targets = [t + (length - len(t)) * [program["PADDING"]] for t in targets]
    sources = 3 * [
        [3, end] + (program["SOURCE_LENGTH"] - 2) * [program["PADDING"]]
    ]
    right = program["exact_match"](
        weights | {"output_bias": bias}, sources, targets
    )
    assert right == pytest.approx(percent)


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
