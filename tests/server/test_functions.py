"""A server loads the most urgent functions first."""

import gc
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


def test_the_whole_is_loaded_once(partial, monkeypatch):
    partial.complete()

    def fail(*args, **kwargs):
        raise AssertionError("It is loaded again.")

    monkeypatch.setattr(tf.saved_model, "load", fail)
    partial.complete()


def test_the_model_of_another_package_is_loaded_whole(path):
    loaded = versions.load(path, 7, in_parts=True)
    assert loaded.functions.by_name.keys() == loaded.signatures.keys()
