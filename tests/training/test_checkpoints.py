"""A checkpoint is whole, or it is refused; a killed write leaves the old."""

import os
import random
import subprocess
import sys
import textwrap
import zipfile

import keras
import numpy as np
import pytest

from keras_attention.training import checkpoints

META = {"step": 7, "epoch": 2, "text": "größer 😀", "list": [1, None, 0.5]}


def arrays():
    rng = np.random.default_rng(0)
    return {
        "model/0000/kernel": rng.normal(size=(5, 7)).astype("float32"),
        "model/0001/bias": rng.normal(size=(7,)),
        "model/0002/half": rng.normal(size=(3, 2)).astype("float16"),
        "optimizer/0000/iterations": np.int64(12),
        "optimizer/0001/empty": np.zeros((0, 3), "float32"),
    }


def assert_same(received, expected):
    assert sorted(received) == sorted(expected)
    for name, array in expected.items():
        assert received[name].dtype == array.dtype
        np.testing.assert_array_equal(received[name], array)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "checkpoint.npz"
    checkpoints.save(path, arrays(), META)
    return path


def test_what_was_saved_is_loaded(path):
    received, meta = checkpoints.load(path)
    assert_same(received, arrays())
    assert meta == META


def test_a_later_save_replaces_the_file(path):
    checkpoints.save(path, {"a": np.arange(3)}, {"step": 8})
    received, meta = checkpoints.load(path)
    assert_same(received, {"a": np.arange(3)})
    assert meta == {"step": 8}
    assert os.listdir(path.parent) == [path.name]


def test_no_file_is_no_damage(tmp_path):
    with pytest.raises(FileNotFoundError):
        checkpoints.load(tmp_path / "checkpoint.npz")


def test_a_truncated_file_is_refused(path):
    whole = path.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 20).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="checkpoint.npz is damaged"):
            checkpoints.load(path)


def test_flipped_bits_never_pass_for_other_values(path):
    whole = path.read_bytes()
    generator = random.Random(0)
    num_refused = 0
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[generator.randrange(len(whole))] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        try:
            received, meta = checkpoints.load(path)
        except ValueError as error:
            assert "Restore the file, or train again" in str(error)
            num_refused += 1
        else:
            # Some bits of a zip file say nothing, such as those of a date.
            assert_same(received, arrays())
            assert meta == META
    assert num_refused > 200


def test_a_damaged_shape_is_refused(tmp_path):
    # One bit makes 4 of 5: fewer values are read than the file holds.
    path = tmp_path / "checkpoint.npz"
    checkpoints.save(path, {"a": np.ones((5, 7))}, {})
    whole = path.read_bytes()
    assert whole.count(b"(5, 7)") == 1
    path.write_bytes(whole.replace(b"(5, 7)", b"(4, 7)"))
    with pytest.raises(ValueError, match="Restore the file, or train again"):
        checkpoints.load(path)


def test_a_lost_array_is_refused(path):
    # As if the directory of the file ended early.
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members.pop("model/0001/bias.npy")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match="arrays are missing"):
        checkpoints.load(path)


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"PK\x03\x04", b"\x80\x04N.", b"\x93NUMPY"]
)
def test_something_else_is_refused(tmp_path, content):
    path = tmp_path / "checkpoint.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged, or not a file of"):
        checkpoints.load(path)


def test_arrays_without_meta_are_refused(tmp_path):
    path = tmp_path / "checkpoint.npz"
    np.savez(path, a=np.arange(3))
    with pytest.raises(ValueError, match="damaged, or not a file of"):
        checkpoints.load(path)


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_failed_write_leaves_the_old_file(path, monkeypatch, function):
    def fail(*args):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.save(path, {"a": np.arange(3)}, {"step": 8})
    monkeypatch.undo()
    assert os.listdir(path.parent) == [path.name]
    received, meta = checkpoints.load(path)
    assert_same(received, arrays())
    assert meta == META


def test_what_cannot_be_written_leaves_the_old_file(path):
    with pytest.raises(TypeError, match="JSON"):
        checkpoints.save(path, {}, {"step": object()})
    assert checkpoints.load(path)[1] == META
    assert os.listdir(path.parent) == [path.name]


# One interpreter imports the package; each writer that it forks is killed.
KILLER = """
    import os, pathlib, random, signal, sys, time
    import numpy as np
    from keras_attention import files
    from keras_attention.training import checkpoints

    path = pathlib.Path(sys.argv[1])
    generator = random.Random(0)

    def save(step):
        values = np.full(200_000, step, "float32")
        checkpoints.save(path, {"values": values}, {"step": step})

    save(0)
    hit = 0
    steps = []
    for _ in range(50):
        writer = os.fork()
        if writer == 0:
            while True:
                save(checkpoints.load(path)[1]["step"] + 1)
        time.sleep(generator.uniform(0.0, 0.05))
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        arrays, meta = checkpoints.load(path)
        assert arrays["values"].shape == (200_000,)
        assert (arrays["values"] == meta["step"]).all()
        steps.append(meta["step"])
        hit += os.listdir(path.parent) != [path.name]
        files.remove_temporaries(path.parent)
        assert os.listdir(path.parent) == [path.name]
    assert steps == sorted(steps)
    print(hit, steps[-1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_killed_writers_leave_a_whole_file(tmp_path):
    output = subprocess.run(
        [
            *(sys.executable, "-c", textwrap.dedent(KILLER)),
            str(tmp_path / "checkpoint.npz"),
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    hit, last_step = map(int, output.split())
    # Some writers were hit in a write, some came to an end of one: or this
    # test would show nothing.
    assert hit > 0
    assert last_step > 0


def variables(*shapes):
    rng = np.random.default_rng(3)
    return [
        keras.Variable(rng.normal(size=shape), name=f"v{index}")
        for index, shape in enumerate(shapes)
    ]


def test_variables_get_their_values_back():
    # Twelve of one shape: order must not be that of "0", "1", "10", "2".
    before = variables(*[(2,)] * 12, (3, 5), ())
    values = [variable.numpy() for variable in before]
    saved = checkpoints.variables_to_arrays("model", before)
    saved["optimizer/0000/x"] = np.zeros(4)
    for variable in before:
        variable.assign(variable * 0)
    checkpoints.arrays_to_variables(saved, "model", before)
    for variable, value in zip(before, values, strict=True):
        np.testing.assert_array_equal(variable, value)


@pytest.mark.parametrize(
    "shapes, message",
    [
        ([(2, 3), (7,)], r"model/0001/v1: \(5,\), not \(7,\)"),
        ([(3, 2), (5,)], r"model/0000/v0: \(2, 3\), not \(3, 2\)"),
        ([(2, 3)], "2 arrays, not 1"),
        ([(2, 3), (5,), (1,)], "2 arrays, not 3"),
    ],
)
def test_another_configuration_is_refused(shapes, message):
    saved = checkpoints.variables_to_arrays("model", variables((2, 3), (5,)))
    others = variables(*shapes)
    before = [variable.numpy() for variable in others]
    with pytest.raises(ValueError, match=message):
        checkpoints.arrays_to_variables(saved, "model", others)
    for variable, value in zip(others, before, strict=True):
        np.testing.assert_array_equal(variable, value)
