"""A server loads the most urgent functions first."""

import concurrent.futures
import gc
import time
import weakref

import numpy as np
import pytest
import tensorflow as tf

from keras_attention.server import functions, versions
from keras_attention.serving import quick_search


@pytest.fixture
def path(model_folders):
    return model_folders["numbers"] / "7"


@pytest.fixture
def partial(path):
    return functions.Functions(path, 1, ["padded"])


def inputs_of(name, path):
    """Ones for each input of a signature."""
    (_, specs) = (
        tf.saved_model.load(str(path))
        .signatures[name]
        .structured_input_signature
    )
    return {
        key: tf.ones([2 if n is None else n for n in spec.shape], spec.dtype)
        for key, spec in specs.items()
    }


def test_what_is_first_is_there_alone(partial):
    assert [*partial.by_name] == ["padded"]


@pytest.mark.parametrize("name", ["padded", "serving_default", "scalar"])
def test_each_signature_answers_as_in_the_whole(name, path, partial):
    given = inputs_of(name, path)
    expected = tf.saved_model.load(str(path)).signatures[name](**given)
    for _ in range(2):
        found = partial.call(name, **given)
        assert found.keys() == expected.keys()
        for key in expected:
            np.testing.assert_array_equal(found[key], expected[key])
    # What is there is not loaded again for it.
    assert (len(partial.by_name) == 1) == (name == "padded")


def test_the_first_part_leaves_the_memory(partial):
    first = weakref.ref(partial._part.loaded)
    partial.complete()
    assert len(partial.by_name) == 3
    gc.collect()
    assert first() is None


def test_the_whole_is_warm_before_it_answers(path, partial, monkeypatch):
    given = inputs_of("padded", path)
    partial.call("padded", **given)
    called = []

    def functions_of(*_):
        return {
            name: lambda name=name, **inputs: called.append((name, inputs))
            for name in ("padded", "scalar")
        }

    monkeypatch.setattr(quick_search, "signatures", functions_of)
    partial.complete()
    assert called == [("padded", given)]


def test_a_call_that_fails_is_not_asked_again(path, partial):
    given = inputs_of("padded", path)
    with pytest.raises(tf.errors.InvalidArgumentError):
        partial.call("padded", ids=tf.constant(["no number"]))
    partial.complete()
    assert partial.call("padded", **given)


def test_the_whole_is_loaded_once(path, partial, monkeypatch):
    load, loads = tf.saved_model.load, []

    def slowly(*args, **kwargs):
        loads.append(args)
        time.sleep(0.2)
        return load(*args, **kwargs)

    given = inputs_of("scalar", path)
    monkeypatch.setattr(tf.saved_model, "load", slowly)
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(partial.call, "scalar", **given)] * 4
        done = [threads.submit(partial.complete) for _ in range(3)]
        assert all("y" in one.result() for one in asked)
        assert [one.result() for one in done] == [None] * 3
    partial.complete()
    assert len(loads) == 1


def test_a_load_that_fails_is_tried_again_after_a_pause(
    path, partial, monkeypatch
):
    tried, now = [], [0.0]

    def fail(*args, **kwargs):
        tried.append(args)
        raise OSError(24, "Too many open files")

    given = inputs_of("scalar", path)
    monkeypatch.setattr(functions.time, "monotonic", lambda: now[0])
    with monkeypatch.context() as patch:
        patch.setattr(tf.saved_model, "load", fail)
        for _ in range(3):
            with pytest.raises(OSError, match="Too many"):
                partial.call("scalar", **given)
    assert len(tried) == 1
    assert partial.call("padded", **inputs_of("padded", path))
    now[0] = 60.0
    assert partial.call("scalar", **given)


def test_the_model_of_another_package_is_loaded_whole(path):
    loaded = versions.load(path, 7, in_parts=True)
    assert loaded.functions.by_name.keys() == loaded.signatures.keys()
